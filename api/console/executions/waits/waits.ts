import { addressOf, api, askRaw, read } from '../../data/client.ts'
import { resource } from '../../data/resource.ts'

const { refresh, useRead } = resource('executions')

const SIZE = 100

/** What an execution waits for at the moment: approvals and events. */
export function useWaits(executionId: string, enabled: boolean) {
  return useRead(
    ['waits', executionId],
    () =>
      read(
        api.api.executions[':id'].waits.$get({ param: { id: executionId }, query: { size: String(SIZE) } }),
      ),
    { enabled },
  )
}

export type Wait = NonNullable<ReturnType<typeof useWaits>['data']>['content'][number]

/** Resumes all nodes of the execution that wait for this event. */
export async function sendEvent(executionId: string, name: string, data: unknown) {
  const path = `/api/executions/${executionId}/events/${encodeURIComponent(name)}`
  // A single `data` key is unwrapped by the API, so it is sent in one: what was typed arrives as it is.
  const answer = (await (await askRaw('POST', path, { data })).json()) as { resumed: number }
  await refresh()
  return answer
}

/** A command that sends the event from elsewhere; the resume URL needs no sign-in. */
export function writeResumeCurl(url: string): string {
  return `curl -X POST '${url.startsWith('/') ? addressOf(url) : url}' -H 'Content-Type: application/json' -d '{}'`
}
