import { useEffect, useState } from 'react'
import { api, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'
import { listExecutions } from '../executions/data.ts'

const POLL_MS = 1_000
/** The service closes the test addresses two minutes after it was last asked to open them. */
const RENEW_MS = 45_000

const { useRead, refresh } = resource('listening')

// The client makes a new object at each access: in a component, it would be another one at each render.
const { listening } = api.api.workflows[':id']

/** Keeps the workflow's test addresses open while it is shown, and closes them after. */
export function useListening(id: string) {
  useEffect(
    () => () => {
      // Without an answer they close by themselves.
      void read(listening.$delete({ param: { id } }))
        .then(() => refresh(id))
        .catch(() => {})
    },
    [id],
  )
  return useRead([id], () => read(listening.$put({ param: { id } })), {
    refetchInterval: RENEW_MS,
    refetchIntervalInBackground: true,
    gcTime: 0,
    staleTime: 0,
  })
}

/** The first execution that was not there when one began to listen. */
export function useArrival(workflowId: string, teamId: string) {
  const [before, setBefore] = useState<ReadonlySet<string>>()
  const found = useRead(
    [workflowId, 'arrival'],
    ({ signal }) => listExecutions(teamId, { workflowId, size: 20 }, signal),
    { refetchInterval: POLL_MS, gcTime: 0, staleTime: 0 },
  )
  const content = found.data?.content
  useEffect(() => {
    if (content) setBefore((known) => known ?? new Set(content.map((one) => one.id)))
  }, [content])
  const arrived = before && content?.findLast((one) => !before.has(one.id))
  return { ready: before !== undefined, arrived }
}
