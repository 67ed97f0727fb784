import { createHash, createHmac } from 'node:crypto'
import canonicalize from 'canonicalize'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { change } from '../../../db/change.ts'
import { openDatabase } from '../../../db/connection.ts'
import { createTeam } from '../../../db/people/teams.ts'
import type { Scope } from '../../../db/scope.ts'
import { purposeKey } from '../../../db/seal.ts'
import { onServer } from '../../support/database.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())
const scope: Scope = {
  store: service.store,
  actor: { kind: 'USER', id: service.user.id, name: 'Grace Hopper' },
  userId: service.user.id,
  instanceAdmin: true,
  access: null,
  roles: new Map([[service.teamId, 'ADMIN']]),
  requestId: 'req-1',
  ip: '127.0.0.1',
  userAgent: null,
}

type Row = Record<string, unknown> & { seq: number; team_id: string; hash: Buffer; prev: Buffer }

const sha256 = (...parts: (Buffer | string)[]) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/**
 * Recomputes the chain from the columns by the documented rule, with none of the service's code except for
 * the key. Returns the faults found: `entry` (does not match its hash), `signature`, `link`, `gap`, `head`,
 * `mac`.
 */
async function verify(teamId: string, run = service): Promise<string[]> {
  const faults: string[] = []
  const { db, keys } = run.store
  const found = await sql<Row>`select *, details::text as details_text,
    to_char(ts at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ts_text
    from audit_entries where team_id = ${teamId} order by seq`.execute(db.withoutPlugins())
  let prev: Buffer = sha256(`audit-v1-genesis|${teamId}`)
  let expected = 1
  for (const row of found.rows) {
    if (row.seq !== expected) faults.push(`gap ${expected}`)
    if (!row.prev.equals(prev)) faults.push(`link ${row.seq}`)
    const details = JSON.parse(row.details_text as string)
    const { actor_name, src_ip, user_agent } = row
    const isOld = row.v === 1
    const covered = canonicalize(
      isOld ? { actor_name, details } : { actor_name, details, src_ip, user_agent },
    )!
    const detailsHash = sha256(row.details_salt as Buffer, covered)
    const core = canonicalize({
      v: row.v,
      team: row.team_id,
      event_id: row.event_id,
      actor: {
        ...{ kind: row.actor_kind, id: row.actor_id, role: row.actor_role },
        ...(isOld ? {} : { user: row.user_id }),
      },
      ...(isOld ? { src_ip } : { access: row.access_id }),
      action: row.action,
      resource: { type: row.resource_type, id: row.resource_id },
      outcome: row.outcome,
      request_id: row.request_id,
      details_sha256: detailsHash.toString('hex'),
    })!
    const seq = Buffer.alloc(8)
    seq.writeBigInt64BE(BigInt(row.seq))
    const hash = sha256('audit-v1', row.prev, seq, row.ts_text as string, sha256(core))
    const same =
      hash.equals(row.hash) && detailsHash.equals(row.details_sha256 as Buffer) && row.id === row.event_id
    const signed = createHmac('sha256', purposeKey(keys, 'audit', row.key_id as string))
      .update(`entry|${row.team_id}|${row.seq}|${row.ts_text}|${sha256(core).toString('hex')}`)
      .digest()
    if (!signed.equals(row.mac as Buffer)) faults.push(`signature ${row.seq}`)
    if (!same || core !== row.core || canonicalize(details) !== row.details_text)
      faults.push(`entry ${row.seq}`)
    prev = row.hash
    expected = row.seq + 1
  }
  const head = (
    await sql<{ seq: number; hash: Buffer; mac: Buffer; key_id: string }>`
      select * from audit_heads where team_id = ${teamId}`.execute(db.withoutPlugins())
  ).rows[0]
  const last = found.rows.at(-1)
  if (!head || head.seq !== last?.seq || !head.hash.equals(last.hash)) faults.push('head')
  else {
    const mac = createHmac('sha256', purposeKey(keys, 'audit', head.key_id))
      .update(`${teamId}|${head.seq}|${head.hash.toString('hex')}`)
      .digest()
    if (!mac.equals(head.mac)) faults.push('mac')
  }
  return faults
}

