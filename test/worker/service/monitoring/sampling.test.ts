import { sql } from 'kysely'
import { pino } from 'pino'
import { beforeAll, expect, test } from 'vitest'
import { createSemanticPool, type SemanticPool } from '../../../../activities/guardrails/semantic/similar.ts'
import type { SamplingKind } from '../../../../db/monitoring/shifts/cursors.ts'
import { purgeSamples } from '../../../../db/monitoring/shifts/purge.ts'
import { sampleDue } from '../../../../worker/service/monitoring/sampling.ts'
import { createChatting } from '../../../support/chat/chatting.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { startRunning } from '../../../support/running.ts'

const host = await keep(startRunning())
const { store, teamId } = host
const { db } = store
const chats = createChatting(host)
const log = pino({ level: 'silent' })
const signal = new AbortController().signal

/** The texts of which an embedding was asked for. */
const embedded: string[] = []
const pool = createSemanticPool({ threads: 1 })
const semantic: SemanticPool = {
  ...pool,
  work(asker, job, parts) {
    if (job.embedding) embedded.push(job.embedding.text)
    return pool.work(asker, job, parts)
  },
}
await keep(Promise.resolve({ stop: () => pool.close() }))

const GRAPH = {
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'said', type: 'SET', config: { values: { answer: 'We told: {{ $trigger.question }}' } } },
  ],
  edges: edges('start -> said'),
}

/** Moves all that has ended, or was said, to a slot that is over, and begins there. */
async function age(kind: SamplingKind): Promise<void> {
  await sql`update executions set completed_at = now() - interval '15 minutes'
    where completed_at > now() - interval '14 minutes'`.execute(db)
  await sql`update agent_chat_messages set created_at = now() - interval '15 minutes'
    where created_at > now() - interval '14 minutes'`.execute(db)
  await sql`insert into sampling_cursors (team_id, kind, sampled_until)
    values (${teamId}, ${kind}, now() - interval '20 minutes')
    on conflict (team_id, kind) do update set sampled_until = excluded.sampled_until`.execute(db)
}

const setFlags = (flags: { driftAlertEnabled?: boolean; sentimentTrackingEnabled?: boolean }) =>
  db
    .insertInto('monitoringConfigs')
    .values({ teamId, ...flags })
    .onConflict((oc) => oc.column('teamId').doUpdateSet(flags))
    .execute()

const sample = (kind: SamplingKind) => sampleDue({ store, semantic, log }, kind, signal)

const samplesOf = (executionId: string) =>
  db.selectFrom('driftSamples').selectAll().where('executionId', '=', executionId).orderBy('side').execute()

let workflowId: string
beforeAll(async () => {
  workflowId = await host.create(GRAPH as never)
})

test('without the flag nothing is sampled', async () => {
  const id = await host.execute(workflowId, { question: 'Where is my parcel?' })
  await host.ended(id)
  await age('DRIFT')
  expect(await sample('DRIFT')).toBe(0)
  expect(await samplesOf(id)).toEqual([])
})

test('inputs and outputs are sampled once, by several processes too, and secrets are masked before', async () => {
  await setFlags({ driftAlertEnabled: true })
  const question = 'My card 4111 1111 1111 1111 was charged twice, mail me at ada.byron@example.com'
  const id = await host.execute(workflowId, { question, password: 'swordfish-99' })
  await host.ended(id)
  await age('DRIFT')
  embedded.length = 0
  await Promise.all([sample('DRIFT'), sample('DRIFT'), sample('DRIFT')])
  const samples = await samplesOf(id)
  expect(samples.map(({ side }) => side)).toEqual(['INPUT', 'OUTPUT'])
  expect(samples[0]).toMatchObject({
    teamId,
    workflowId,
    model: 'use-lite-en-1',
    length: question.length + 12,
  })
  expect(samples[0]!.meaning).toHaveLength(512)
  expect(embedded.filter((text) => text.includes('was charged twice'))).toHaveLength(2)
  expect(embedded.join()).not.toMatch(/4111|ada\.byron|swordfish/)
  await age('DRIFT')
  embedded.length = 0
  await sample('DRIFT')
  expect(embedded).toEqual([])
})

test('what is not to be kept is not sampled', async () => {
  const unkept = await host.create({
    ...GRAPH,
    settings: { saveData: { inputs: false, outputs: false } },
  } as never)
  const id = await host.execute(unkept, { question: 'A secret question about my health' })
  await host.ended(id)
  await age('DRIFT')
  embedded.length = 0
  await sample('DRIFT')
  expect(await samplesOf(id)).toEqual([])
  expect(embedded).toEqual([])
})

test('a slot that nobody has finished is sampled by another process once its claim has run out', async () => {
  const id = await host.execute(workflowId, { question: 'Who has died?' })
  await host.ended(id)
  await age('DRIFT')
  const stopping = AbortSignal.abort()
  await sql`update sampling_cursors set claimed_until = now() + interval '1 minute', claim = ${crypto.randomUUID()}`.execute(
    db,
  )
  await expect(sampleDue({ store, semantic, log }, 'DRIFT', stopping)).rejects.toThrow()
  expect(await sample('DRIFT')).toBe(0)
  await sql`update sampling_cursors set claimed_until = now() - interval '1 second'`.execute(db)
  expect(await sample('DRIFT')).toBe(1)
  expect(await samplesOf(id)).toHaveLength(2)
})

test('what users say is scored, and only the score is kept', async () => {
  await setFlags({ sentimentTrackingEnabled: true })
  const session = await chats.open(await chats.simpleAgent())
  for (const text of [
    'This is great, thank you!',
    'That is terrible, I hate it',
    'The report is due Monday.',
  ])
    await chats.say(session, text)
  await age('SENTIMENT')
  await Promise.all([sample('SENTIMENT'), sample('SENTIMENT')])
  const scores = await db.selectFrom('sentimentScores').selectAll().orderBy('score').execute()
  expect(scores).toHaveLength(3)
  expect(scores.map(({ score }) => Math.sign(score))).toEqual([-1, 0, 1])
  expect(JSON.stringify(scores)).not.toMatch(/great|terrible/)
  const read = await host.ask<{ days: { count: number; mean: number | null }[] }>(
    'GET',
    `/api/monitoring/teams/${teamId}/sentiment`,
  )
  expect(read.days).toHaveLength(31)
  expect(read.days.reduce((sum, { count }) => sum + count, 0)).toBe(3)
  expect(read.days.map(({ mean }) => mean).filter((mean) => mean !== null)).toEqual([])
  await host.ask('DELETE', `${chats.SESSIONS}/${session}`)
  expect(await db.selectFrom('sentimentScores').selectAll().execute()).toEqual([])
})

test('samples that are past their time are removed', async () => {
  await sql`update drift_samples set ended_at = now() - interval '46 days'`.execute(db)
  expect(await purgeSamples(store, signal)).toBeGreaterThan(3)
  expect(await db.selectFrom('driftSamples').select('executionId').execute()).toEqual([])
})
