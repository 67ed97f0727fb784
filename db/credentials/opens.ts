import { sql } from 'kysely'
import type { Act } from '../acts.ts'
import type { AuditEntry } from '../audit/audit.ts'
import { perDatabase } from '../cache.ts'
import { change, write } from '../change.ts'
import type { Tx } from '../connection.ts'
import { lockFold } from '../locks.ts'
import { createBatches } from '../operation/batches.ts'
import { type Store, serviceScope } from '../scope.ts'

/**
 * An attempt of a workflow's node, an audit forwarder, a notification channel, a scheduled report or a team's guardrails
 * have opened a credential: the id of the last is the team's.
 */
export type Opening = {
  teamId: string
  credentialId: string
  opener: { kind: 'WORKFLOW' | 'FORWARDER' | 'GUARDRAILS' | 'CHANNEL' | 'REPORT'; id: string }
}

/** An hour is settled so many minutes after it is over: by then every process has written what it has opened in it. */
const AFTER_MINUTES = 2

/** How many entries one transaction appends at most. */
const CHUNK = 200

/**
 * Counts an opening, for the audit entry of its hour. It resolves when that is written: what is opened is counted even
 * if the process dies then. However many attempts open credentials, a process makes one statement after the other, for
 * all that come meanwhile, on rows that no other process writes.
 */
export async function countOpening(store: Store, opening: Opening): Promise<void> {
  await countersOf(store.db).count('all', { store, opening })
}

const countersOf = perDatabase(() => {
  const process = crypto.randomUUID()
  const work = async (_: string, items: { store: Store; opening: Opening }[]): Promise<undefined[]> => {
    const sums = new Map<
      string,
      { teamId: string; credentialId: string; kind: string; id: string; opened: number }
    >()
    for (const { opening } of items) {
      const { teamId, credentialId, opener } = opening
      const key = [teamId, credentialId, opener.kind, opener.id].join(' ')
      const sum = sums.get(key) ?? { teamId, credentialId, ...opener, opened: 0 }
      sum.opened++
      sums.set(key, sum)
    }
    const rows = JSON.stringify([...sums.values()])
    await write(items[0]!.store, (tx) =>
      sql`
      with r as (
        select * from json_to_recordset(${rows}::json) as r(
          "teamId" uuid, "credentialId" uuid, kind text, id uuid, opened bigint)),
      held as (select id from teams where id in (select "teamId" from r) for key share)
      insert into credential_opens as o (team_id, hour, credential_id, opener_kind, opener_id, process, opened)
      select r."teamId", date_trunc('hour', now(), 'UTC'), r."credentialId", r.kind, r.id, ${process}, r.opened
      from r join held on held.id = r."teamId"
      on conflict (team_id, hour, credential_id, opener_kind, opener_id, process)
        do update set opened = o.opened + excluded.opened`.execute(tx),
    )
    return items.map(() => undefined)
  }
  return { count: createBatches(work, 1_000) }
})

/**
 * Makes one audit entry of how often a credential was opened by a workflow, a forwarder or guardrails in an hour, once
 * the hour is over. Any number of processes may do so at once. A team whose chain cannot take an entry does not stop
 * the others: `tell` is called with the failure, and it is tried again the next time. Resolves to how many entries were
 * made.
 */
export async function settleOpenings(
  store: Store,
  tell: (teamId: string, error: unknown) => void,
  now = new Date(),
): Promise<number> {
  const until = new Date(now.getTime() - AFTER_MINUTES * 60_000)
  const { rows } = await sql<{ teamId: string }>`
    select distinct team_id from credential_opens where hour <= ${until}::timestamptz - interval '1 hour' limit 10000`.execute(
    store.db,
  )
  let made = 0
  for (const { teamId } of rows) {
    try {
      for (let some = CHUNK; some === CHUNK; made += some) some = await settleTeam(store, teamId, until)
    } catch (error) {
      tell(teamId, error)
    }
  }
  return made
}

async function settleTeam(store: Store, teamId: string, until: Date): Promise<number> {
  const actor = { kind: 'SYSTEM', id: null, name: 'credential use' } as const
  const scope = serviceScope(store, actor, [[teamId, 'ADMIN']])
  return change(scope, 'CREDENTIAL_USED', teamId, async (tx) => {
    const [first, ...also] = await takeOpenings(tx, teamId, until)
    if (!first) return { result: 0, unchanged: true }
    return { result: 1 + also.length, ...first, also }
  })
}

/** The audit entries of all that a team has opened and that has none: for a team that is deleted. */
export async function takeAllOpenings(tx: Tx, teamId: string): Promise<OpeningEntry[]> {
  const all: OpeningEntry[] = []
  for (let some = CHUNK; some === CHUNK; ) {
    const taken = await takeOpenings(tx, teamId, null)
    all.push(...taken)
    some = taken.length
  }
  return all
}

type OpeningEntry = AuditEntry & { act: Act }

/** Those of hours that were over before `until`, or of all if it is null: at most 200. */
async function takeOpenings(tx: Tx, teamId: string, until: Date | null): Promise<OpeningEntry[]> {
  // If two processes come at once, the second finds nothing left.
  await lockFold(tx, 'openings', teamId)
  const { rows } = await sql<Used>`
    with due as (
      select distinct hour, credential_id, opener_kind, opener_id from credential_opens
      where team_id = ${teamId} and (${until}::timestamptz is null or hour <= ${until}::timestamptz - interval '1 hour')
      order by hour, credential_id, opener_kind, opener_id limit ${CHUNK}),
    taken as (
      delete from credential_opens o using due d
      where o.team_id = ${teamId} and o.hour = d.hour and o.credential_id = d.credential_id
        and o.opener_kind = d.opener_kind and o.opener_id = d.opener_id
      returning o.hour, o.credential_id, o.opener_kind, o.opener_id, o.opened)
    select t.hour, t.credential_id, t.opener_kind as kind, t.opener_id as id, sum(t.opened)::bigint as count,
      (select name from credentials c where c.id = t.credential_id) as name,
      case t.opener_kind when 'WORKFLOW' then (select name from workflows w where w.id = t.opener_id)
        when 'CHANNEL' then (select name from notification_channels n where n.id = t.opener_id)
        when 'REPORT' then (select name from scheduled_reports s where s.id = t.opener_id)
        else (select name from audit_forwarders f where f.id = t.opener_id) end as opener_name
    from taken t group by t.hour, t.credential_id, t.opener_kind, t.opener_id
    order by t.hour, t.credential_id, t.opener_kind, t.opener_id`.execute(tx)
  return rows.map(({ credentialId, kind, id, openerName, ...used }) => ({
    act: 'CREDENTIAL_USED',
    resourceId: credentialId,
    details: {
      ...used,
      ...nameOpener({ kind, id, openerName }),
    },
  }))
}

function nameOpener({ kind, id, openerName }: Pick<Used, 'kind' | 'id' | 'openerName'>) {
  if (kind === 'WORKFLOW') return { workflowId: id, workflowName: openerName }
  if (kind === 'CHANNEL') return { channelId: id, channelName: openerName }
  if (kind === 'REPORT') return { reportId: id, reportName: openerName }
  return kind === 'FORWARDER' ? { forwarderId: id, forwarderName: openerName } : { guardrails: true }
}

type Used = {
  hour: Date
  credentialId: string
  kind: Opening['opener']['kind']
  id: string
  count: number
  /** Null if it was deleted in the meantime, as the next one. */
  name: string | null
  openerName: string | null
}
