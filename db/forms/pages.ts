import { sql } from 'kysely'
import type { Completion } from '../../workflows/nodes/forms.ts'
import { change, write } from '../change.ts'
import { nodeExecutionId } from '../executions/records/projection.ts'
import { isEnded } from '../executions/status.ts'
import { queueNudge } from '../executions/waits/events.ts'
import { writeData } from '../executions/waits/jsontext.ts'
import { type FormPage, holdExecution, type NodeInstance } from '../executions/waits/pauses.ts'
import { type Place, readPlaceToken } from '../executions/waits/places.ts'
import { Fault, missing } from '../fault.ts'
import { addFiles, type StoredFile } from '../files/store.ts'
import type { Errand } from '../outbox.ts'
import { accountScope, type Origin, type Store } from '../scope.ts'
import { cleanText } from '../text.ts'
import { readSettings } from '../workflows/settings.ts'
import { readVersion } from '../workflows/versions.ts'

/** The last page of a form, as it is shown. */
export type FormEnding = Omit<Completion, 'when'>

/**
 * A page of a form that its address leads to. WAITS: its node has not come to it yet. OVER: it was sent, its time is over,
 * or its execution has ended.
 */
export type FormStep = {
  place: Place
  teamId: string
  workflowId: string
  version: number
  /** The execution tests a draft. */
  draft: boolean
  timezone: string | null
} & ({ status: 'OPEN'; page: FormPage } | { status: 'WAITS' | 'OVER' | 'EXPIRED' })

/** Reads the page that a one-time address leads to. Throws NOT_FOUND. */
export async function readFormStep(store: Store, token: string): Promise<FormStep> {
  const place = readPlaceToken(store.keys, 'form', token)
  if (!place) throw missing('form')
  const { executionId, nodeId, iteration } = place
  const { rows } = await sql<{
    teamId: string
    workflowId: string
    version: number
    draft: boolean
    settings: unknown
    status: string
    pause: string | null
    page: FormPage | null
  }>`select e.team_id, e.workflow_id, e.workflow_version as version, e.draft, e.status, p.form as page,
      (select settings from workflows where id = e.workflow_id) as settings,
      case when p.status = 'OPEN' and p.deadline <= now() then 'EXPIRED' else p.status end as pause
    from executions e left join pauses p on p.id = ${nodeExecutionId(executionId, nodeId, iteration)} and p.kind = 'FORM'
    where e.id = ${executionId}`.execute(store.db)
  const [row] = rows
  if (!row) throw missing('form')
  const { status, pause, page, settings, ...owner } = row
  const step = { place, ...owner, timezone: readSettings(settings).timezone }
  if (pause === 'EXPIRED') return { ...step, status: 'EXPIRED' }
  if (pause === 'OPEN' && !isEnded(status)) return { ...step, status: 'OPEN', page: page! }
  return { ...step, status: pause === null && !isEnded(status) ? 'WAITS' : 'OVER' }
}

/**
 * Gives what was filled in to the node that waits for it, once. `data` is its output. Returns the errand that makes the run
 * look; undefined if the page was sent before: the files are then not taken. Throws CONFLICT if its time is over or its
 * execution has ended.
 */
export async function answerFormStep(
  store: Store,
  { place, teamId }: FormStep,
  { data, files }: { data: unknown; files: StoredFile[] },
  origin: Origin,
): Promise<Errand | undefined> {
  const { executionId, nodeId, iteration } = place
  const id = nodeExecutionId(executionId, nodeId, iteration)
  // Everyone who has the address may do this once.
  const caller = { ...accountScope(store, null, origin), roles: new Map([[teamId, 'OPERATOR' as const]]) }
  return change(caller, 'EVENT_SENT', teamId, async (tx) => {
    const ended = await holdExecution(tx, executionId)
    const { rows } = await sql<{ status: string }>`
      select status from pauses where id = ${id} and kind = 'FORM' for update`.execute(tx)
    if (rows[0]?.status === 'RECEIVED') return { result: undefined, unchanged: true }
    if (ended) throw new Fault('CONFLICT', ended)
    const answered = await sql`
      update pauses set status = 'RECEIVED', settled_at = now(), data = ${writeData(data)}::json
      where id = ${id} and status = 'OPEN' and (deadline is null or deadline > clock_timestamp())
      returning id`.execute(tx)
    if (answered.rows.length === 0) throw new Fault('CONFLICT', 'The time to fill in this page is over')
    await addFiles(tx, executionId, teamId, files)
    const result = await queueNudge(tx, executionId, place)
    return { result, resourceId: executionId, details: { nodes: [nodeId], oneTimeUrl: true } }
  })
}