const append = (teamId: string, details: Record<string, unknown> = {}, from = scope) =>
  change({ ...from, roles: new Map([[teamId, 'ADMIN']]) }, 'WORKFLOW_UPDATED', teamId, async () => ({
    result: undefined,
    resourceId: null,
    details,
  }))

async function makeChain(entries: number): Promise<string> {
  const { id } = await createTeam(scope, { name: 'Chain' })
  for (let i = 1; i < entries; i++) await append(id, { i })
  return id
}

test('the first admin, teams and tokens have audit entries, and the chain verifies', async () => {
  const token = await service.token('VIEWER')
  const rows = await service.store.db
    .selectFrom('auditEntries')
    .selectAll()
    .where('teamId', '=', service.teamId)
    .orderBy('seq')
    .execute()
  expect(rows.map((row) => row.action)).toEqual(['TEAM_CREATED', 'SDK_TOKEN_CREATED'])
  expect(rows[1]).toMatchObject({
    seq: 2,
    actorKind: 'USER',
    actorId: service.user.id,
    actorRole: 'ADMIN',
    actorName: 'Grace Hopper',
    resourceType: 'SDK_TOKEN',
    v: 2,
    userId: service.user.id,
    accessId: expect.stringMatching(/-/),
    outcome: 'SUCCESS',
    requestId: expect.stringMatching(/-/),
    details: { name: 'a VIEWER token', role: 'VIEWER' },
  })
  expect(JSON.stringify(rows)).not.toContain(token)
  expect(await verify(service.teamId)).toEqual([])
})

test('8 writers with 50 entries each, on two pools, make one chain without gaps', async () => {
  const teamId = await makeChain(1)
  const second = openDatabase(service.database.url, { max: 4, name: 'second' })
  const other: Scope = { ...scope, store: { ...service.store, db: second.db } }
  const write = async (writer: number) => {
    for (let i = 0; i < 50; i++) await append(teamId, { writer, i }, writer % 2 ? scope : other)
  }
  await Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)))
  await second.close()
  const rows = await service.store.db
    .selectFrom('auditEntries')
    .select(['seq', 'ts', 'prev'])
    .where('teamId', '=', teamId)
    .orderBy('seq')
    .execute()
  expect(rows.map((row) => row.seq)).toEqual(Array.from({ length: 401 }, (_, i) => i + 1))
  expect(new Set(rows.map((row) => row.prev.toString('hex'))).size).toBe(401)
  expect(rows.every((row, i) => i === 0 || row.ts >= rows[i - 1]!.ts)).toBe(true)
  expect(await verify(teamId)).toEqual([])
})

test('several entries at once behind the first follow each other', async () => {
  const teamId = await makeChain(1)
  await Promise.all(Array.from({ length: 8 }, (_, i) => append(teamId, { i })))
  const rows = await service.store.db
    .selectFrom('auditEntries')
    .select('seq')
    .where('teamId', '=', teamId)
    .execute()
  expect(rows.length).toBe(9)
  expect(await verify(teamId)).toEqual([])
})

test('a failed act leaves neither an entry nor a gap', async () => {
  const teamId = await makeChain(2)
  const failing = change(
    { ...scope, roles: new Map([[teamId, 'ADMIN']]) },
    'WORKFLOW_UPDATED',
    teamId,
    async () => ({ result: 1, resourceId: 'no uuid' }),
  )
  await expect(failing).rejects.toThrow()
  await append(teamId)
  expect(await verify(teamId)).toEqual([])
})

test('strings that PostgreSQL does not take are cleaned and recorded, secrets are not recorded', async () => {
  const teamId = await makeChain(1)
  const hostile = {
    ...scope,
    requestId: 'a\0b\ud800',
    ip: '1.2.3.4\0',
    actor: { ...scope.actor, name: 'x\udfff\0y' },
  }
  await append(
    teamId,
    { nul: '\0', lone: '\ud800', 'k\0': 'e\u0301', n: 1e21, u: undefined, d: new Date(0) },
    hostile,
  )
  await append(teamId, { password: 'hunter2hunter2', note: 'Bearer abcdefghijklmnop0123456789' })
  await append(teamId, { big: Array.from({ length: 2_000 }, (_, i) => `text number ${i} of many`) })
  await append(teamId, JSON.parse('{"__proto__": {"a": 1}, "b": [[[{}]]]}'))
  const rows = await service.store.db
    .selectFrom('auditEntries')
    .selectAll()
    .where('teamId', '=', teamId)
    .execute()
  expect(JSON.stringify(rows)).not.toMatch(/hunter2|abcdefghijklmnop/)
  expect(rows.find((row) => row.seq === 4)?.details).toEqual({ omitted: true, bytes: expect.any(Number) })
  expect(await verify(teamId)).toEqual([])
})

