import pg from 'pg'
import { afterAll, expect, test, vi } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'

const EXECUTIONS = 40

/** How often each statement was sent to PostgreSQL by this process. */
const sent = new Map<string, number>()
const { query } = pg.Client.prototype
const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
  this: pg.Client,
  ...args: unknown[]
) {
  const [first] = args as [string | { text: string }]
  const text = (typeof first === 'string' ? first : first.text).replace(/\s+/g, ' ')
  sent.set(text, (sent.get(text) ?? 0) + 1)
  return Reflect.apply(query, this, args)
} as never)
afterAll(() => spy.mockRestore())

const host = await keep(startRunning())
await host.store.db.updateTable('teams').set({ plan: 'ENTERPRISE' }).execute()
const token = await host.token('OPERATOR')
const workflowId = await host.create({
  nodes: [
    { id: 'start', type: 'WEBHOOK_TRIGGER', config: { path: 'in', responseMode: 'lastNode' } },
    { id: 'order', type: 'SET', config: { values: { amount: '{{ $input.body.amount }}' } } },
    { id: 'large', type: 'IF_ELSE', config: { condition: '$input.amount >= 100' } },
    { id: 'review', type: 'SET', config: { values: { text: 'total: {{ $input.amount }}' } } },
  ],
  edges: [
    { source: 'start', target: 'order' },
    { source: 'order', target: 'large' },
    { source: 'large', sourceHandle: 'true', target: 'review' },
  ],
})
await host.ask('PUT', `/api/workflows/${workflowId}`, { active: true })

async function fire(): Promise<void> {
  const { status, text } = await host.call('POST', `/hooks/${workflowId}/in`, undefined, { amount: 120 })
  expect(status, text).toBe(200)
}

async function executeAndWait(): Promise<void> {
  const path = `/api/workflows/${workflowId}/execute?waitMs=60000`
  const { status, text } = await host.call('POST', path, token, {
    teamId: host.teamId,
    data: { body: { amount: 120 } },
  })
  expect(status, text).toBe(200)
}

/** How often each statement was sent while EXECUTIONS were executed, so many at once. */
async function countSent(
  one: () => Promise<void>,
  inFlight: number,
): Promise<[text: string, times: number][]> {
  for (let i = 0; i < 3; i++) await one()
  sent.clear()
  let left = EXECUTIONS
  const work = async () => {
    while (left-- > 0) await one()
  }
  await Promise.all(Array.from({ length: inFlight }, work))
  return [...sent]
}

/** How many statements one execution costs, of those that `count`. */
function costOf(
  statements: [text: string, times: number][],
  count: (text: string, times: number) => boolean,
) {
  const counted = statements.filter(([text, times]) => count(text, times))
  return counted.reduce((sum, [, times]) => sum + times, 0) / EXECUTIONS
}

/** What is done for those that take longer than half a second, as some do on a busy machine. */
const isOfLong = (text: string) =>
  /set status = 'RUNNING'|\bwatches\b|pg_current_snapshot|^select ("status"|"e"."status", "h")/.test(text)

const isWrite = (text: string) =>
  /insert into (executions|request_counts)\b|update executions e set/.test(text)

test.each([
  { name: 'a webhook whose caller waits', one: fire, most: 5 },
  { name: 'an execute that waits', one: executeAndWait, most: 4 },
])(
  '$name costs $most statements, three of which write, and fewer the more are in flight',
  async ({ one, most }) => {
    const alone = await countSent(one, 1)
    const told = JSON.stringify(alone, null, 1)
    // What the process does at intervals comes less often.
    expect(Math.round(costOf(alone, (text, times) => times > EXECUTIONS / 2 && !isOfLong(text))), told).toBe(
      most,
    )
    expect(Math.round(costOf(alone, isWrite)), told).toBe(3)
    // Where many are in flight, several are counted, accepted and ended by one statement.
    const together = await countSent(one, 20)
    expect(costOf(together, isWrite), JSON.stringify(together, null, 1)).toBeLessThan(2)
  },
)
