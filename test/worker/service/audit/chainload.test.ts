import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { readBatch } from '../../../../db/audit/siem/sending.ts'
import { startJsonReceiver } from '../../../support/audit/siem/receivers.ts'
import { makeChains } from '../../../support/chains.ts'
import { keep } from '../../../support/keep.ts'
import { startService } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'

const service = await keep(startService({ rateLimits: false }))
const { oldTeam, act, entries, verdicts } = makeChains(service)
const { store } = service
const key = store.keys.byId.get('k1')!.toString('hex')
const ACTS = 40

/** Starts a program of the tests on this database. */
function start(program: string, ...more: string[]): { child: ChildProcess; ended: Promise<unknown> } {
  const path = fileURLToPath(new URL(`../../../support/${program}`, import.meta.url))
  const child = spawn(process.execPath, [path, service.database.url, key, ...more], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, ended: once(child, 'exit') }
}

const at = (teamId: string, rest: string) => `/api/audit/team/${teamId}/${rest}`
const ask = (method: string, path: string, json?: object) => service.call(method, path, service.admin, json)

test('while a chain is written to, purged, verified and forwarded, and senders die, it stays whole and nothing is lost', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const teamId = await oldTeam(Array.from({ length: 80 }, (_, i) => 400 - 5 * i))
  let deaths = 0
  let sender: ReturnType<typeof start> | undefined
  const receiver = await keep(
    startJsonReceiver(async (_batch, number) => {
      // The sender dies before it hears that a batch was taken.
      if (number % 2 === 1 && deaths < 3) {
        deaths++
        sender?.child.kill('SIGKILL')
        await sender?.ended
        sender = start('audit/siem/sender.ts')
      }
      return 200
    }),
  )
  const added = await ask('POST', at(teamId, 'forwarders'), {
    name: 'SIEM',
    type: 'HTTPS',
    url: receiver.url,
    after: 0,
  })
  sender = start('audit/siem/sender.ts')
  const writers = [
    start('audit/writer.ts', teamId, '0,1,2,3', String(ACTS)),
    start('audit/writer.ts', teamId, '4,5,6,7', String(ACTS)),
  ]
  const written = Promise.all(writers.map(({ ended }) => ended))
  let isWritten = false
  void written.then(() => {
    isWritten = true
  })
  const verified: unknown[] = []
  const purged: number[] = []
  // Each purge takes more than the one before.
  for (let round = 1; !isWritten || round <= 6; round++) {
    await ask('PUT', at(teamId, 'retention'), { retentionDays: Math.max(30, 390 - 60 * round) })
    const [purge, verify] = await Promise.all([
      ask('POST', at(teamId, 'purge')),
      ask('GET', at(teamId, 'verify')),
      act(teamId),
    ])
    purged.push(purge.body.purgedCount)
    verified.push(verify.body.valid)
  }
  for (const [code] of (await written) as [number][]) expect(code).toBe(0)
  expect(purged.filter((count) => count > 0).length).toBeGreaterThan(2)
  expect(new Set(verified)).toEqual(new Set([true]))
  expect(await verdicts(teamId)).toEqual([])

  const forwarder = await until(
    async () => (await ask('GET', at(teamId, `forwarders/${added.body.id}`))).body,
    {
      holds: ({ waiting }) => waiting === 0,
    },
  )
  expect(forwarder.lastError).toBeNull()
  expect(deaths).toBeGreaterThan(0)
  const left = await entries(teamId)
  const last = left.at(-1)!.seq
  expect(left.map(({ seq }) => seq)).toEqual(left.map((_, i) => left[0]!.seq + i))
  const acts = left.flatMap(({ details }) => (details as { act?: string }).act ?? [])
  expect(new Set(acts).size).toBe(8 * ACTS)
  // What was not sent was purged before, and is counted; so is what a sender could not note before it died.
  const sent = new Set(receiver.seqs())
  expect(sent.size + forwarder.missed).toBeGreaterThanOrEqual(last)
  for (const { seq } of left) expect(sent.has(seq)).toBe(true)
  // An entry that is sent again is the same one.
  const ids = new Map<number, string>()
  for (const { events } of receiver.batches) {
    for (const { event } of events as unknown as { event: { sequence: number; id: string } }[]) {
      expect(event.id).toMatch(/^[\w-]{36}$/)
      expect(ids.get(event.sequence) ?? event.id).toBe(event.id)
      ids.set(event.sequence, event.id)
    }
  }
  expect(new Set(ids.values()).size).toBe(ids.size)
})

test('a purge between the two reads of a batch makes none of its entries missed', async () => {
  const teamId = await oldTeam([50, 45, 40, 5])
  await ask('PUT', at(teamId, 'retention'), { retentionDays: 30 })
  let purged: number | undefined
  const db = store.db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      // Once the entries are there.
      if (result.rows.length > 1) purged ??= (await ask('POST', at(teamId, 'purge'))).body.purgedCount
      return result
    },
  })
  const { entries: batch, missed } = await readBatch(
    { ...store, db },
    { teamId, sentSeq: 0, lastSeq: null },
    100,
  )
  expect([purged, batch.map(({ seq }) => seq), missed]).toEqual([3, [1, 2, 3, 4, 5], 0])
})
