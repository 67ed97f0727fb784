import { sql } from 'kysely'
import { write } from '../../change.ts'
import type { Db } from '../../connection.ts'
import type { ExecutionShape } from '../../executions/records/stored.ts'
import { IS_NO_TEST } from '../../executions/triggers.ts'
import type { Store } from '../../scope.ts'

export type DriftSide = 'INPUT' | 'OUTPUT'
export const DRIFT_SIDES: readonly DriftSide[] = ['INPUT', 'OUTPUT']

/** An execution whose texts may be sampled, and which of them are wanted. */
export type SampleableExecution = ExecutionShape & {
  trigger: string
  inputData: unknown
  endedAt: Date
  sides: DriftSide[]
}

export type DriftSample = {
  executionId: string
  side: DriftSide
  teamId: string
  workflowId: string
  endedAt: Date
  length: number
  model: string
  meaning: Uint8Array | null
}

/** The number of executions of a workflow, and of a team, that are sampled in a slot. */
const OF_WORKFLOW = 4
const OF_TEAM = 40
/** Executions with larger values are not sampled: opening them would hold up others. */
const MOST_BYTES = 65_536
const MOST_RECORDS = 200

/**
 * Executions of a team that ended in a span, the same ones whenever they are asked for: those that come first by a hash of
 * their ids. Left out are those that evaluations and playbooks started, single nodes, what is not to be kept, large
 * values, and what is sampled already.
 */
export async function listSampleable(
  { db }: Pick<Store, 'db'>,
  { teamId, from, to }: { teamId: string; from: Date; to: Date },
): Promise<SampleableExecution[]> {
  const { rows } = await sql<
    Omit<SampleableExecution, 'sides'> & { keepOutputs: boolean; known: DriftSide[] }
  >`
    with chosen as (
      select id from (
        select e.id, row_number() over (partition by e.workflow_id order by md5(e.id::text)) as place
        from executions e
        where e.team_id = ${teamId} and e.completed_at >= ${from} and e.completed_at < ${to}
          and e.status in ('SUCCESS', 'FAILED') and ${IS_NO_TEST}
          and e.only_node is null and e.keep_inputs and e.input_bytes <= ${MOST_BYTES}
      ) placed where place <= ${OF_WORKFLOW} order by place, md5(id::text) limit ${OF_TEAM})
    select e.id, e.team_id, e.workflow_id, e.workflow_version, e.status, e.trigger_node_id, e.only_node, e.trigger,
      e.input_data, e.completed_at as ended_at,
      e.keep_outputs and e.status = 'SUCCESS' and coalesce(e.record_count, 0) <= ${MOST_RECORDS} and not exists (
        select from node_executions n
        where n.execution_id = e.id and (n.output->>'bytes')::bigint > ${MOST_BYTES}) as keep_outputs,
      array(select s.side from drift_samples s where s.execution_id = e.id) as known
    from chosen join executions e using (id) order by md5(e.id::text)`.execute(db)
  return rows.flatMap(({ keepOutputs, known, ...execution }) => {
    const wanted = DRIFT_SIDES.filter((side) => side === 'INPUT' || keepOutputs)
    const sides = wanted.filter((side) => !known.includes(side))
    return sides.length > 0 ? [{ ...execution, sides }] : []
  })
}

/** Keeps a sample, unless another process has kept it, or its execution is deleted meanwhile. */
export async function keepDriftSample(store: Store, sample: DriftSample): Promise<void> {
  const { executionId, side, teamId, workflowId, endedAt, length, model, meaning } = sample
  await write(store, (tx) =>
    sql`insert into drift_samples (execution_id, side, team_id, workflow_id, ended_at, length, model, meaning)
      select id, ${side}, ${teamId}, ${workflowId}, ${endedAt}, ${length}, ${model}, ${meaning ? Buffer.from(meaning) : null}
      from executions where id = ${executionId} for key share
      on conflict do nothing`.execute(tx),
  )
}

/** A sample as it is compared: of which day before the window's end (0 is the last one), and whether of its last hours. */
export type ComparedSample = {
  executionId: string
  day: number
  /** One of those that stand for the whole day, and one of those that stand for the same hours as the last ones. */
  whole: boolean
  short: boolean
  length: number
  meaning: Buffer | null
}

/** The days before a window's end, and which hours: `reference` days are 2 to `days`, the day between is left out. */
export type ComparedSpan = { to: Date; days: number; hours: number }

const OF_DAY = 60
const OF_HOURS = 30
const OF_CURRENT = 200

/** The samples of a workflow that are compared at the end of a window, chosen by a hash of their ids. */
export async function readDriftSamples(
  db: Db,
  { workflowId, side, model }: { workflowId: string; side: DriftSide; model: string },
  { to, days, hours }: ComparedSpan,
): Promise<ComparedSample[]> {
  const { rows } = await sql<ComparedSample>`
    with aged as (
      select execution_id, length, meaning, floor(age / 86400)::integer as day, age % 86400 < ${hours} * 3600 as late
      from drift_samples, lateral (select extract(epoch from ${to}::timestamptz - ended_at) as age) a
      where workflow_id = ${workflowId} and side = ${side} and model = ${model}
        and ended_at < ${to}::timestamptz and ended_at >= ${to}::timestamptz - (${days} + 1) * interval '1 day'
    ), placed as (
      select *, row_number() over (partition by day order by md5(execution_id::text)) as place,
        row_number() over (partition by day, late order by md5(execution_id::text)) as late_place
      from aged where day <> 1)
    select execution_id, day, length, meaning, place <= case when day = 0 then ${sql.lit(OF_CURRENT)} else ${sql.lit(OF_DAY)} end as whole,
      late and late_place <= case when day = 0 then ${sql.lit(OF_CURRENT)} else ${sql.lit(OF_HOURS)} end as short
    from placed
    where place <= case when day = 0 then ${sql.lit(OF_CURRENT)} else ${sql.lit(OF_DAY)} end
      or (late and late_place <= case when day = 0 then ${sql.lit(OF_CURRENT)} else ${sql.lit(OF_HOURS)} end)
    order by day, md5(execution_id::text)`.execute(db)
  return rows
}
