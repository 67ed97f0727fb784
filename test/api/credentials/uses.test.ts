import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createCredentials } from '../../../activities/credentials/credentials.ts'
import { NOWHERE } from '../../../activities/egress/outside.ts'
import { settleOpenings } from '../../../db/credentials/opens.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import type { Body } from '../../support/service.ts'

const host = await keep(shareRunning())
const { store, teamId } = host
const HOUR_MS = 3_600_000

async function make(name: string, team = teamId, as = host.admin): Promise<string> {
  const json = { teamId: team, name, type: 'HTTP_BEARER', data: { token: 'a secret token' } }
  return (await host.ask<Body>('POST', '/api/credentials', json, as)).id
}

async function usesOf(team = teamId) {
  const { rows } = await sql<{ resourceId: string; actorKind: string; details: Body }>`
    select resource_id, actor_kind, details from audit_entries
    where team_id = ${team} and action = 'CREDENTIAL_USED' order by seq`.execute(store.db)
  return rows
}

/** Settles as the housekeeping does in two hours. */
const settle = () =>
  settleOpenings(
    store,
    (_, error) => {
      throw error
    },
    new Date(Date.now() + 2 * HOUR_MS),
  )

const countRows = async () => (await sql`select from credential_opens`.execute(store.db)).rows.length

test('what attempts of nodes open is one entry for a credential, a workflow and an hour', {
  tags: 'long',
}, async () => {
  const credentialId = await make('mail')
  const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
  // Nobody listens there: the attempt opens the credential, and fails.
  const url = 'http://127.0.0.1:9/'
  const call = { id: 'call', type: 'HTTP_REQUEST', config: { url, credentialId } }
  const workflowId = await host.create({
    nodes: [start, call],
    edges: [{ source: 'start', target: 'call' }],
  } as Parameters<typeof host.create>[0])
  const runs = await Promise.all([1, 2, 3].map(() => host.execute(workflowId, {})))
  for (const id of runs) await host.ended(id, 30_000)
  const { rows } = await sql<{ opened: number; hour: Date }>`
    select sum(opened)::int as opened, min(hour) as hour from credential_opens`.execute(store.db)
  const { opened, hour } = rows[0]!
  expect(opened).toBeGreaterThanOrEqual(3)
  // The hour is not over yet.
  await settleOpenings(store, () => {})
  expect(await usesOf()).toEqual([])
  await Promise.all([settle(), settle()])
  const uses = await usesOf()
  expect(uses.reduce((sum, { details }) => sum + details.count, 0)).toBe(opened)
  expect(uses[0]).toMatchObject({
    resourceId: credentialId,
    actorKind: 'SYSTEM',
    details: { name: 'mail', workflowId, hour: hour.toISOString() },
  })
  // All in one hour, unless the test has run over the end of one.
  expect(uses.length).toBe(new Set(uses.map(({ details }) => details.hour)).size)
  expect(JSON.stringify(uses)).not.toContain('a secret token')
  expect(await countRows()).toBe(0)
})

test('thousands of openings at once are counted exactly, in few statements, each before it is used', {
  tags: 'long',
}, async () => {
  const credentialId = await make('busy')
  const place = { teamId, workflowId: crypto.randomUUID() }
  const before = await sql<{ xid: string }>`select txid_current()::text as xid`.execute(store.db)
  await Promise.all(
    Array.from({ length: 2_000 }, async () => {
      const credentials = createCredentials(store, NOWHERE, place)
      await credentials.open(credentialId, 'HTTP')
      // Once for a call, however often it opens the credential.
      await credentials.open(credentialId, 'HTTP')
    }),
  )
  const after = await sql<{ xid: string }>`select txid_current()::text as xid`.execute(store.db)
  const { rows } = await sql<{ opened: number }>`
    select sum(opened)::int as opened from credential_opens where credential_id = ${credentialId}`.execute(
    store.db,
  )
  expect(rows[0]!.opened).toBe(2_000)
  // Transactions that write, of the whole cluster: the test's own would be 2,000.
  expect(Number(after.rows[0]!.xid) - Number(before.rows[0]!.xid)).toBeLessThan(1_000)
})

test('the last hour of a team that is deleted is in its chain, before its end', async () => {
  const { body } = await host.call('POST', '/api/teams', host.admin, { name: 'Short' })
  const credentialId = await make('last', body.id)
  const place = { teamId: body.id, workflowId: crypto.randomUUID() }
  await createCredentials(store, NOWHERE, place).open(credentialId, 'HTTP')
  expect((await host.call('DELETE', `/api/teams/${body.id}`, host.admin)).status).toBe(200)
  expect(await usesOf(body.id)).toMatchObject([{ resourceId: credentialId, details: { count: 1 } }])
  const { rows } = await sql<{ action: string }>`select action from audit_entries
    where team_id = ${body.id} order by seq desc limit 1`.execute(store.db)
  expect(rows).toEqual([{ action: 'TEAM_DELETED' }])
})
