import { addressOf } from '../data/client.ts'
import type { Workflow } from '../data/workflows.ts'

type Node = Workflow['nodes'][number]

/** A webhook of a workflow: where it is, and what a call of it looks like. */
export type Hook = {
  node: Node
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

export function findHooks({ id, nodes }: Pick<Workflow, 'id' | 'nodes'>): Hook[] {
  return nodes.flatMap((node): Hook[] => {
    if (node.type !== 'WEBHOOK_TRIGGER' || node.disabled) return []
    const { path, method = 'POST', secretHeader, signature } = readConfig(node)
    if (path === undefined) return []
    const at = `/hooks/${id}/${encodeURIComponent(path)}`
    const sendsBody = !['GET', 'HEAD', 'DELETE'].includes(method)
    return [
      {
        node,
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
export function writeCurl({ method, url, sendsBody, example, headers }: Hook): string {
  const body = JSON.stringify(sendsBody ? JSON.parse(example) : {})
  return [
    `curl -sS -X ${method} ${url}`,
    ...headers.map((header) => `-H "${header}"`),
    ...(sendsBody ? ["-H 'Content-Type: application/json'", `-d '${body}'`] : []),
  ].join(' ')
}
