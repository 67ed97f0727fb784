import { sql } from 'kysely'
import { write } from '../../change.ts'
import type { Db } from '../../connection.ts'
import type { Store } from '../../scope.ts'
import type { ComparedSpan } from './driftsamples.ts'

/** The beginning of a user's message to an agent. */
export type SaidMessage = {
  messageId: string
  teamId: string
  workflowId: string
  executionId: string
  saidAt: Date
  text: string
}

/** The number of messages to a workflow, and of a team, that are scored in a slot. */
const OF_WORKFLOW = 30
const OF_TEAM = 120

/**
 * Users' messages of a span that are not scored yet, the same ones whenever they are asked for. Executions that keep no
 * inputs have none.
 */
export async function listSaid(
  { db }: Pick<Store, 'db'>,
  { teamId, from, to }: { teamId: string; from: Date; to: Date },
  length: number,
): Promise<SaidMessage[]> {
  const { rows } = await sql<SaidMessage>`
    with placed as (
      select m.id, s.workflow_id, row_number() over (partition by s.workflow_id order by md5(m.id::text)) as place
      from agent_chat_messages m join agent_chat_sessions s on s.id = m.session_id
      where m.team_id = ${teamId} and m.created_at >= ${from} and m.created_at < ${to} and m.role = 'user'
        and exists (select from executions e where e.id = m.execution_id and e.keep_inputs)
    ), chosen as (
      select * from placed where place <= ${OF_WORKFLOW} order by place, md5(id::text) limit ${OF_TEAM})
    select m.id as message_id, m.team_id, c.workflow_id, m.execution_id, m.created_at as said_at,
      left(m.content, ${length}) as text
    from chosen c join agent_chat_messages m on m.id = c.id
    where not exists (select from sentiment_scores k where k.message_id = m.id)
    order by md5(m.id::text)`.execute(db)
  return rows
}

/** Keeps how messages sound, unless that is kept already, or they are deleted meanwhile. */
export async function keepSentiments(
  store: Store,
  scores: (Omit<SaidMessage, 'text'> & { score: number })[],
): Promise<void> {
  const list = JSON.stringify(scores)
  await write(store, (tx) =>
    sql`insert into sentiment_scores (message_id, team_id, workflow_id, execution_id, said_at, score)
      select m.id, k."teamId", k."workflowId", k."executionId", k."saidAt", k.score
      from json_to_recordset(${list}::json) as k ("messageId" uuid, "teamId" uuid, "workflowId" uuid,
        "executionId" uuid, "saidAt" timestamptz, score real)
      join agent_chat_messages m on m.id = k."messageId"
      on conflict do nothing`.execute(tx),
  )
}

/** A score as it is compared; the days are those of ComparedSample. */
export type ComparedScore = {
  executionId: string
  day: number
  whole: boolean
  short: boolean
  score: number
}

const OF_DAY = 100
const OF_HOURS = 60
const OF_CURRENT = 400

/** The scores of a workflow that are compared at the end of a window, chosen by a hash. */
export async function readScores(
  db: Db,
  workflowId: string,
  { to, days, hours }: ComparedSpan,
): Promise<ComparedScore[]> {
  const { rows } = await sql<ComparedScore>`
    with aged as (
      select message_id, execution_id, score, floor(age / 86400)::integer as day, age % 86400 < ${hours} * 3600 as late
      from sentiment_scores, lateral (select extract(epoch from ${to}::timestamptz - said_at) as age) a
      where workflow_id = ${workflowId}
        and said_at < ${to}::timestamptz and said_at >= ${to}::timestamptz - (${days} + 1) * interval '1 day'
    ), placed as (
      select *, row_number() over (partition by day order by md5(message_id::text)) as place,
        row_number() over (partition by day, late order by md5(message_id::text)) as late_place
      from aged where day <> 1)
    select execution_id, day, score, place <= case when day = 0 then ${sql.lit(OF_CURRENT)} else ${sql.lit(OF_DAY)} end as whole,
      late and late_place <= case when day = 0 then ${sql.lit(OF_CURRENT)} else ${sql.lit(OF_HOURS)} end as short
    from placed
    where place <= case when day = 0 then ${sql.lit(OF_CURRENT)} else ${sql.lit(OF_DAY)} end
      or (late and late_place <= case when day = 0 then ${sql.lit(OF_CURRENT)} else ${sql.lit(OF_HOURS)} end)
    order by day, md5(message_id::text)`.execute(db)
  return rows
}
