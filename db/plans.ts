import { cutPlan } from '../workflows/alone.ts'
import { compilePlan, type Plan } from '../workflows/plan.ts'
import type { Store } from './scope.ts'
import { readVersion } from './versions.ts'

const MAX_CACHED = 200
const cached = new Map<string, Plan>()

/** The plan of a version for runs that start at one trigger, or of one node: compiled once, since versions never change. */
export async function readPlan(
  store: Store,
  run: { workflowId: string; workflowVersion: number; triggerNodeId: string; onlyNode: string | null },
): Promise<Plan> {
  const { workflowId, workflowVersion: version, triggerNodeId, onlyNode } = run
  const key = `${workflowId}/${version}/${triggerNodeId}/${onlyNode ?? ''}`
  let plan = cached.get(key)
  if (!plan) {
    plan = compilePlan(await readVersion(store, workflowId, version), { workflowId, version, triggerNodeId })
    if (onlyNode) plan = cutPlan(plan, onlyNode)
    if (cached.size >= MAX_CACHED) cached.delete(cached.keys().next().value!)
    cached.set(key, plan)
  }
  return plan
}
