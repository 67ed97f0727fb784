import { sql } from 'kysely'
import { EMBEDDING_MODEL, packRows, ROW_LENGTH } from '../../../activities/guardrails/semantic/embedder.ts'
import { createRandom } from '../../../activities/monitoring/shifts/compare.ts'
import type { DriftSide } from '../../../db/monitoring/shifts/driftsamples.ts'
import { createRuns } from '../engine/runs.ts'
import type { Service } from '../service.ts'

/** What is planted: when it ended, in hours before a window's end, what it is about, and how long it was. */
export type Planted = { age: number; topic: number; length?: number }

/** Writes samples as the jobs do, for the detectors: of topics that are directions of which each sample has some noise. */
export async function plantSamples(service: Service) {
  const { db } = service.store
  const team = await service.otherTeam()
  const runs = createRuns({ ...service, teamId: team.teamId } as Service)
  const random = createRandom(7)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const topics = [0, 1, 2].map(() => Float32Array.from({ length: ROW_LENGTH }, normal))

  function mean(topic: number): Uint8Array {
    const row = topics[topic]!.map((figure) => figure + 1.5 * normal())
    const norm = Math.hypot(...row)
    return packRows(row.map((figure) => figure / norm))
  }

  async function addRuns(workflowId: string, to: Date, planted: { age: number }[]): Promise<string[]> {
    const ids = planted.map(() => crypto.randomUUID())
    const list = planted.map(({ age }, place) => ({
      id: ids[place],
      at: new Date(to.getTime() - age * 3_600_000),
    }))
    await sql`insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger,
        trigger_node_id, started_by_kind, input_data, input_bytes, status, completed_at)
      select id, ${team.teamId}, ${workflowId}, 'w', 1, 1, 'API', 'start', 'USER', '{}', 2, 'SUCCESS', at
      from json_to_recordset(${JSON.stringify(list)}::json) as k (id uuid, at timestamptz)`.execute(db)
    return ids
  }

  async function plant(workflowId: string, to: Date, planted: Planted[], side: DriftSide = 'INPUT') {
    const ids = await addRuns(workflowId, to, planted)
    const rows = planted.map(({ age, topic, length = 100 + Math.floor(40 * random()) }, place) => ({
      executionId: ids[place]!,
      side,
      teamId: team.teamId,
      workflowId,
      endedAt: new Date(to.getTime() - age * 3_600_000),
      length,
      model: EMBEDDING_MODEL,
      meaning: Buffer.from(mean(topic)),
    }))
    for (let at = 0; at < rows.length; at += 500)
      await db
        .insertInto('driftSamples')
        .values(rows.slice(at, at + 500))
        .execute()
    return ids
  }

  return { ...team, runs, addRuns, plant, random, normal }
}

/** As many samples as `perDay`, over days `from` to `to` before the window's end. */
export function spread(days: { from: number; to: number; perDay: number }, topic = 0): Planted[] {
  const { from, to, perDay } = days
  return Array.from({ length: Math.round((to - from) * perDay) }, (_, n) => ({
    age: 24 * from + (24 * (n + 0.5)) / perDay,
    topic,
  }))
}