/** Notes the last page that a form comes to, under the node that says it; the newest one counts. */
export async function saveFormEnding(store: Store, spot: NodeInstance, ending: FormEnding): Promise<void> {
  const { executionId, nodeId, nodeName, iteration } = spot
  await write(store, (tx) =>
    sql`
    insert into pauses (id, execution_id, team_id, workflow_id, kind, node_id, node_name, iteration, status, form, settled_at)
    select ${nodeExecutionId(executionId, nodeId, iteration)}, id, team_id, workflow_id, 'FORM', ${nodeId},
      ${cleanText(nodeName)}, ${iteration}, 'RECEIVED', ${JSON.stringify({ ending })}::json, now()
    from executions where id = ${executionId}
    on conflict (id) do nothing`.execute(tx),
  )
}

/**
 * Where an execution is for the person who fills in its form: at a page that waits for them, at the last page, or on the
 * way (`open` and `ending` are null).
 */
export type FormProgress = {
  executionId: string
  teamId: string
  /** Null while the execution goes on. */
  ended: string | null
  open: Place | null
  ending: FormEnding | null
}

/** Reads that, by the address that a person is given once they have sent a form. Throws NOT_FOUND. */
export async function readFormProgress(store: Store, token: string): Promise<FormProgress> {
  const place = readPlaceToken(store.keys, 'form progress', token)
  if (!place) throw missing('form')
  const { executionId } = place
  const { rows } = await sql<{
    teamId: string
    workflowId: string
    version: number
    status: string
    triggerNodeId: string
    open: Omit<Place, 'executionId'> | null
    ending: FormEnding | null
  }>`select e.team_id, e.workflow_id, e.workflow_version as version, e.status, e.trigger_node_id,
      (select json_build_object('nodeId', p.node_id, 'iteration', p.iteration) from pauses p
        where p.execution_id = e.id and p.kind = 'FORM' and p.status = 'OPEN'
          and (p.deadline is null or p.deadline > now()) order by p.created_at, p.id limit 1) as open,
      (select p.form->'ending' from pauses p
        where p.execution_id = e.id and p.kind = 'FORM' and p.form->'ending' is not null
        order by p.created_at desc, p.id desc limit 1) as ending
    from executions e where e.id = ${executionId}`.execute(store.db)
  const [row] = rows
  if (!row) throw missing('form')
  const ended = isEnded(row.status) ? row.status : null
  const open = ended === null && row.open ? { executionId, ...row.open } : null
  const found = { executionId, teamId: row.teamId, ended, open }
  if (open || row.ending) return { ...found, ending: open ? null : row.ending }
  const { nodes } = await readVersion(store, row.workflowId, row.version)
  const trigger = nodes.find(({ id, type }) => id === row.triggerNodeId && type === 'FORM_TRIGGER')
  const { when = 'sent', ...own } = (trigger?.config.completion ?? { show: 'text' }) as Completion
  const isSaid = own.show === 'text' || own.show === 'redirect'
  const hasPages = nodes.some(({ type, disabled }) => type === 'FORM' && !disabled)
  // A person who is to see more pages, or the output, waits for that.
  const isDone = ended === 'SUCCESS' || (isSaid && when === 'sent' && !hasPages && trigger !== undefined)
  return { ...found, ending: isDone ? own : null }
}
