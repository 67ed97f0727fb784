import { useQuery } from '@tanstack/react-query'
import type { InferOutput } from 'valibot'
import type { CaseResultSchema } from '../../evaluation/batchfields.ts'
import { addressOf, api, FRESH_MS, keepRows, queries, read } from '../data/client.ts'

const ofWorkflow = api.api.monitoring.workflow[':workflowId']
const ofTeam = api.api.monitoring.teams[':teamId']
const batches = api.api.workflows[':workflowId']['batch-eval']
const one = batches[':runId']

/** The credential that a judge of each provider is called with. */
export const PROVIDERS = {
  openai: { label: 'OpenAI', credential: 'OPENAI' },
  anthropic: { label: 'Anthropic', credential: 'ANTHROPIC' },
  azure_openai: { label: 'Azure OpenAI', credential: 'AZURE_OPENAI' },
  google: { label: 'Google', credential: 'GOOGLE_AI' },
  custom: { label: 'OpenAI-compatible', credential: 'OPENAI_COMPATIBLE' },
} as const
export type Provider = keyof typeof PROVIDERS

export const BUILT_IN = ['groundedness', 'relevance', 'safety'] as const

export function useEvalConfig(workflowId: string) {
  return useQuery({
    queryKey: ['evaluations', workflowId, 'config'],
    queryFn: () => read(ofWorkflow['eval-config'].$get({ param: { workflowId } })),
    enabled: workflowId !== '',
  })
}

export type EvalConfig = NonNullable<ReturnType<typeof useEvalConfig>['data']>
export type ConfigPatch = Parameters<(typeof ofWorkflow)['eval-config']['$put']>[0]['json']

export async function updateEvalConfig(workflowId: string, json: ConfigPatch) {
  return refresh(read(ofWorkflow['eval-config'].$put({ param: { workflowId }, json })))
}

/** The workflow's own word is taken back; the team's counts then. */
export async function resetEvalConfig(workflowId: string) {
  return refresh(ofWorkflow['eval-config'].$delete({ param: { workflowId } }))
}

/** What counts for each field of which a workflow says nothing. */
export function useTeamEvalConfig(teamId: string) {
  return useQuery({
    queryKey: ['evaluations', teamId, 'team-config'],
    queryFn: () => read(ofTeam['eval-config'].$get({ param: { teamId } })),
    enabled: teamId !== '',
  })
}

export async function updateTeamEvalConfig(teamId: string, json: ConfigPatch) {
  return refresh(read(ofTeam['eval-config'].$put({ param: { teamId }, json })))
}

export async function resetTeamEvalConfig(teamId: string) {
  return refresh(ofTeam['eval-config'].$delete({ param: { teamId } }))
}

/** The team's own dimensions, with what each score means. */
export function useOwnDimensions(teamId: string) {
  return useQuery({
    queryKey: ['evaluations', teamId, 'dimensions'],
    queryFn: async () => (await read(ofTeam['eval-dimensions'].$get({ param: { teamId } }))).dimensions,
    enabled: teamId !== '',
  })
}

export type Dimension = NonNullable<ReturnType<typeof useOwnDimensions>['data']>[number]

/** The names of the dimensions that every team has, and of the team's own. */
export function useDimensions(teamId: string) {
  const { data } = useOwnDimensions(teamId)
  return data && [...BUILT_IN, ...data.map(({ name }) => name)]
}

export async function updateDimensions(teamId: string, dimensions: Dimension[]) {
  return refresh(read(ofTeam['eval-dimensions'].$put({ param: { teamId }, json: { dimensions } })))
}

async function listScores(workflowId: string, failed: string, page: number) {
  const query = {
    page: String(page),
    ...(failed === 'true' || failed === 'false' ? { failed: failed as 'true' | 'false' } : {}),
  }
  return read(ofWorkflow.evaluations.$get({ param: { workflowId }, query }))
}

export type Score = Awaited<ReturnType<typeof listScores>>['content'][number]

/** How runs were judged, the newest first. */
export function useScores(workflowId: string, failed: string, page: number) {
  return useQuery({
    queryKey: ['evaluations', workflowId, 'scores', failed, page],
    queryFn: () => listScores(workflowId, failed, page),
    enabled: workflowId !== '',
    refetchInterval: FRESH_MS * 2,
    ...keepRows,
  })
}

