import { sql } from 'kysely'
import { write } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { type OpenedCredential, openSealed } from '../../credentials/open.ts'
import type { CredentialType } from '../../credentials/types.ts'
import { Fault } from '../../fault.ts'
import type { Store } from '../../scope.ts'
import { lockHead } from '../chain.ts'

/**
 * A person who stops a forwarder, sends it elsewhere, or deletes its team must not do so behind the receiver's back: a
 * hidden copy of it, which cannot be changed, goes on up to the entry of that act.
 */

/** For how many hours a copy is tried. */
const HOURS = 24

/** How many copies a team may have. */
const MAX_FAREWELLS = 20

/** What a copy signs in with, as it was: the credential may be gone. Bytes are Base64. */
export type KeptCredential = {
  name: string
  type: string
  revision: number
  expiresAt: string | null
  broken: string | null
  sealed: string
  wrapped: string
}

/**
 * Lets the receiver of a forwarder have the entry that the transaction is about to append: the caller's one, and no
 * other before it. Throws CONFLICT if too many receivers are still waiting for theirs.
 */
export async function bidFarewell(tx: Tx, teamId: string, id: string): Promise<void> {
  const { rows } = await sql<{ waiting: number }>`
    select count(*)::int as waiting from audit_forwarders where team_id = ${teamId} and ends_at is not null`.execute(
    tx,
  )
  if (rows[0]!.waiting >= MAX_FAREWELLS)
    throw new Fault('CONFLICT', 'Too many receivers have yet to be told of earlier changes: try again later')
  const head = await lockHead(tx, teamId)
  await copy(tx, teamId, { id, lastSeq: (head?.seq ?? 0) + 1 })
}

/**
 * The same for all forwarders of a team that is deleted. If the team's own rules of egress go with it, the allowed
 * receivers are unknown: then nothing is sent.
 */
export async function bidTeamFarewell(tx: Tx, teamId: string): Promise<void> {
  await copy(tx, teamId, { id: null, lastSeq: null })
  await sql`delete from audit_forwarders f where team_id = ${teamId}
    and (ends_at is null or exists (select from team_egress e where e.team_id = f.team_id))`.execute(tx)
}

async function copy(
  tx: Tx,
  teamId: string,
  { id, lastSeq }: { id: string | null; lastSeq: number | null },
): Promise<void> {
  await sql`
    insert into audit_forwarders (id, team_id, name, type, host, port, ca_certificate, url, credential_id, sent_seq,
      ends_at, last_seq, kept_credential)
    select gen_random_uuid(), f.team_id, f.name, f.type, f.host, f.port, f.ca_certificate, f.url, f.credential_id,
      f.sent_seq, now() + ${HOURS} * interval '1 hour', ${lastSeq},
      case when c.id is not null then json_build_object('name', c.name, 'type', c.type, 'revision', c.revision,
        'expiresAt', c.expires_at, 'broken', c.broken, 'sealed', encode(c.sealed, 'base64'),
        'wrapped', encode(c.wrapped, 'base64')) end
    from audit_forwarders f left join credentials c on c.id = f.credential_id and c.team_id = f.team_id
    where f.team_id = ${teamId} and f.enabled and f.ends_at is null and (${id}::uuid is null or f.id = ${id})`.execute(
    tx,
  )
}

/** Opens what a copy signs in with. */
export function openKept(
  { keys }: Store,
  { teamId, id }: { teamId: string; id: string },
  kept: KeptCredential,
): OpenedCredential {
  const { sealed, wrapped, expiresAt, type, ...rest } = kept
  const bytes = { sealed: Buffer.from(sealed, 'base64'), wrapped: Buffer.from(wrapped, 'base64') }
  const row = {
    ...rest,
    ...bytes,
    type: type as CredentialType,
    expiresAt: expiresAt ? new Date(expiresAt) : null,
  }
  return openSealed(keys, { teamId, id }, row)
}

/** Removes the copies that have nothing more to send, or have been tried for long enough. Called hourly. */
export async function removeFarewells(store: Store): Promise<void> {
  await write(store, (tx) =>
    sql`delete from audit_forwarders f where ends_at is not null and (ends_at < now()
      or sent_seq >= coalesce(last_seq, (select seq from audit_heads h where h.team_id = f.team_id), 0))`.execute(
      tx,
    ),
  )
}
