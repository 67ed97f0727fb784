import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { claimReport, failReport, releaseClaim } from '../../db/audit/reports/claims.ts'
import {
  type ClaimedForwarder,
  claimForwarder,
  noteDelivered,
  postponeForwarder,
} from '../../db/audit/siem/sending.ts'
import { claimReplies, postponeReply, settleReply } from '../../db/chat/settle.ts'
import type { Tx } from '../../db/connection.ts'
import {
  claimEvaluations,
  type EvaluationClaim,
  endEvaluation,
  giveBackEvaluation,
} from '../../db/evaluation/claims.ts'
import {
  claimCallbacks,
  insertCallback,
  makeCallback,
  postponeCallback,
  settleCallback,
} from '../../db/executions/callbacks.ts'
import { noteWindow } from '../../db/monitoring/alerts/noting.ts'
import { claimWindow, releaseWindow } from '../../db/monitoring/alerts/watches.ts'
import { claimDeliveries, postponeDelivery, settleDelivery } from '../../db/monitoring/channels/deliveries.ts'
import { claimRuns, endRun, postponeRun } from '../../db/monitoring/playbooks/runs.ts'
import { claimReportRuns, noteReportEnded, noteReportFailed } from '../../db/monitoring/reports/claims.ts'
import { claimErrands, type Errand, type ErrandLane, postponeErrand, settleErrand } from '../../db/outbox.ts'
import { claimMails, postponeMail, settleMail } from '../../db/people/mails.ts'
import type { Store } from '../../db/scope.ts'

const LEASE_MS = 60_000

type QueueRow = { id: string; teamId: string | null }

/** What the tests call of a queue. */
export type QueueCase = {
  name: string
  table: string
  /** The column that has the id of `add`. */
  id: string
  /** Whether a claim counts only while no later one was made. */
  hasToken: boolean
  /** Whether several teams take turns, and each row of a claim is of another one. */
  turns: boolean
  /** The column that says when a claim ends. */
  until: string
  add: (tx: Tx, row: { id: string; teamId: string }) => Promise<unknown>
  claim: (limit: number) => Promise<QueueRow[]>
  settle: (row: never) => Promise<unknown>
  postpone: (row: never) => Promise<unknown>
}

const KIND = { id: 'id', until: 'due_at', hasToken: true, turns: true }

/** The queues of the database, with rows that are due at once. */
export function listQueues(store: Store): QueueCase[] {
  return [
    ...[listErrands(store, 'urgent', 'SIGNAL'), listErrands(store, 'deletes', 'DELETE')],
    ...[callbacks(store), replies(store), mails(store), deliveries(store), playbookRuns(store)],
    ...[reportRuns(store), auditReports(store), forwarders(store), evaluations(store), watches(store)],
  ]
}

/** Claims up to `limit` rows of a queue that gives one at a time. */
async function claimEach<T>(limit: number, claimOne: () => Promise<T | undefined>): Promise<T[]> {
  const found: T[] = []
  while (found.length < limit) {
    const row = await claimOne()
    if (!row) break
    found.push(row)
  }
  return found
}

function listErrands(store: Store, lane: ErrandLane, kind: Errand['kind']): QueueCase {
  const teams = new Map<string, string>()
  return {
    ...{ ...KIND, name: `errands, ${lane}`, table: 'outbox', id: 'subject_id', hasToken: false },
    add: (tx, { id, teamId }) => {
      teams.set(id, teamId)
      return sql`insert into outbox (kind, subject_id, team_id, due_at)
        values (${kind}, ${id}, ${teamId}, now())`.execute(tx)
    },
    claim: async (limit) => {
      const rows = await claimErrands(store, lane, limit, LEASE_MS)
      return rows.map((row) => ({ ...row, id: row.subjectId, teamId: teams.get(row.subjectId)! }))
    },
    settle: (row: Errand) => settleErrand(store, row),
    postpone: (row: Errand) => postponeErrand(store, row, LEASE_MS, 'no'),
  }
}

