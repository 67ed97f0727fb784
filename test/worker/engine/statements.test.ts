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

/**
 * How many statements one execution costs on average, and how many of them write; without what the process does at
 * intervals, and without what it does for those that take longer than half a second, as many do on a busy machine.
 */
async function measure(one: () => Promise<void>, inFlight: number) {
  for (let i = 0; i < 3; i++) await one()
  sent.clear()
  let left = EXECUTIONS
  const work = async () => {
    while (left-- > 0) await one()
  }
  await Promise.all(Array.from({ length: inFlight }, work))
  const often = [...sent].filter(([text, times]) => times > EXECUTIONS / 20 && !isOfLong(text))
  const count = (some: [string, number][]) => some.reduce((sum, [, times]) => sum + times, 0) / EXECUTIONS
  return { statements: count(often), writes: count(often.filter(([text]) => isWrite(text))), often }
}

const isWrite = (text: string) => /\b(insert into|delete from)\b|\bupdate \w+ \w+ set\b/.test(text)

/** Marks as RUNNING, watches for the end in another process, and looks whether it has come. */
const isOfLong = (text: string) =>
  /set status = 'RUNNING'|\bwatches\b|pg_current_snapshot|^select ("status"|"e"."status", "h")/.test(text)

test.each([
  { name: 'a webhook whose caller waits', one: fire, most: 5 },
  { name: 'an execute that waits', one: executeAndWait, most: 4 },
])(
  '$name costs $most statements, three of which write, and fewer the more are in flight',
  async ({ one, most }) => {
    const alone = await measure(one, 1)
    const told = JSON.stringify(alone.often, null, 1)
    expect(alone.statements, told).toBeLessThan(most + 0.5)
    expect(alone.writes, told).toBeLessThan(3.5)
    const together = await measure(one, 20)
    expect(together.writes, JSON.stringify(together.often, null, 1)).toBeLessThan(alone.writes - 0.3)
  },
)
