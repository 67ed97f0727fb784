import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { countAuditBlocks } from '../../../db/audit/counts.ts'
import { fillChain } from '../../support/audit/fill.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

/** Totals of lists that are filtered come from counts of whole blocks, and are the same as without them. */

const service = await keep(startService({ rateLimits: false }))
const teamId = await makeChains(service).team(1)
/** Two whole blocks, and some behind them. */
const ENTRIES = 9_000
const people = Array.from({ length: 3 }, () => crypto.randomUUID())
const begin = Date.now()
const at = (seq: number) => new Date(begin + seq)
await fillChain(service.store, teamId, ENTRIES, {
  at,
  vary: (_, seq) => ({
    userId: people[seq % 3]!,
    action: seq % 500 === 3 ? 'TEAM_UPDATED' : 'WORKFLOW_UPDATED',
    resourceType: seq % 500 === 3 ? 'TEAM' : 'WORKFLOW',
    outcome: seq % 100 === 7 ? 'DENIED' : 'SUCCESS',
  }),
})

const FILTERS: Record<string, string>[] = [
  {},
  { action: 'TEAM_UPDATED' },
  { resourceType: 'WORKFLOW' },
  { outcome: 'DENIED' },
  { outcome: 'FAILURE' },
  { userId: people[1]! },
  { userId: people[1]!, outcome: 'DENIED', action: 'WORKFLOW_UPDATED' },
]
const SPANS: Record<string, string>[] = [
  {},
  { from: at(100).toISOString() },
  { to: at(8_192).toISOString() },
  { from: at(4_097).toISOString(), to: at(8_193).toISOString() },
  { from: at(4_200).toISOString(), to: at(4_300).toISOString() },
]

const list = async (query: Record<string, string>) => {
  const asked = new URLSearchParams({ ...query, size: '5' })
  const { status, body } = await service.call('GET', `/api/audit/team/${teamId}?${asked}`, service.admin)
  expect(status).toBe(200)
  const { totalElements, content } = body
  return { totalElements, seqs: content.map(({ seq }: { seq: number }) => seq) }
}

test('a filtered list has the same total and entries with counts of blocks as without', async () => {
  const queries = FILTERS.flatMap((filter) => SPANS.map((span) => ({ ...filter, ...span })))
  const before = await Promise.all(queries.map(list))
  expect(before.find((_, n) => queries[n]!.outcome === 'DENIED')!.totalElements).toBe(90)
  await countAuditBlocks(service.store)
  const { rows } = await sql`select until from audit_count_folds where team_id = ${teamId}`.execute(
    service.store.db,
  )
  expect(rows).toEqual([{ until: 8_192 }])
  expect(await Promise.all(queries.map(list))).toEqual(before)
})