function callbacks(store: Store): QueueCase {
  return {
    ...{ ...KIND, name: 'callbacks', table: 'callbacks', id: 'execution_id', hasToken: false },
    add: async (tx, { id, teamId }) => {
      const made = makeCallback(store.keys, { url: 'https://example.com', secret: 'secret' })
      await insertCallback(tx, { executionId: id, teamId }, made)
      await sql`update callbacks set status = 'PENDING', ended_at = now(), due_at = now()
        where execution_id = ${id}`.execute(tx)
    },
    claim: async (limit) => {
      const rows = await claimCallbacks(store, { limit, ofTeam: 5, leaseMs: LEASE_MS, busy: [] })
      return rows.map((row) => ({ ...row, callbackId: row.id, id: row.executionId }))
    },
    settle: ({ callbackId }: { callbackId: string }) => settleCallback(store, callbackId),
    postpone: ({ callbackId }: { callbackId: string }) => postponeCallback(store, callbackId, LEASE_MS, 'no'),
  }
}

function replies(store: Store): QueueCase {
  return {
    ...{ ...KIND, name: 'replies', table: 'agent_chat_messages', hasToken: false, turns: false },
    add: async (tx, { id, teamId }) => {
      const [session, owner] = [uuid(), uuid()]
      await sql`insert into agent_chat_sessions
          (id, team_id, workflow_id, owner_kind, owner_id, title, untitled)
        values (${session}, ${teamId}, ${uuid()}, 'USER', ${owner}, '', true)`.execute(tx)
      await sql`insert into agent_chat_messages
          (id, session_id, team_id, owner_id, role, status, content, execution_id, due_at)
        values (${id}, ${session}, ${teamId}, ${owner}, 'assistant', 'STREAMING', '', ${uuid()}, now())`.execute(
        tx,
      )
    },
    claim: async (limit) =>
      (await claimReplies(store, limit, LEASE_MS)).map((row) => ({ ...row, teamId: null })),
    settle: (row) => settleReply(store, row),
    postpone: ({ id }: QueueRow) => postponeReply(store, id, LEASE_MS),
  }
}

function mails(store: Store): QueueCase {
  return {
    ...{ ...KIND, name: 'mails', table: 'mails', hasToken: false, turns: false },
    add: (tx, { id, teamId }) =>
      sql`insert into mails (id, kind, team_id, email) values (${id}, 'CONFIRM', ${teamId}, 'a@example.com')`.execute(
        tx,
      ),
    claim: (limit) => claimMails(store, limit, LEASE_MS),
    settle: ({ id }: QueueRow) => settleMail(store, id),
    postpone: ({ id }: QueueRow) => postponeMail(store, id, LEASE_MS, 'no'),
  }
}

function deliveries(store: Store): QueueCase {
  return {
    ...{ ...KIND, name: 'deliveries', table: 'notification_deliveries' },
    add: (tx, { id, teamId }) =>
      sql`insert into notification_deliveries (id, team_id, notice_id, target)
        values (${id}, ${teamId}, ${uuid()}, 'email')`.execute(tx),
    claim: (limit) =>
      claimDeliveries(store, { limit, ofTeam: 5, leaseMs: LEASE_MS, busy: new Map(), failing: true }),
    settle: (row) => settleDelivery(store, row, null),
    postpone: (row) => postponeDelivery(store, row, { delayMs: LEASE_MS, error: 'no' }),
  }
}

function playbookRuns(store: Store): QueueCase {
  return {
    ...{ ...KIND, name: 'runs of playbooks', table: 'playbook_runs' },
    add: (tx, { id, teamId }) =>
      sql`insert into playbook_runs (id, team_id, playbook_id, notice_id, hour, steps)
        values (${id}, ${teamId}, ${uuid()}, ${uuid()}, now(), '[]')`.execute(tx),
    claim: (limit) => claimRuns(store, limit, LEASE_MS),
    settle: (row) => endRun(store, row, 'COMPLETED'),
    postpone: (row) => postponeRun(store, row, LEASE_MS),
  }
}

