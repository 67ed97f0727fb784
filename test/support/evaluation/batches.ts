import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import type { BatchDeps, CaseQuestion } from '../../../activities/evaluation/batchcase.ts'
import type { ClaimedCase } from '../../../db/evaluation/batches/cases.ts'
import { startBatches } from '../../../worker/service/evaluation/batches.ts'
import type { Body, Service } from '../service.ts'
import { until } from '../until.ts'

type Said = { score: number | null; explanation: string; flagged: boolean }

/** A judge in this process that counts what it is asked, by case and dimension. */
export function createTestJudge(
  say: (question: CaseQuestion, of: ClaimedCase) => Said | null | Promise<Said | null> = () => scored(4),
) {
  const asked = new Map<string, number>()
  const judge: BatchDeps['judge'] = async (of, question) => {
    const key = `${of.runId} ${of.place} ${question.dimension.name}`
    asked.set(key, (asked.get(key) ?? 0) + 1)
    return say(question, of)
  }
  return { asked, judge, total: () => [...asked.values()].reduce((sum, n) => sum + n, 0) }
}

export const scored = (score: number, explanation = 'It is so'): Said => ({
  score,
  explanation,
  flagged: false,
})

const compose = (scores: Record<string, number | null>) => {
  const known = Object.values(scores).filter((score) => score !== null)
  return known.length === 0 ? null : known.reduce((sum, score) => sum + score, 0) / known.length
}

/** Starts the job that works on batches. Returns the function that ends it; it does not outlast its test. */
export function startJob(
  { store }: Pick<Service, 'store'>,
  judge: BatchDeps['judge'],
  { everyMs = 20, leaseMs = 30_000 } = {},
): () => Promise<void> {
  const log = pino({ level: process.env.TEST_LOG ?? 'silent' })
  const end = startBatches({ store, log, judge, compose }, { everyMs, leaseMs })
  onTestFinished(end)
  return end
}

/** A team with a workflow and a credential for a judge, and requests about its batches. */
export async function makeBatchTeam(service: Service, nodes: object[] = [], edges: object[] = []) {
  const { teamId, cookie, id: userId } = await service.otherTeam()
  const send = (method: string, path: string, json?: object, headers = {}) =>
    service.call(method, path, cookie, json, headers)
  const made = await send('POST', '/api/workflows', { name: 'Answers', teamId, nodes, edges })
  const workflowId: string = made.body.id
  const data = { apiKey: 'k', baseUrl: 'http://127.0.0.1:9/v1' }
  const kept = { teamId, name: 'Judge', type: 'OPENAI_COMPATIBLE', data }
  const credentialId: string = (await send('POST', '/api/credentials', kept)).body.id
  const path = `/api/workflows/${workflowId}/batch-eval`
  const judge = { judgeProvider: 'custom', judgeModel: 'm', judgeCredentialId: credentialId }
  async function start(testCases: object[], more: object = {}, headers = {}): Promise<Body> {
    const { status, text, body } = await send('POST', path, { ...judge, testCases, ...more }, headers)
    if (status !== 200) throw new Error(`the start responded with ${status}: ${text}`)
    return body
  }
  const read = async (id: string): Promise<Body> => (await send('GET', `${path}/${id}`)).body
  const results = async (id: string, query = ''): Promise<Body[]> =>
    (await send('GET', `${path}/${id}/results${query}`)).body
  const ended = (id: string): Promise<Body> =>
    until(() => read(id), { holds: ({ status }: Body) => status !== 'PENDING' && status !== 'RUNNING' })
  return { teamId, cookie, userId, send, workflowId, credentialId, path, judge, start, read, results, ended }
}

/** Cases whose inputs differ. */
export const makeCases = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, at) => ({ input: { question: `Q ${at}` }, output: `A ${at}`, ...more }))

export const rest = (ms: number) => sleep(ms)
