import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { afterEach, describe, expect, test } from 'vitest'
import { write } from '../../db/change.ts'
import type { Database, Tx } from '../../db/connection.ts'
import { claimDeliveries, postponeDelivery, settleDelivery } from '../../db/monitoring/channels/deliveries.ts'
import { claimRuns, endRun, postponeRun } from '../../db/monitoring/playbooks/runs.ts'
import { claimReportRuns, noteReportEnded, noteReportFailed } from '../../db/monitoring/reports/claims.ts'
import { claimMails, postponeMail, settleMail } from '../../db/people/mails.ts'
import { claimReport, failReport, releaseClaim } from '../../db/reports/claims.ts'
import { keep } from '../support/keep.ts'
import { startService } from '../support/service.ts'

const { store } = await keep(startService())

const LEASE_MS = 60_000

type Row = { id: string; teamId: string | null }

/** What the tests call of a queue: `hasToken` if what a process says counts only while it has the row. */
type Case = {
  table: string
  hasToken: boolean
  /** Whether several teams take turns, and each row of a claim is of another one. */
  turns: boolean
  add: (tx: Tx, row: { id: string; teamId: string }) => Promise<unknown>
  claim: (limit: number) => Promise<Row[]>
  settle: (row: never) => Promise<unknown>
  postpone: (row: never) => Promise<unknown>
  /** Makes a claim end now. */
  endLease: (tx: Tx) => Promise<unknown>
}

const endByDue = (table: string) => (tx: Tx) => sql`update ${sql.table(table)} set due_at = now()`.execute(tx)

const CASES: Case[] = [
  {
    ...{ table: 'mails', hasToken: false, turns: false, endLease: endByDue('mails') },
    add: (tx, { id, teamId }) =>
      sql`insert into mails (id, kind, team_id, email) values (${id}, 'CONFIRM', ${teamId}, 'a@example.com')`.execute(
        tx,
      ),
    claim: (limit) => claimMails(store, limit, LEASE_MS),
    settle: ({ id }: Row) => settleMail(store, id),
    postpone: ({ id }: Row) => postponeMail(store, id, LEASE_MS, 'no'),
  },
  {
    ...{ table: 'notification_deliveries', hasToken: true, turns: true },
    endLease: endByDue('notification_deliveries'),
    add: (tx, { id, teamId }) =>
      sql`insert into notification_deliveries (id, team_id, notice_id, target)
        values (${id}, ${teamId}, ${uuid()}, 'email')`.execute(tx),
    claim: (limit) =>
      claimDeliveries(store, { limit, ofTeam: 5, leaseMs: LEASE_MS, busy: new Map(), failing: true }),
    settle: (row) => settleDelivery(store, row, null),
    postpone: (row) => postponeDelivery(store, row, { delayMs: LEASE_MS, error: 'no' }),
  },
  {
    ...{ table: 'playbook_runs', hasToken: true, turns: true, endLease: endByDue('playbook_runs') },
    add: (tx, { id, teamId }) =>
      sql`insert into playbook_runs (id, team_id, playbook_id, notice_id, hour, steps)
        values (${id}, ${teamId}, ${uuid()}, ${uuid()}, now(), '[]')`.execute(tx),
    claim: (limit) => claimRuns(store, limit, LEASE_MS),
    settle: (row) => endRun(store, row, 'COMPLETED'),
    postpone: (row) => postponeRun(store, row, LEASE_MS),
  },
  {
    ...{ table: 'scheduled_report_runs', hasToken: true, turns: true },
    endLease: (tx) =>
      sql`update scheduled_report_runs set claimed_until = now() - interval '1 s'`.execute(tx),
    add: (tx, { id, teamId }) =>
      sql`insert into scheduled_report_runs
          (id, report_id, team_id, slot, name, timezone, recipients, metrics, period_from, status)
        values (${id}, ${uuid()}, ${teamId}, now(), 'A', 'UTC', '{}', '{}', now() - interval '1 h', 'PENDING')`.execute(
        tx,
      ),
    claim: (limit) => claimReportRuns(store, limit, LEASE_MS),
    settle: (row) => noteReportEnded(store, row, null),
    postpone: (row) => noteReportFailed(store, row, { message: 'no', delayMs: LEASE_MS }),
  },
  {
    ...{ table: 'audit_reports', hasToken: true, turns: true, endLease: endByDue('audit_reports') },
    add: (tx, { id, teamId }) =>
      sql`insert into audit_reports (id, team_id, name, type, from_at, to_at, created_by_name, expires_at)
        values (${id}, ${teamId}, 'A', 'ACTIVITY', now() - interval '1 h', now(), 'Ada', now())`.execute(tx),
    claim: async (limit) => {
      const found: Row[] = []
      while (found.length < limit) {
        const row = await claimReport(store, LEASE_MS)
        if (!row) break
        found.push(row)
      }
      return found
    },
    settle: (row) => failReport(store, row, 'no'),
    postpone: (row) => releaseClaim(store, row, { delayMs: LEASE_MS }),
  },
]

