import { findStart, type Graph, type GraphNode } from '../../../workflows/graph/graph.ts'
import { nodeType } from '../../../workflows/nodes/nodes.ts'
import { quoteShort } from '../../../workflows/problem.ts'
import type { Role } from '../../acts.ts'
import { Fault, invalid, missing } from '../../fault.ts'
import { demand, type Scope } from '../../scope.ts'
import { chooseVersion, readStartable, type StartableWorkflow, type VersionChosen } from './startable.ts'
import { isWebhook, readWebhook, type Webhook } from './webhooks.ts'

/**
 * The trigger that an execution starts at: the one that is asked for by its id, else the one of findStart. Throws
 * CONFLICT if the graph has no trigger, and INVALID if the one that is asked for cannot start.
 */
export function chooseStart(graph: Graph, asked: string | undefined): GraphNode {
  const node = asked === undefined ? findStart(graph) : graph.nodes.find(({ id }) => id === asked)
  if (node && isStart(node)) return node
  const starts = graph.nodes.filter(isStart)
  if (starts.length === 0) throw new Fault('CONFLICT', 'The workflow has no trigger to start at')
  const problem = !node ? 'there is no such node' : node.disabled ? 'is disabled' : 'is not a trigger'
  const message = `${problem}; the triggers are ${listIds(starts)}`
  throw invalid([{ path: 'trigger', message }])
}

function isStart(node: GraphNode): boolean {
  return !node.disabled && nodeType(node.type)?.kind === 'trigger'
}

function listIds(nodes: GraphNode[]): string {
  return nodes.map(({ id }) => quoteShort(id)).join(', ')
}

/** Without a `teamId` the workflow may be of any team. `least` is the role that it needs: OPERATOR unless given. */
type AskedVersion = { teamId?: string; version?: VersionChosen | undefined; least?: Role }

/**
 * The workflow that a caller executes, with the version that was chosen, which needs a BUILDER. `draft`: it is not the
 * published one. Throws NOT_FOUND if the team has no such workflow or version, and CONFLICT if there is no draft.
 */
export async function readExecuted(
  scope: Scope,
  workflowId: string,
  { teamId, version, least = 'OPERATOR' }: AskedVersion,
): Promise<{ workflow: StartableWorkflow; draft: boolean }> {
  const workflow = await readStartable(scope.store, workflowId, (owner) => {
    demand(scope, owner, version === undefined ? least : 'BUILDER')
    return teamId === undefined || owner === teamId
  })
  if (!workflow && teamId === undefined) throw missing('workflow')
  if (!workflow) throw new Fault('NOT_FOUND', 'The team has no such workflow')
  return chooseVersion(scope.store, workflow, version)
}

/**
 * The webhook that an execution with a request starts at (OPERATOR). Throws as readExecuted and chooseStart do, and
 * INVALID if the execution starts elsewhere.
 */
export async function findStartHook(
  scope: Scope,
  workflowId: string,
  { trigger, ...asked }: AskedVersion & { trigger?: string | undefined },
): Promise<Webhook> {
  const { workflow } = await readExecuted(scope, workflowId, asked)
  const node = chooseStart(workflow.graph, trigger)
  if (isWebhook(node)) return readWebhook(workflow, node)
  const hooks = workflow.graph.nodes.filter(isWebhook)
  const advice =
    hooks.length > 0 ? `; name a webhook in \`trigger\`: ${listIds(hooks)}` : '; give it `data` instead'
  const message = `is for a WEBHOOK_TRIGGER, and the execution starts at ${quoteShort(node.id)}, a ${node.type}`
  throw invalid([{ path: 'request', message: message + advice }])
}
