/** @typedef {import('./editor.js').Draft} Draft */

/** @param {...string} arrows `a -> b`, `a:handle -> b` */
function edges(...arrows) {
  return arrows.map((arrow) => {
    const [from = '', target = ''] = arrow.split(' -> ')
    const [source = '', sourceHandle] = from.split(':')
    return sourceHandle ? { source, sourceHandle, target } : { source, target }
  })
}

/**
 * Graphs to begin with; each runs as it stands. One with `asks` names a credential of that type.
 * @type {{ name: string, asks?: string, make: (credentialId?: string) => Draft }[]}
 */
export const EXAMPLES = [
  {
    name: 'Hello',
    make: () => ({
      name: 'Hello',
      description: 'Data such as {"name": "Ada"} makes a greeting.',
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'greet',
          type: 'SET',
          name: 'Make the greeting',
          config: { values: { text: 'Hello {{ $input.name }}', length: '{{ $length($input.name) }}' } },
        },
      ],
      edges: edges('start -> greet'),
    }),
  },
  {
    name: 'Choose a branch',
    make: () => ({
      name: 'Sort an order',
      description: 'Data such as {"amount": 120} goes to review, less than 100 is accepted.',
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'large', type: 'IF_ELSE', name: 'Is it large?', config: { condition: '$input.amount >= 100' } },
        {
          id: 'review',
          type: 'SET',
          name: 'Ask for a review',
          config: { values: { decision: 'review', amount: '{{ $input.amount }}' } },
        },
        {
          id: 'accept',
          type: 'SET',
          name: 'Accept',
          config: { values: { decision: 'accepted', amount: '{{ $input.amount }}' } },
        },
        { id: 'done', type: 'MERGE', name: 'Decision', config: {} },
      ],
      edges: edges(
        'start -> large',
        'large:true -> review',
        'large:false -> accept',
        'review -> done',
        'accept -> done',
      ),
    }),
  },
  {
    name: 'Call a URL, with retries',
    make: () => ({
      name: 'Look at a service',
      description: 'Calls a URL three times at most; whether it answers decides the branch.',
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'call',
          type: 'HTTP_REQUEST',
          name: 'Call it',
          config: { url: 'https://example.com/' },
          retry: { maxAttempts: 3, initialIntervalMs: 500 },
          onError: 'BRANCH',
        },
        {
          id: 'up',
          type: 'SET',
          name: 'It answers',
          config: { values: { up: true, status: '{{ $input.status }}' } },
        },
        {
          id: 'down',
          type: 'SET',
          name: 'It does not',
          config: { values: { up: false, why: '{{ $input.error.message }}' } },
        },
      ],
      edges: edges('start -> call', 'call -> up', 'call:error -> down'),
    }),
  },
  {
    name: 'Wait, then go on',
    make: () => ({
      name: 'Wait half a minute',
      description: 'Waits 30 s; cancel it, or stop the service and start it again: it goes on.',
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'wait', type: 'WAIT', name: 'Half a minute', config: { durationMs: 30_000 } },
        { id: 'after', type: 'SET', name: 'Afterwards', config: { values: { waited: true } } },
      ],
      edges: edges('start -> wait', 'wait -> after'),
    }),
  },
  {
    name: 'Webhook to list',
    make: () => ({
      name: 'Orders by webhook',
      description:
        'POST {"items": [{"price": 40, "count": 3}]} to /hooks/<workflow id>/orders once it is active.',
      nodes: [
        { id: 'order', type: 'WEBHOOK_TRIGGER', config: { path: 'orders', method: 'POST' } },
        {
          id: 'dear',
          type: 'FILTER',
          name: 'Dear items only',
          config: { items: '{{ $input.body.items }}', condition: '$item.price > 20' },
        },
        {
          id: 'total',
          type: 'SET',
          name: 'Add them up',
          config: { values: { total: '{{ $sum($input.items.(price * count)) }}' } },
        },
      ],
      edges: edges('order -> dear', 'dear -> total'),
    }),
  },
  {
    name: 'An agent, with the demo model',
    asks: 'DEMO',
    make: (credentialId) => ({
      name: 'Ask an agent',
      description:
        'Data such as {"question": "What is the total of price: 7, count: 6?"}. The demo model answers by rules.',
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'agent',
          type: 'AI_AGENT',
          name: 'Agent',
          config: {
            credentialId,
            model: 'demo',
            instructions: 'You answer questions about orders.',
            prompt: '{{ $input.question }}',
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
      edges: edges('start -> agent'),
    }),
  },
]