function reportRuns(store: Store): QueueCase {
  return {
    ...{ ...KIND, name: 'scheduled reports', table: 'scheduled_report_runs', until: 'claimed_until' },
    add: (tx, { id, teamId }) =>
      sql`insert into scheduled_report_runs
          (id, report_id, team_id, slot, name, timezone, recipients, metrics, period_from, status)
        values (${id}, ${uuid()}, ${teamId}, now(), 'A', 'UTC', '{}', '{}', now() - interval '1 h', 'PENDING')`.execute(
        tx,
      ),
    claim: (limit) => claimReportRuns(store, limit, LEASE_MS),
    settle: (row) => noteReportEnded(store, row, null),
    postpone: (row) => noteReportFailed(store, row, { message: 'no', delayMs: LEASE_MS }),
  }
}

function auditReports(store: Store): QueueCase {
  return {
    ...{ ...KIND, name: 'audit reports', table: 'audit_reports' },
    add: (tx, { id, teamId }) =>
      sql`insert into audit_reports (id, team_id, name, type, from_at, to_at, created_by_name, expires_at)
        values (${id}, ${teamId}, 'A', 'ACTIVITY', now() - interval '1 h', now(), 'Ada', now())`.execute(tx),
    claim: (limit) => claimEach(limit, () => claimReport(store, LEASE_MS)),
    settle: (row) => failReport(store, row, 'no'),
    postpone: (row) => releaseClaim(store, row, { delayMs: LEASE_MS }),
  }
}

/** A forwarder is settled for as long as there is no newer entry. */
function forwarders(store: Store): QueueCase {
  return {
    ...{ ...KIND, name: 'forwarders', table: 'audit_forwarders', until: 'lease_until', turns: false },
    add: async (tx, { id, teamId }) => {
      await sql`insert into audit_heads (team_id, seq, hash, ts, mac, key_id)
        values (${teamId}, 1, '', now(), '', 'k')`.execute(tx)
      await sql`insert into audit_forwarders (id, team_id, name, type, enabled, url, sent_seq)
        values (${id}, ${teamId}, 'A', 'HTTPS', true, 'https://example.com', 0)`.execute(tx)
    },
    claim: (limit) => claimEach(limit, () => claimForwarder(store, LEASE_MS, [])),
    settle: (row: ClaimedForwarder) => noteDelivered(store, row, { seq: 1, missed: 0, leaseMs: LEASE_MS }),
    postpone: (row) => postponeForwarder(store, row, { error: 'no', delayMs: LEASE_MS }),
  }
}

function evaluations(store: Store): QueueCase {
  return {
    ...{ ...KIND, name: 'evaluations', table: 'evaluations' },
    add: (tx, { id, teamId }) =>
      sql`insert into evaluations (id, team_id, workflow_id, execution_id)
        values (${id}, ${teamId}, ${uuid()}, ${uuid()})`.execute(tx),
    claim: (limit) => claimEvaluations(store, { most: 1, teams: limit, busy: [] }),
    settle: (row: EvaluationClaim) => endEvaluation(store, row, { status: 'SKIPPED', reason: 'NOT_KEPT' }),
    postpone: (row) => giveBackEvaluation(store, row, LEASE_MS / 1_000),
  }
}

/** A watch is settled until the next hour is over. Its key is the team. */
function watches(store: Store): QueueCase {
  return {
    ...{ ...KIND, name: 'watches', table: 'alert_watches', id: 'team_id', turns: false },
    until: 'claimed_until',
    add: async (tx, { id }) => {
      await sql`insert into monitoring_configs (team_id, anomaly_detection_enabled) values (${id}, true)`.execute(
        tx,
      )
      await sql`insert into alert_watches (team_id, next_from)
        values (${id}, date_trunc('hour', now() - interval '1 minute', 'UTC') - interval '1 hour')`.execute(
        tx,
      )
    },
    claim: async (limit) => {
      const rows = await claimEach(limit, () => claimWindow(store, LEASE_MS))
      return rows.map((row) => ({ ...row, id: row.teamId }))
    },
    settle: (row) => noteWindow(store, row, []),
    postpone: (row) => releaseWindow(store, row, { restMs: LEASE_MS, counts: true }),
  }
}
