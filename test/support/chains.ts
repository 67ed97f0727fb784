import { sql } from 'kysely'
import { makeBody } from '../../db/audit/audit.ts'
import { openChain, putEntry } from '../../db/audit/chain.ts'
import { genesisHash, hashLink, hashPersonal } from '../../db/audit/signing.ts'
import { verifyAudit } from '../../db/audit/verify/verify.ts'
import { serviceScope } from '../../db/scope.ts'
import { onServer } from './database.ts'
import type { Service } from './service.ts'

/** What tests of audit chains do: acts over HTTP, and attacks of somebody who can write to the database. */
export function makeChains(service: Service) {
  const { db } = service.store

  /** A team whose chain has `entries` entries. */
  async function team(entries = 4): Promise<string> {
    const { body } = await service.call('POST', '/api/teams', service.admin, { name: 'Chain' })
    for (let i = 1; i < entries; i++) await act(body.id, `name ${i}`)
    return body.id
  }

  /** An act of the team's ADMIN that is not urgent. */
  const act = (teamId: string, name: string = crypto.randomUUID()) =>
    service.call('PUT', `/api/teams/${teamId}`, service.admin, { name })

  /** Changes rows as the owner of the database can, with the triggers disabled. */
  const tamper = (statement: string) =>
    onServer(service.database.url, `set session_replication_role = replica; ${statement}`)

  /**
   * Rewrites an entry with the hashes of all behind it, and moves the head to the last: all that can be done
   * without the key. `core` changes what the entry says.
   */
  async function rewrite(teamId: string, seq: number, core: (text: string) => string): Promise<void> {
    const { rows } = await sql<{ seq: number; core: string; ts: string }>`
      select seq, core, to_char(ts at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ts
      from audit_entries where team_id = ${teamId} order by seq`.execute(db)
    let prev = genesisHash(teamId)
    const statements: string[] = []
    for (const row of rows) {
      const text = row.seq === seq ? core(row.core) : row.core
      const hash = hashLink({ teamId, seq: row.seq, prev, ts: row.ts, core: text })
      const hex = (bytes: Buffer) => `'\\x${bytes.toString('hex')}'`
      const { action } = JSON.parse(text)
      statements.push(`update audit_entries set prev = ${hex(prev)}, hash = ${hex(hash)}, action = '${action}',
        core = '${text.replaceAll("'", "''")}' where team_id = '${teamId}' and seq = ${row.seq}`)
      prev = hash
    }
    await tamper(`${statements.reverse().join(';')}; ${adaptHead(teamId)}`)
  }

  /** Moves the head to the last entry, without the key. */
  const adaptHead = (teamId: string) => `update audit_heads h set seq = e.seq, hash = e.hash, ts = e.ts
    from audit_entries e where e.team_id = h.team_id and h.team_id = '${teamId}'
      and e.seq = (select max(seq) from audit_entries where team_id = h.team_id)`

  /**
   * A team whose chain was begun long ago: with an entry at each of `days` before now, of 24 hours, the oldest first.
   * Each is as the service would have written it then.
   */
  async function oldTeam(days: number[]): Promise<string> {
    const teamId = await team(1)
    await tamper(`delete from audit_entries where team_id = '${teamId}';
      delete from audit_heads where team_id = '${teamId}'`)
    await db.transaction().execute((tx) => openChain(tx, service.store.keys, teamId))
    for (const ago of days) await actAt(teamId, new Date(Date.now() - ago * 86_400_000))
    return teamId
  }

  /** Appends an entry at another time than now; `old`: as the release before wrote it, signed, and of version 1. */
  async function actAt(teamId: string, at: Date, { old = false } = {}): Promise<void> {
    const { keys } = service.store
    const actor = { kind: 'USER', id: service.user.id, name: 'Grace' } as const
    const scope = { ...serviceScope(service.store, actor, [[teamId, 'ADMIN']]), ip: '203.0.113.7' }
    const entry = { chain: teamId, role: 'ADMIN', resourceId: teamId, details: { at: at.toISOString() } }
    await db.transaction().execute(async (tx) => {
      const heads = tx.selectFrom('auditHeads').selectAll().where('teamId', '=', teamId)
      const head = await heads.executeTakeFirstOrThrow()
      const place = { seq: head.seq + 1, prev: head.hash, ts: at.toISOString() }
      let body = makeBody(scope, 'TEAM_UPDATED', entry)
      if (old) {
        body = { ...body, v: 1, userId: null, accessId: null, userAgent: null }
        body = { ...body, detailsSha256: hashPersonal(body.detailsSalt, 1, body) }
      }
      if (!(await putEntry(tx, keys, body, place, sql`select false as bare`))) throw new Error('not appended')
    })
  }

  const verdicts = async (teamId: string) =>
    (await verifyAudit(service.store, teamId)).findings.map(({ verdict, seq }) => `${verdict} ${seq}`)

  /** The entries of a chain, in its order. */
  const entries = (teamId: string) =>
    db.selectFrom('auditEntries').selectAll().where('teamId', '=', teamId).orderBy('seq').execute()

  return { team, oldTeam, actAt, act, tamper, rewrite, adaptHead, verdicts, entries }
}
