import type { InferOutput } from 'valibot'
import type { CaseResultSchema } from '../../evaluation/batches/fields.ts'
import { addressOf, api, FRESH_MS, keepRows, queries, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const { refresh, useRead, write } = resource('evaluations')

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
  return useRead([workflowId, 'config'], () =>
    read(ofWorkflow['eval-config'].$get({ param: { workflowId } })),
  )
}

export type EvalConfig = NonNullable<ReturnType<typeof useEvalConfig>['data']>
export type ConfigPatch = Parameters<(typeof ofWorkflow)['eval-config']['$put']>[0]['json']

export async function updateEvalConfig(workflowId: string, json: ConfigPatch) {
  return write(read(ofWorkflow['eval-config'].$put({ param: { workflowId }, json })))
}

/** The workflow's own word is taken back; the team's counts then. */
export async function resetEvalConfig(workflowId: string) {
  return write(ofWorkflow['eval-config'].$delete({ param: { workflowId } }))
}

/** What counts for each field of which a workflow says nothing. */
export function useTeamEvalConfig(teamId: string) {
  return useRead([teamId, 'team-config'], () => read(ofTeam['eval-config'].$get({ param: { teamId } })))
}

export async function updateTeamEvalConfig(teamId: string, json: ConfigPatch) {
  return write(read(ofTeam['eval-config'].$put({ param: { teamId }, json })))
}

export async function resetTeamEvalConfig(teamId: string) {
  return write(ofTeam['eval-config'].$delete({ param: { teamId } }))
}

/** The team's own dimensions, with what each score means. */
export function useOwnDimensions(teamId: string) {
  return useRead(
    [teamId, 'dimensions'],
    async () => (await read(ofTeam['eval-dimensions'].$get({ param: { teamId } }))).dimensions,
  )
}

export type Dimension = NonNullable<ReturnType<typeof useOwnDimensions>['data']>[number]

/** The names of the dimensions that every team has, and of the team's own. */
export function useDimensions(teamId: string) {
  const { data } = useOwnDimensions(teamId)
  return data && [...BUILT_IN, ...data.map(({ name }) => name)]
}

export async function updateDimensions(teamId: string, dimensions: Dimension[]) {
  return write(read(ofTeam['eval-dimensions'].$put({ param: { teamId }, json: { dimensions } })))
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
  return useRead([workflowId, 'scores', failed, page], () => listScores(workflowId, failed, page), {
    refetchInterval: FRESH_MS * 2,
    ...keepRows,
  })
}

/** The summary of the last 30 days. */
export function useScoreSummary(workflowId: string) {
  return useRead(
    [workflowId, 'summary'],
    () => read(ofWorkflow.evaluations.summary.$get({ param: { workflowId }, query: {} })),
    { refetchInterval: FRESH_MS * 2 },
  )
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
  return useRead([workflowId, 'batches', page, size], () => listBatches(workflowId, page, size), {
    refetchInterval: ({ state }) => (state.data?.content.some(isBatchOpen) ? FRESH_MS / 2 : false),
    ...keepRows,
  })
}

type NewBatch = Parameters<typeof batches.$post>[0]['json']

export async function startBatch(workflowId: string, json: NewBatch) {
  return write(read(batches.$post({ param: { workflowId }, json })))
}

export function useBatch(workflowId: string, runId: string) {
  return useRead([workflowId, 'batch', runId], () => read(one.$get({ param: { workflowId, runId } })))
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
  return useRead([workflowId, 'cases', id, filter, page], () => listCases(workflowId, id, filter, page), {
    ...keepRows,
  })
}

/** How a batch differs from one before it. */
export function useComparison(workflowId: string, before: string, after: string) {
  return useRead(
    [workflowId, 'comparison', before, after],
    () => read(one.compare.$get({ param: { workflowId, runId: before }, query: { with: after } })),
    { enabled: before !== '' },
  )
}

export type Comparison = NonNullable<ReturnType<typeof useComparison>['data']>

export async function cancelBatch({ workflowId, id }: Batch) {
  return write(read(one.cancel.$post({ param: { workflowId, runId: id } })))
}

export async function deleteBatch({ workflowId, id }: Batch) {
  const done = await read(one.$delete({ param: { workflowId, runId: id } }))
  // A deleted batch is not read again: its page is left.
  queries.removeQueries({ queryKey: ['evaluations', workflowId, 'batch', id] })
  await refresh(workflowId, 'batches')
  return done
}

export async function refreshEvaluations() {
  await refresh()
}
