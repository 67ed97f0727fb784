import { api, keepRows, read } from '../data/client.ts'
import { serverNow } from '../data/clock.ts'
import { resource } from '../data/resource.ts'
import type { Execution } from './data.ts'

const { useRead } = resource('executions')

export type NodeRecord = Execution['nodeExecutions'][number]

/** What the stream of an execution tells of a record: all but its values. */
export type RecordState = Pick<
  NodeRecord,
  'id' | 'nodeId' | 'nodeName' | 'nodeType' | 'iteration' | 'step' | 'tool' | 'status' | 'startedAt'
> &
  Pick<
    NodeRecord,
    | 'completedAt'
    | 'durationMs'
    | 'errorMessage'
    | 'handle'
    | 'retryCount'
    | 'nextAttemptAt'
    | 'waitingUntil'
    | 'itemCount'
  > & { handles?: (string | null)[] | undefined }

const SIZE = 25

/**
 * A record with its values, where the execution itself does not show it: it is looked for among those of its node,
 * around the place that its rank gives.
 */
async function findRecord(executionId: string, wanted: RecordState, rank: number) {
  const about = Math.floor(rank / SIZE)
  for (const page of [about, about - 1, about + 1]) {
    if (page < 0) continue
    const query = { nodeId: wanted.nodeId, page: String(page), size: String(SIZE) }
    const found = await read(api.api.executions[':id'].nodes.$get({ param: { id: executionId }, query }))
    const record = found.content.find(({ id }) => id === wanted.id)
    if (record) return record
  }
  return null
}

/** The values of a record; `known` is what the execution already shows of it. */
export function useRecord(
  executionId: string,
  state: RecordState | undefined,
  known: NodeRecord | undefined,
  rank: number,
) {
  const found = useRead(
    ['record', executionId, state?.id, state?.status, state?.retryCount],
    () => findRecord(executionId, state!, rank),
    { enabled: state !== undefined && known === undefined, ...keepRows },
  )
  if (known) return { record: known, error: null, isPending: false }
  const record = found.data && found.data.id === state?.id ? found.data : undefined
  return { record, error: found.error, isPending: state !== undefined && found.isFetching && !record }
}

/** The attempts of a record, read again whenever it tells of another one or of an end. */
export function useAttempts(
  executionId: string,
  { id, status, retryCount, nextAttemptAt, completedAt }: RecordState,
  { page = 0, enabled }: { page?: number; enabled: boolean },
) {
  return useRead(
    ['attempts', executionId, id, page, status, retryCount, nextAttemptAt],
    () =>
      read(
        api.api.executions[':id'].nodes[':recordId'].attempts.$get({
          param: { id: executionId, recordId: id },
          query: { page: String(page), size: '50' },
        }),
      ),
    {
      enabled,
      refetchInterval: ({ state }) => {
        // The type of the last failure, and the beginning of the attempt under way, are noted a moment later.
        const last = state.data?.content.at(-1)
        const late = last && (last.startedAt === null || (last.error && last.error.type === null))
        const fresh = completedAt === null || Date.now() - Date.parse(completedAt) < LATE_MS
        return late && fresh ? POLL_MS : false
      },
      ...keepRows,
    },
  )
}

export type NodeAttempt = NonNullable<ReturnType<typeof useAttempts>['data']>['content'][number]

const POLL_MS = 1_500
const LATE_MS = 60_000

/** What each attempt of a node has really sent; read again `until` the end of this record is noted. */
export function useRequests(
  executionId: string,
  recordId: string,
  { page, enabled, until }: { page: number; enabled: boolean; until?: RecordState },
) {
  return useRead(
    ['requests', executionId, recordId, page],
    () =>
      read(
        api.api.executions[':id'].nodes[':recordId'].requests.$get({
          param: { id: executionId, recordId },
          query: { page: String(page) },
        }),
      ),
    {
      enabled,
      refetchInterval: ({ state }) => {
        if (!until) return false
        // An attempt that has just ended is noted a moment later.
        const last = state.data?.content.at(-1)
        const noted = last && last.attempt > until.retryCount && (last.response ?? last.error) !== null
        const fresh = until.completedAt === null || serverNow() - Date.parse(until.completedAt) < LATE_MS
        return fresh && !(until.completedAt && noted) ? POLL_MS : false
      },
      ...keepRows,
    },
  )
}

export type NodeRequest = NonNullable<ReturnType<typeof useRequests>['data']>['content'][number]