/** Writes rows without what they refer to, and without what their triggers would do. */
const bare = (work: (tx: Tx) => Promise<unknown>) =>
  (store.db as Database).transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx)
    await work(tx)
  })

describe.each(CASES)('the queue $table', (queue) => {
  const add = async (teamId: string = uuid()) => {
    const id = uuid()
    await bare((tx) => queue.add(tx, { id, teamId }))
    return id
  }
  const read = async (id: string) => {
    const { rows } = await sql`select * from ${sql.table(queue.table)} where id = ${id}`.execute(store.db)
    return rows[0]
  }
  const endLease = () => write(store, (tx) => queue.endLease(tx))
  afterEach(() => bare((tx) => sql`delete from ${sql.table(queue.table)}`.execute(tx)))

  test('what a process that died has claimed goes to another one when the lease ends, not before', async () => {
    const id = await add()
    expect(await queue.claim(5)).toMatchObject([{ id }])
    expect(await queue.claim(5)).toEqual([])
    await endLease()
    const [second] = await queue.claim(5)
    expect(second).toMatchObject({ id })
    await queue.settle(second as never)
    await endLease()
    expect(await queue.claim(5)).toEqual([])
  })

  test.runIf(queue.hasToken)('what the one that lost it says later changes nothing', async () => {
    const id = await add()
    const [first] = await queue.claim(1)
    await endLease()
    const [second] = await queue.claim(1)
    const before = await read(id)
    await queue.settle(first as never)
    await queue.postpone(first as never)
    expect(await read(id)).toEqual(before)
    await queue.settle(second as never)
    expect(await read(id)).not.toEqual(before)
  })

  test('a row that is given back is due again later', async () => {
    const id = await add()
    const [row] = await queue.claim(1)
    await queue.postpone(row as never)
    expect(await queue.claim(1)).toEqual([])
    await write(store, endByDue(queue.table))
    expect(await queue.claim(1)).toMatchObject([{ id }])
  })

  test('of many that claim at the same time no two get the same row', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => add()))
    const claims = await Promise.all(Array.from({ length: 8 }, () => queue.claim(3)))
    const taken = claims.flat().map(({ id }) => id)
    expect(new Set(taken).size).toBe(taken.length)
    for (let more = ['']; more.length > 0; taken.push(...more))
      more = (await queue.claim(5)).map(({ id }) => id)
    expect(taken.sort()).toEqual(ids.sort())
  })

  test.runIf(queue.turns)('the teams take turns: many rows of one hold no other up', async () => {
    const [large, small] = [uuid(), uuid()]
    for (let i = 0; i < 10; i++) await add(large)
    await add(small)
    const teams = (await queue.claim(2)).map(({ teamId }) => teamId)
    expect(teams.sort()).toEqual([large, small].sort())
  })
})
