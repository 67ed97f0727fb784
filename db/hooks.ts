import { createHash, timingSafeEqual } from 'node:crypto'
import type { GraphNode } from '../workflows/graph.ts'
import { Fault } from './fault.ts'
import type { Store } from './scope.ts'
import { addExecution, readStartable, type Startable, type Started } from './start.ts'

/** A WEBHOOK_TRIGGER of an active workflow. */
export type Hook = {
  workflow: Startable
  node: GraphNode
  method: string
  /** Lower-case, where the trigger asks for a secret. */
  secretHeader: string | null
}

/** What a webhook's run begins with. */
export type Call = {
  body: unknown
  query: Record<string, string | string[]>
  headers: Record<string, string>
  method: string
}

/** The triggers at a path, one per method. Throws NOT_FOUND where the workflow is unknown or inactive, or has none. */
export async function findHooks(store: Store, workflowId: string, path: string): Promise<Hook[]> {
  const workflow = await readStartable(store, workflowId, () => true)
  const nodes = workflow?.active ? workflow.graph.nodes : []
  const hooks = nodes.flatMap((node) => {
    const config = node.config as { path?: string; method?: string; secretHeader?: { name: string } }
    if (node.type !== 'WEBHOOK_TRIGGER' || node.disabled || config.path !== path) return []
    const secretHeader = config.secretHeader?.name.toLowerCase() ?? null
    return [{ workflow: workflow!, node, method: config.method ?? 'POST', secretHeader }]
  })
  if (hooks.length === 0) throw new Fault('NOT_FOUND', 'There is no such webhook')
  return hooks
}

/** Throws UNAUTHENTICATED unless `given` is the secret that the trigger asks for; takes the same time for any text. */
export function checkSecret(hook: Hook, given: string | undefined): void {
  if (hook.secretHeader === null) return
  const { secretHeader } = hook.node.config as { secretHeader: { value: string } }
  if (given === undefined || !timingSafeEqual(digest(given), digest(secretHeader.value))) {
    throw new Fault('UNAUTHENTICATED', `The header ${hook.secretHeader} must hold the secret of this webhook`)
  }
}

/** Accepts a run of the hook's workflow, which starts at the hook. */
export async function startHook(
  store: Store,
  hook: Hook,
  call: Call,
  traceparent?: string,
): Promise<Started> {
  const by = { kind: 'SYSTEM' as const, id: null, name: 'webhook' }
  const { workflow, node } = hook
  return addExecution(store, workflow, { node, trigger: 'WEBHOOK', data: call, by, traceparent })
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
