import { v5 as uuidv5 } from 'uuid'
import type { Agent, Envelope, PlanNode } from '../../../workflows/run/plan.ts'
import type { LoopItems, NodeNotes } from '../../../workflows/run/records.ts'
import { joinStep } from '../../../workflows/run/walk.ts'
import type { ExecutionStatus } from '../status.ts'

/** A node's record as the histories tell it; times are in milliseconds since 1970. */
export type ProjectedNode = {
  id: string
  nodeId: string
  iteration: string
  /** The number of an agent's step, and the tool that it calls (null in a turn); null in all other records. */
  step: number | null
  tool: string | null
  nodeName: string
  nodeType: string
  status: ExecutionStatus
  startedAt: number
  completedAt: number | null
  output: Envelope | null
  handle: string | null
  errorMessage: string | null
  notes?: NodeNotes | undefined
  retryCount: number
  /** The record's number in the order in which nodes began, from 0. */
  position: number
  /** A loop's items; null for other nodes. */
  loop: LoopItems | null
  /** How many they are; null for a REPEAT, which does not know, and for other nodes. */
  itemCount: number | null
  /** The latest end of its wait; null without a limit. It has no meaning once the node is settled. */
  waitingUntil: number | null
  /** What an agent's step got, or of an agent that is not done, where it is; null in all other records. */
  agent: StepInput | Agent | null
  /**
   * Where a preset output came from: PINNED or the id of the execution that made it; null for other outputs.
   */
  givenBy: string | null
}

/** What an agent's step got. */
export type StepInput = { input: Envelope }

/** What an execution's rows should say; times are in milliseconds since 1970. */
export type Projection = {
  runId: string
  /** The number of the run in its chain, from 0. */
  position: number
  lastEventId: number
  /** The position up to which everything else is stored; without it, this is the whole projection. */
  since?: { position: number; lastEventId: number }
  /** Whether any node has begun. */
  began: boolean
  /** How many records there are in all. */
  recordCount: number
  status: ExecutionStatus
  startedAt: number
  completedAt: number | null
  errorMessage: string | null
  nodes: ProjectedNode[]
}

/**
 * The id of a node's record, or of that of a step: then `iteration` is what joinStep makes. It depends only on the
 * arguments, so every writer uses the same one.
 */
export function nodeExecutionId(executionId: string, nodeId: string, iteration: string): string {
  return uuidv5(`${nodeId}#${iteration}`, executionId)
}

/** A record of a node that has just begun. */
export function openRecord(
  executionId: string,
  node: PlanNode,
  begun: Pick<ProjectedNode, 'iteration' | 'step' | 'tool' | 'startedAt' | 'position'>,
): ProjectedNode {
  return {
    id: nodeExecutionId(executionId, node.id, joinStep(begun.iteration, begun.step)),
    nodeId: node.id,
    nodeName: node.name,
    nodeType: node.type,
    status: 'RUNNING',
    completedAt: null,
    output: null,
    handle: null,
    errorMessage: null,
    retryCount: 0,
    loop: null,
    itemCount: null,
    waitingUntil: null,
    agent: null,
    givenBy: node.given?.from ?? null,
    ...begun,
  }
}

/** The bytes of a record's values. */
export function weigh({ output, errorMessage, notes, loop, agent }: ProjectedNode): number {
  const pages = (loop?.pages ?? []).map(({ items }) => items)
  const given = agent && 'input' in agent ? agent.input : agent?.state
  const envelopes = [output, given, ...pages]
  const bytes = envelopes.reduce((sum, value) => sum + (value && 'v' in value ? value.bytes : 100), 0)
  return bytes + (errorMessage?.length ?? 0) + (notes ? JSON.stringify(notes).length : 0)
}
