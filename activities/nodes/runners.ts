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

type Of<K> = { [T in NodeTypeName]: (typeof NODES)[T]['kind'] extends K ? T : never }[NodeTypeName]

/** What runs each node type but triggers, whose output is what started the run, and loops, which run their children. */
export const RUNNERS: Record<Exclude<NodeTypeName, Of<'trigger' | 'loop'>>, NodeRunner> = {
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

/** What looks whether that for which a pause waits has come. */
export const RESUMERS: Record<Of<'pause'>, NodeRunner> = {}
