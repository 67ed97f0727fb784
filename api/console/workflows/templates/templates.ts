import { edges, type Template } from './template.ts'

const webhook: Template = {
  id: 'webhook',
  name: 'Webhook to HTTP',
  icon: 'link',
  text: 'Takes an order by a call, passes it on to another service with retries, and minds what happens if that is away.',
  next: 'Activates it and sends a first call',
  make: ({ base }) => ({
    name: 'Orders by webhook',
    description:
      'Each POST to its address starts an execution. The warehouse is only pretended: put the address of your service into "Pass it on".',
    nodes: [
      { id: 'order', type: 'WEBHOOK_TRIGGER', name: 'An order', config: { path: 'orders', method: 'POST' } },
      {
        id: 'total',
        type: 'SET',
        name: 'Add it up',
        config: {
          values: {
            customer: '{{ $input.body.customer }}',
            total: '{{ $sum($input.body.items.(price * count)) }}',
          },
        },
      },
      {
        id: 'pass',
        type: 'HTTP_REQUEST',
        name: 'Pass it on',
        config: {
          method: 'POST',
          url: `${base}/hooks/{{ $execution.workflowId }}/warehouse`,
          body: '{{ $input }}',
        },
        retry: { maxAttempts: 3, initialIntervalMs: 500 },
        onError: 'BRANCH',
      },
      {
        id: 'taken',
        type: 'SET',
        name: 'It was taken',
        config: {
          values: { taken: true, parcel: '{{ $input.body.parcel }}', total: '{{ $nodes.total.total }}' },
        },
      },
      {
        id: 'later',
        type: 'SET',
        name: 'It was away',
        config: { values: { taken: false, why: '{{ $input.error.message }}' } },
      },
      {
        id: 'warehouse',
        type: 'WEBHOOK_TRIGGER',
        name: 'The warehouse, pretended',
        config: { path: 'warehouse', method: 'POST', responseMode: 'lastNode' },
      },
      {
        id: 'parcel',
        type: 'SET',
        name: 'Number the parcel',
        config: { values: { parcel: '{{ "P-" & $string($round($input.body.total * 7)) }}' } },
      },
    ],
    edges: edges(
      'warehouse -> parcel',
      'order -> total',
      'total -> pass',
      'pass -> taken',
      'pass:error -> later',
    ),
  }),
  first: {
    by: 'webhook',
    path: 'orders',
    body: {
      customer: 'Ada',
      items: [
        { price: 40, count: 3 },
        { price: 12.5, count: 2 },
      ],
    },
  },
}

const report: Template = {
  id: 'report',
  name: 'Scheduled report',
  icon: 'schedules',
  text: 'Each weekday at 8:00 it gathers numbers, works out what stands out, and writes a report.',
  next: 'Runs it once now; activate it for its schedule',
  make: () => ({
    name: 'Morning report',
    description:
      'Runs on weekdays at 8:00 while it is active. Put a query or a request in the place of "Gather".',
    nodes: [
      {
        id: 'weekdays',
        type: 'SCHEDULE_TRIGGER',
        name: 'Weekdays at 8:00',
        config: { cron: '0 8 * * MON-FRI', timezone: 'UTC' },
      },
      { id: 'now', type: 'MANUAL_TRIGGER', name: 'By hand', config: {} },
      {
        id: 'gather',
        type: 'SET',
        name: 'Gather',
        config: {
          values: {
            shops: [
              { name: 'North', orders: 42, target: 40 },
              { name: 'South', orders: 31, target: 35 },
              { name: 'West', orders: 57, target: 50 },
            ],
          },
        },
      },
      {
        id: 'behind',
        type: 'FILTER',
        name: 'Behind their target',
        config: { items: '{{ $input.shops }}', condition: '$item.orders < $item.target' },
      },
      {
        id: 'report',
        type: 'TEMPLATE',
        name: 'Write the report',
        config: {
          text: 'Orders: {{ $sum($nodes.gather.shops.orders) }}. Behind their target: {{ $join($nodes.behind.items.name, ", ") }}.',
        },
      },
    ],
    edges: edges('weekdays -> gather', 'now -> gather', 'gather -> behind', 'behind -> report'),
  }),
  first: { by: 'hand', data: {} },
}

