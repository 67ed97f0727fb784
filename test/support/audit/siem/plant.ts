import { makeChains } from '../../chains.ts'
import type { Service } from '../../service.ts'

/** Fills a chain up to `count` entries with copies of its last one: it does not verify any more, and takes no entries. */
export async function plantEntries(service: Service, teamId: string, count: number): Promise<void> {
  const { tamper, adaptHead } = makeChains(service)
  await tamper(`insert into audit_entries (id, team_id, seq, prev, hash, ts, event_id, actor_kind, actor_name, action,
      resource_type, outcome, details, details_salt, details_sha256, core, mac, key_id, v)
    select i.id, team_id, n, sha256((n - 1 || team_id::text)::bytea), sha256((n || team_id::text)::bytea), ts, i.id,
      actor_kind, actor_name, action, resource_type, outcome, details, details_salt, details_sha256, core, mac, key_id, v
    from audit_entries last, generate_series(last.seq + 1, ${count}) n, lateral (select gen_random_uuid() as id where n > 0) i
    where team_id = '${teamId}' and seq = (select max(seq) from audit_entries where team_id = '${teamId}');
    ${adaptHead(teamId)}`)
}
