import { sql } from 'kysely'
import type { Store } from '../scope.ts'
import { endAlarm, listBroken, raiseAlarm } from './alarm.ts'
import { findHeadFault, type Head } from './chain.ts'
import { INSTANCE_CHAIN } from './signing.ts'

type ChainEnd = Pick<Head, 'seq' | 'hash' | 'mac' | 'keyId'> & {
  teamId: string
  headed: boolean
  /** Whether the last entry is the one that the head names. */
  ends: boolean
}

const PAGE = 500

/**
 * Checks the end of every chain, and raises the alarm for those that could not be extended. The entries inside of a
 * chain are left to verifyAudit.
 */
export async function checkHeads(store: Store): Promise<void> {
  let after: string | null = null
  for (;;) {
    const ends: ChainEnd[] = await readEnds(store, after, null)
    for (const end of ends) judge(store, end)
    if (ends.length < PAGE) return
    after = ends.at(-1)!.teamId
  }
}

/** How many chains are broken, of those that were found so. One that was reopened meanwhile is not. */
export async function countBroken(store: Store): Promise<number> {
  const known = listBroken(store)
  if (known.length === 0) return 0
  for (const end of await readEnds(store, null, known)) judge(store, end)
  return listBroken(store).length
}

function judge(store: Store, end: ChainEnd): void {
  const { teamId, headed, ends, mac } = end
  // The instance's head that the migration has made: nothing was appended yet.
  if (teamId === INSTANCE_CHAIN && headed && mac.length === 0 && ends && end.seq === 0) return
  const fault =
    findHeadFault(store.keys, teamId, headed ? end : undefined) ??
    (ends ? undefined : 'its last entry is not the one that its head names')
  if (fault === undefined) endAlarm(store, teamId)
  else raiseAlarm(store, { teamId, why: fault })
}

/** The ends of the chains of all teams behind `after`, or of those in `only`, as they are at one moment. */
async function readEnds(store: Store, after: string | null, only: string[] | null): Promise<ChainEnd[]> {
  const wanted = (column: string) =>
    sql`(${after}::uuid is null or ${sql.ref(column)} > ${after}::uuid)
      and (${only}::uuid[] is null or ${sql.ref(column)} = any(${only}::uuid[]))`
  const { rows } = await sql<ChainEnd>`
    select c.id as team_id, h.team_id is not null as headed, h.seq, h.hash, h.mac, h.key_id,
      not exists (select from audit_entries e where e.team_id = c.id and e.seq > h.seq)
        and (h.seq = 0 and h.ts = '-infinity'
          or exists (select from audit_entries e
            where e.team_id = c.id and e.seq = h.seq and e.hash = h.hash and e.ts = h.ts)) as ends
    from (
      (select id from teams where ${wanted('id')} order by id limit ${PAGE})
      union (select team_id from audit_heads where ${wanted('team_id')} order by team_id limit ${PAGE})
      union select id from (values (${INSTANCE_CHAIN}::uuid)) instance (id) where ${wanted('id')}) c
    left join audit_heads h on h.team_id = c.id
    order by c.id limit ${PAGE}`.execute(store.db)
  return rows
}