const approval: Template = {
  id: 'approval',
  name: 'Approval',
  icon: 'approvals',
  text: 'Small expenses pass by themselves, large ones wait until somebody has decided, for months if need be.',
  next: 'Runs it with 420: approve it yourself',
  make: () => ({
    name: 'Approve expenses',
    description: 'Expenses of 100 and more wait for a decision; see Approvals.',
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', name: 'An expense', config: {} },
      { id: 'large', type: 'IF_ELSE', name: 'Is it large?', config: { condition: '$input.amount >= 100' } },
      {
        id: 'ask',
        type: 'APPROVAL',
        name: 'Ask',
        config: {
          message: '{{ $input.who }} asks for {{ $input.amount }} for {{ $input.what }}',
          form: { properties: { budget: { type: 'string', title: 'Budget', enum: ['Team', 'Travel'] } } },
        },
      },
      {
        id: 'paid',
        type: 'SET',
        name: 'Pay',
        config: { values: { paid: true, amount: '{{ $trigger.amount }}' } },
      },
      { id: 'refused', type: 'SET', name: 'Do not pay', config: { values: { paid: false } } },
    ],
    edges: edges(
      'start -> large',
      'large:true -> ask',
      'large:false -> paid',
      'ask:approved -> paid',
      'ask:rejected -> refused',
    ),
  }),
  first: { by: 'hand', data: { who: 'Ada', what: 'a train ticket', amount: 420 } },
}

const loop: Template = {
  id: 'loop',
  name: 'Loop over a list',
  icon: 'refresh',
  text: 'Works on each item of a list, four at a time, goes on where one fails, and sums up at the end.',
  next: 'Runs it with eight parcels',
  make: () => ({
    name: 'Send parcels',
    description: 'Each parcel waits for a moment; one without an address fails, and the others go on.',
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', name: 'Parcels', config: {} },
      {
        id: 'each',
        type: 'FOR_EACH',
        name: 'Each parcel',
        config: { items: '{{ $input.parcels }}', concurrency: 4, onItemError: 'collect' },
      },
      { id: 'pack', parentId: 'each', type: 'WAIT', name: 'Pack it', config: { durationMs: 400 } },
      {
        id: 'known',
        parentId: 'each',
        type: 'IF_ELSE',
        name: 'Has an address?',
        config: { condition: '$exists($item.to)' },
      },
      {
        id: 'send',
        parentId: 'each',
        type: 'SET',
        name: 'Send it',
        config: { values: { sent: '{{ $item.id }}', to: '{{ $item.to }}' } },
      },
      {
        id: 'lost',
        parentId: 'each',
        type: 'STOP_AND_ERROR',
        name: 'No address',
        config: { message: 'Parcel {{ $item.id }} has no address' },
      },
      {
        id: 'sum',
        type: 'SET',
        name: 'Sum up',
        config: {
          values: {
            sent: '{{ $count($input.items[$exists(sent)]) }}',
            failed: '{{ $count($input.items[$exists(error)]) }}',
          },
        },
      },
    ],
    edges: edges(
      'start -> each',
      'pack -> known',
      'known:true -> send',
      'known:false -> lost',
      'each -> sum',
    ),
  }),
  first: {
    by: 'hand',
    data: {
      parcels: ['Oslo', 'Rome', 'Lima', null, 'Bonn', 'Kyiv', 'Cork', 'Nara'].map((to, at) =>
        to === null ? { id: at + 1 } : { id: at + 1, to },
      ),
    },
  },
}

const chat: Template = {
  id: 'chat',
  name: 'Chat agent',
  icon: 'chat',
  text: 'Answers messages of a chat with a tool of its own. The demo model needs no key; a real one is one credential away.',
  next: 'Activates it and asks a first question',
  asks: 'DEMO',
  make: ({ credentialId }) => ({
    name: 'Orders assistant',
    description: 'An agent that adds up orders with a tool. The demo model answers by rules.',
    nodes: [
      { id: 'chat', type: 'CHAT_TRIGGER', name: 'A message', config: {} },
      {
        id: 'agent',
        type: 'AI_AGENT',
        name: 'Assistant',
        config: {
          credentialId,
          model: 'demo',
          instructions: 'You answer questions about orders.',
          prompt: '{{ $input.message }}',
          maxSteps: 10,
          tools: [
            {
              type: 'CODE',
              name: 'total',
              description: 'Adds up an order',
              parameters: {
                type: 'object',
                properties: { price: { type: 'number' }, count: { type: 'integer' } },
                required: ['price', 'count'],
              },
              code: 'return { total: $args.price * $args.count }',
            },
          ],
        },
      },
    ],
    edges: edges('chat -> agent'),
  }),
  first: { by: 'chat', message: 'What is the total of price: 7, count: 6?' },
}

/** Graphs to begin with; each runs without a change. */
export const TEMPLATES: readonly Template[] = [webhook, report, approval, loop, chat]
