import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { checkpointChain } from '../../../db/audit/checkpoints.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { oldTeam, actAt, act, tamper, verdicts } = makeChains(service)
const { store } = service

/** What a chain is verified with, and which row of each is altered. A new table has to be in here, or below. */
const PROOFS: Record<string, string> = {
  audit_anchors: 'true',
  audit_checkpoint_counts: 'true',
  audit_checkpoints: 'true',
  audit_entries: 'seq = 5',
  audit_heads: 'true',
  audit_public_keys: 'true',
  audit_unsigned: 'true',
}

/** What proves nothing: settings, what waits to be entered or sent, and what was made of the entries. */
const OTHERS = [
  'audit_count_folds',
  'audit_counts',
  'audit_forwarders',
  'audit_refusals',
  'audit_report_parts',
  'audit_reports',
  'audit_retention',
]

/** Other values of a column, by its type. */
const FLIPS: Record<string, (name: string) => string> = {
  uuid: () => 'gen_random_uuid()',
  bytea: (name) =>
    `set_byte(coalesce(${name}, '\\x00000000'), 2, get_byte(coalesce(${name}, '\\x00000000'), 2) # 1)`,
  bigint: (name) => `${name} + 1000`,
  smallint: (name) => `3 - ${name}`,
  text: (name) => `coalesce(${name}, '') || ' '`,
  json: (name) => `(${name}::text || ' ')::json`,
  'timestamp with time zone': (name) => `${name} + interval '1 millisecond'`,
}

/** A chain with all that there can be of one: purged, signed, and with entries of a release without signatures. */
async function fullTeam(): Promise<string> {
  const teamId = await oldTeam([402, 401, 400])
  const purged = await service.call('POST', `/api/audit/team/${teamId}/purge`, service.admin)
  expect(purged.body.purgedCount).toBe(3)
  await actAt(teamId, new Date(), { old: true })
  await tamper(`update audit_entries set mac = null, key_id = null where team_id = '${teamId}' and seq = 5`)
  await act(teamId)
  await checkpointChain(store, teamId)
  return teamId
}

test('a change of any column of any table with which a chain is verified is found, and so is a row that is gone', {
  tags: 'long',
  timeout: 240_000,
}, async () => {
  const { rows: columns } = await sql<{ tableName: string; name: string; type: string; nullable: boolean }>`
    select table_name as "tableName", column_name as name, data_type as type, is_nullable = 'YES' as nullable
    from information_schema.columns where table_schema = 'public' and table_name like 'audit\\_%'
    order by table_name, ordinal_position`.execute(store.db)
  const tables = [...new Set(columns.map(({ tableName }) => tableName))]
  expect(tables).toEqual([...Object.keys(PROOFS), ...OTHERS].toSorted())
  const teamId = await fullTeam()
  expect(await verdicts(teamId)).toEqual([])
  const unnoticed: string[] = []
  for (const [table, which] of Object.entries(PROOFS)) {
    const own = table === 'audit_public_keys' ? which : `team_id = '${teamId}' and ${which}`
    const attempt = async (what: string, statement: string) => {
      await tamper(`create table kept as select * from ${table}; ${statement}`)
      if ((await verdicts(teamId)).length === 0) unnoticed.push(what)
      await tamper(`delete from ${table}; insert into ${table} select * from kept; drop table kept`)
    }
    for (const { name, type, nullable } of columns.filter(({ tableName }) => tableName === table)) {
      const flip = FLIPS[type]
      if (!flip) throw new Error(`${table}.${name}: there is no other value for a ${type}`)
      await attempt(`${table}.${name}`, `update ${table} set ${name} = ${flip(name)} where ${own}`)
      if (!nullable) continue
      const { rows } =
        await sql`select from ${sql.raw(table)} where ${sql.raw(own)} and ${sql.raw(name)} is not null`.execute(
          store.db,
        )
      if (rows.length > 0)
        await attempt(`${table}.${name} null`, `update ${table} set ${name} = null where ${own}`)
    }
    // A public key that a master key still gives is made anew when it is needed.
    if (table !== 'audit_public_keys') await attempt(table, `delete from ${table} where ${own}`)
  }
  // When a release has noted what is not signed: nothing reads it.
  expect(unnoticed).toEqual(['audit_unsigned.noted_at'])
  expect(await verdicts(teamId)).toEqual([])
})
