import { LRUCache } from 'lru-cache'
import { compilePlan } from '../../workflows/graph/compile.ts'
import { prunePlan, readPart } from '../../workflows/graph/part.ts'
import { cutPlan } from '../../workflows/graph/single.ts'
import type { Plan } from '../../workflows/run/plan.ts'
import { workInTurns } from '../../workflows/turns.ts'
import { perDatabase } from '../cache.ts'
import type { Store } from '../scope.ts'
import { readVersion } from './versions.ts'

const plansOf = perDatabase(() => new LRUCache<string, Promise<Plan>>({ max: 200 }))

type PlannedRun = {
  teamId: string
  workflowId: string
  workflowVersion: number
  triggerNodeId: string
  /** As it is stored: see readPart. */
  onlyNode: string | null
}

/**
 * The plan of a version for executions that start at one trigger, or that consist of a part of the graph. It is compiled
 * once and then cached, since versions never change. Throws NOT_FOUND.
 */
export function readCompiledPlan(store: Store, run: PlannedRun): Promise<Plan> {
  const { workflowId, workflowVersion, triggerNodeId, onlyNode } = run
  const key = `${workflowId}/${workflowVersion}/${triggerNodeId}/${onlyNode ?? ''}`
  const plans = plansOf(store.db)
  const known = plans.get(key)
  if (known) return known
  // Cached before it is done: executions that begin at once share the work.
  const plan = compile(store, run)
  plans.set(key, plan)
  plan.catch(() => plans.delete(key))
  return plan
}

async function compile(store: Store, run: PlannedRun): Promise<Plan> {
  const { teamId, workflowId, workflowVersion: version, triggerNodeId, onlyNode } = run
  const graph = await readVersion(store, workflowId, version)
  const whole = await workInTurns(compilePlan(graph, { workflowId, version, triggerNodeId }), teamId)
  const part = readPart(onlyNode)
  if (part.until !== null) return prunePlan(whole, part.until)
  return part.onlyNode === null ? whole : cutPlan(whole, part.onlyNode)
}