test('the database refuses update, delete and truncate', async () => {
  const { db } = service.store
  for (const statement of [
    sql`update audit_entries set action = 'X'`,
    sql`delete from audit_entries`,
    sql`truncate audit_entries`,
  ]) {
    await expect(statement.execute(db)).rejects.toThrow('cannot be altered')
  }
})

test('a change by an owner who disables the trigger is detected, in every column of every row', async () => {
  const teamId = await makeChain(3)
  const { db } = service.store
  const unnoticed: string[] = []
  const columns = await sql<{ column: string; type: string }>`select column_name as column, data_type as type
    from information_schema.columns where table_name = 'audit_entries'`.execute(db)
  expect(columns.rows.length).toBe(27)
  for (const seq of [1, 2, 3]) {
    // The key of another id is not there: verify.test.ts shows what is said then.
    for (const { column, type } of columns.rows.filter(({ column }) => column !== 'key_id')) {
      const name = sql.ref(column)
      const flipped = {
        uuid: sql`gen_random_uuid()`,
        bytea: sql`set_byte(${name}, 3, get_byte(${name}, 3) # 1)`,
        bigint: sql`${name} + 100`,
        smallint: sql`3 - ${name}`,
        text: sql`coalesce(${name}, '') || 'x'`,
        json: sql`'{"i":99}'::json`,
        'timestamp with time zone': sql`${name} + interval '1 millisecond'`,
      }[type]
      if (!flipped) throw new Error(`no flip for ${type}`)
      await db.transaction().execute(async (tx) => {
        await sql`alter table audit_entries disable trigger user`.execute(tx)
        await sql`create table kept as select * from audit_entries where team_id = ${teamId} and seq = ${seq}`.execute(
          tx,
        )
        await sql`update audit_entries set ${name} = ${flipped} where team_id = ${teamId} and seq = ${seq}`.execute(
          tx,
        )
      })
      const faults = await verify(teamId)
      // A row that was moved away leaves a gap; any other change shows at its own entry.
      const located = faults.some((fault) =>
        column === 'team_id' || column === 'seq'
          ? fault === `gap ${seq}` || fault === 'head' || fault === `entry ${seq + 100}`
          : fault === `${column === 'mac' ? 'signature' : 'entry'} ${seq}`,
      )
      if (!located) unnoticed.push(`${column} of ${seq}: ${faults}`)
      await db.transaction().execute(async (tx) => {
        await sql`delete from audit_entries where core in (select core from kept) or id in (select id from kept)
          or hash in (select hash from kept)`.execute(tx)
        await sql`insert into audit_entries select * from kept`.execute(tx)
        await sql`drop table kept`.execute(tx)
        await sql`alter table audit_entries enable trigger user`.execute(tx)
      })
      expect(await verify(teamId)).toEqual([])
    }
  }
  expect(unnoticed).toEqual([])
})

test('a chain cut at its end is detected, even with an adapted head; it cannot begin again', async () => {
  const teamId = await makeChain(4)
  const { url } = service.database
  await onServer(
    url,
    `alter table audit_entries disable trigger user;
    delete from audit_entries where team_id = '${teamId}' and seq = 4;
    alter table audit_entries enable trigger user`,
  )
  expect(await verify(teamId)).toEqual(['head'])
  await onServer(
    url,
    `update audit_heads h set seq = e.seq, hash = e.hash from audit_entries e
    where e.team_id = h.team_id and e.seq = 3 and h.team_id = '${teamId}'`,
  )
  expect(await verify(teamId)).toEqual(['mac'])
  await onServer(url, `delete from audit_heads where team_id = '${teamId}'`)
  await expect(append(teamId)).rejects.toMatchObject({ code: 'AUDIT_CHAIN_BROKEN' })
})
