import { useQuery } from '@tanstack/react-query'
import { addressOf } from '../data/client.ts'
import { findCall } from '../executions/starts/last.ts'

/** A node of a graph as the API gives it, or as it is in the editor. */
type Node = {
  id: string
  type: string
  name?: string | undefined
  config?: unknown
  disabled?: boolean | undefined
}

/** A webhook of a workflow: where it is, and what a call of it looks like. */
export type Hook = {
  node: Node
  workflowId: string
  teamId: string
  method: string
  path: string
  url: string
  sendsBody: boolean
  example: string
  /** What a caller must show. */
  guards: string[]
  /** Headers that the caller has to add. */
  headers: string[]
}

/** The webhooks of a graph, at their live addresses or at those for tests. */
export function findHooks(
  { id, teamId, nodes }: { id: string; teamId: string; nodes: Node[] },
  place: 'hooks' | 'hooks-test' = 'hooks',
): Hook[] {
  return nodes.flatMap((node): Hook[] => {
    if (node.type !== 'WEBHOOK_TRIGGER' || node.disabled) return []
    const { path, method = 'POST', secretHeader, signature } = readConfig(node)
    if (path === undefined) return []
    const at = `/${place}/${id}/${encodeURIComponent(path)}`
    const sendsBody = !['GET', 'HEAD', 'DELETE'].includes(method)
    return [
      {
        node,
        workflowId: id,
        teamId,
        method,
        path: at,
        url: addressOf(at),
        sendsBody,
        example: sendsBody ? '{\n  "hello": "world"\n}' : '',
        guards: [
          ...(secretHeader ? [`needs the header ${secretHeader.name}`] : []),
          ...(signature ? [`needs a signature in ${signature.header}`] : []),
        ],
        headers: [
          ...(secretHeader ? [`${secretHeader.name}: $SECRET`] : []),
          ...(signature ? [`${signature.header}: $SIGNATURE`] : []),
        ],
      },
    ]
  })
}

type HookConfig = {
  path?: string
  method?: string
  secretHeader?: { name: string }
  signature?: { header: string }
}

/** The graph that is shown has been checked by the API, so its configs are what their types say. */
function readConfig(node: Node): HookConfig {
  return (node.config ?? {}) as HookConfig
}

/** The call as a line for a shell. */
export function writeHookCurl({ method, url, sendsBody, example, headers }: Hook): string {
  const body = JSON.stringify(sendsBody ? JSON.parse(example) : {})
  return [
    `curl -sS -X ${method} ${url}`,
    ...headers.map((header) => `-H "${header}"`),
    ...(sendsBody ? ["-H 'Content-Type: application/json'", `-d '${body}'`] : []),
  ].join(' ')
}

/** The body of the last call of this webhook, as JSON; null if the newest calls have none. */
export function useLastCall({ node, teamId, workflowId, sendsBody }: Hook) {
  return useQuery({
    queryKey: ['executions', 'call', workflowId, node.id],
    queryFn: () =>
      findCall({ teamId, workflowId, nodeId: node.id }, ({ nodeExecutions }) => {
        const body = nodeExecutions.find((one) => one.nodeId === node.id)?.outputData?.body
        return body === undefined || body === null ? undefined : JSON.stringify(body, null, 2)
      }),
    enabled: sendsBody,
    staleTime: Number.POSITIVE_INFINITY,
  })
}
