import { LRUCache } from 'lru-cache'
import { compilePlan } from '../../workflows/graph/compile.ts'
import { cutPlan } from '../../workflows/graph/single.ts'
import type { Plan } from '../../workflows/run/plan.ts'
import { workInTurns } from '../../workflows/turns.ts'
import { perDatabase } from '../cache.ts'
import type { Store } from '../scope.ts'
import { readVersion } from './versions.ts'

const plansOf = perDatabase(() => new LRUCache<string, Plan>({ max: 200 }))

/**
 * The plan of a version for executions that start at one trigger, or that consist of one node. It is compiled
 * once and then cached, since versions never change. Throws NOT_FOUND.
 */
export async function readCompiledPlan(
  store: Store,
  run: { workflowId: string; workflowVersion: number; triggerNodeId: string; onlyNode: string | null },
): Promise<Plan> {
  const { workflowId, workflowVersion: version, triggerNodeId, onlyNode } = run
  const key = `${workflowId}/${version}/${triggerNodeId}/${onlyNode ?? ''}`
  const plans = plansOf(store.db)
  const known = plans.get(key)
  if (known) return known
  const graph = await readVersion(store, workflowId, version)
  const whole = await workInTurns(compilePlan(graph, { workflowId, version, triggerNodeId }), workflowId)
  const plan = onlyNode ? cutPlan(whole, onlyNode) : whole
  plans.set(key, plan)
  return plan
}
