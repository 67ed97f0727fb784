import { findTimezone } from '../../cron/zones.ts'
import type { Overlap } from '../../nodes/triggers.ts'
import type { Graph, GraphNode } from '../graph.ts'

/** A SCHEDULE_TRIGGER as it is registered with Temporal. `timezone` is an IANA name. */
export type Schedule = {
  nodeId: string
  cron: string
  timezone: string
  overlap: Overlap
  catchupWindowMs: number
}

/** The schedules of a graph, in the author's order. `timezone` is for those that set none themselves. */
export function findSchedules(graph: Graph, timezone: string | null | undefined): Schedule[] {
  return graph.nodes.filter(isSchedule).map((node) => {
    const config = node.config as Omit<Schedule, 'nodeId' | 'timezone'> & { timezone?: string }
    const { cron, overlap, catchupWindowMs } = config
    const zone = findTimezone(config.timezone ?? timezone ?? 'UTC') ?? 'UTC'
    return { nodeId: node.id, cron, timezone: zone, overlap, catchupWindowMs }
  })
}

/** Whether the node is a SCHEDULE_TRIGGER that is not disabled. */
export function isSchedule(node: GraphNode): boolean {
  return node.type === 'SCHEDULE_TRIGGER' && !node.disabled
}