/** Of the last 30 days. */
export function useScoreSummary(workflowId: string) {
  return useQuery({
    queryKey: ['evaluations', workflowId, 'summary'],
    queryFn: () => read(ofWorkflow.evaluations.summary.$get({ param: { workflowId }, query: {} })),
    enabled: workflowId !== '',
    refetchInterval: FRESH_MS * 2,
  })
}

async function listBatches(workflowId: string, page: number, size: number) {
  const query = { page: String(page), size: String(size) }
  return read(batches.$get({ param: { workflowId }, query }))
}

export type Batch = Awaited<ReturnType<typeof listBatches>>['content'][number]

export function isBatchOpen({ status }: Pick<Batch, 'status'>): boolean {
  return status === 'PENDING' || status === 'RUNNING'
}

/** A workflow's batches, the newest first; as long as one goes on, they are read again. */
export function useBatches(workflowId: string, page: number, size = 20) {
  return useQuery({
    queryKey: ['evaluations', workflowId, 'batches', page, size],
    queryFn: () => listBatches(workflowId, page, size),
    enabled: workflowId !== '',
    refetchInterval: ({ state }) => (state.data?.content.some(isBatchOpen) ? FRESH_MS / 2 : false),
    ...keepRows,
  })
}

type NewBatch = Parameters<typeof batches.$post>[0]['json']

export async function startBatch(workflowId: string, json: NewBatch) {
  return refresh(read(batches.$post({ param: { workflowId }, json })))
}

export function useBatch(workflowId: string, runId: string) {
  return useQuery({
    queryKey: ['evaluations', workflowId, 'batch', runId],
    queryFn: () => read(one.$get({ param: { workflowId, runId } })),
  })
}

export type BatchDetail = NonNullable<ReturnType<typeof useBatch>['data']>

/** The events of a batch that is under way. */
export function eventsOf({ workflowId, id }: Batch): string {
  return `/api/workflows/${workflowId}/batch-eval/${id}/events`
}

/** Where its results are downloaded. */
export function exportOf({ workflowId, id }: Batch, format: 'csv' | 'json'): string {
  return addressOf(`/api/workflows/${workflowId}/batch-eval/${id}/export?format=${format}`)
}

/** How many cases a page has. */
export const CASES = 20

export type Case = InferOutput<typeof CaseResultSchema>

/** The answer may be a stream, so that the client does not know its type. */
async function listCases(workflowId: string, runId: string, filter: string, page: number) {
  const query = {
    page: String(page),
    size: String(CASES),
    ...(filter === 'failed' ? { passed: 'false' as const } : {}),
    ...(filter === 'passed' ? { passed: 'true' as const } : {}),
  }
  return (await read(one.results.$get({ param: { workflowId, runId }, query }))) as Case[]
}

export function useCases({ workflowId, id }: Batch, filter: string, page: number) {
  return useQuery({
    queryKey: ['evaluations', workflowId, 'cases', id, filter, page],
    queryFn: () => listCases(workflowId, id, filter, page),
    ...keepRows,
  })
}

/** How a batch differs from one before it. */
export function useComparison(workflowId: string, before: string, after: string) {
  return useQuery({
    queryKey: ['evaluations', workflowId, 'comparison', before, after],
    queryFn: () => read(one.compare.$get({ param: { workflowId, runId: before }, query: { with: after } })),
    enabled: before !== '',
  })
}

export type Comparison = NonNullable<ReturnType<typeof useComparison>['data']>

export async function cancelBatch({ workflowId, id }: Batch) {
  return refresh(read(one.cancel.$post({ param: { workflowId, runId: id } })))
}

export async function deleteBatch({ workflowId, id }: Batch) {
  const done = await read(one.$delete({ param: { workflowId, runId: id } }))
  // What is deleted is not read again: its page is left.
  queries.removeQueries({ queryKey: ['evaluations', workflowId, 'batch', id] })
  await queries.invalidateQueries({ queryKey: ['evaluations', workflowId, 'batches'] })
  return done
}

export async function refreshEvaluations() {
  await queries.invalidateQueries({ queryKey: ['evaluations'] })
}

async function refresh<T>(work: Promise<T>): Promise<T> {
  const done = await work
  await refreshEvaluations()
  return done
}
