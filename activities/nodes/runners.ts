import type { NODES, NodeTypeName } from '../../workflows/nodes.ts'
import { runFilter } from './filter.ts'
import { runHttpRequest } from './http.ts'
import { runIfElse } from './ifelse.ts'
import { runMerge } from './merge.ts'
import type { NodeRunner } from './node.ts'
import { runNoOp } from './noop.ts'
import { runSet } from './set.ts'
import { runStopAndError } from './stop.ts'
import { runSwitch } from './switch.ts'
import { runWait } from './wait.ts'

type Trigger = { [T in NodeTypeName]: (typeof NODES)[T]['kind'] extends 'trigger' ? T : never }[NodeTypeName]

/** What runs each node type; triggers run nothing, their output is what started the run. */
export const RUNNERS: Record<Exclude<NodeTypeName, Trigger>, NodeRunner> = {
  SET: runSet,
  IF_ELSE: runIfElse,
  SWITCH: runSwitch,
  MERGE: runMerge,
  FILTER: runFilter,
  HTTP_REQUEST: runHttpRequest,
  WAIT: runWait,
  STOP_AND_ERROR: runStopAndError,
  NO_OP: runNoOp,
}
