import type { NODES, NodeTypeName } from '../../workflows/nodes.ts'
import { runAggregate } from './aggregate.ts'
import { runCrypto } from './crypto.ts'
import { runCsv } from './csv.ts'
import { runDate } from './date.ts'
import { runDeduplicate } from './deduplicate.ts'
import { runFilter } from './filter.ts'
import { runHtml } from './html.ts'
import { runHttpRequest } from './http.ts'
import { runIfElse } from './ifelse.ts'
import { runCompareDatasets, runJoin } from './join.ts'
import { runLimit } from './limit.ts'
import { runMap } from './map.ts'
import { runMerge } from './merge.ts'
import type { NodeRunner } from './node.ts'
import { runNoOp } from './noop.ts'
import { runRandom } from './random.ts'
import { runRenameKeys } from './rename.ts'
import { runSet } from './set.ts'
import { runSort } from './sort.ts'
import { runSplit } from './split.ts'
import { runStopAndError } from './stop.ts'
import { runSwitch } from './switch.ts'
import { runTemplate } from './template.ts'
import { runTransform } from './transform.ts'
import { runWait } from './wait.ts'
import { runXml } from './xml.ts'

type Trigger = { [T in NodeTypeName]: (typeof NODES)[T]['kind'] extends 'trigger' ? T : never }[NodeTypeName]

/** What runs each node type; triggers run nothing, their output is what started the run. */
export const RUNNERS: Record<Exclude<NodeTypeName, Trigger>, NodeRunner> = {
  SET: runSet,
  IF_ELSE: runIfElse,
  SWITCH: runSwitch,
  MERGE: runMerge,
  FILTER: runFilter,
  MAP: runMap,
  AGGREGATE: runAggregate,
  SORT: runSort,
  LIMIT: runLimit,
  DEDUPLICATE: runDeduplicate,
  SPLIT: runSplit,
  RENAME_KEYS: runRenameKeys,
  JOIN: runJoin,
  COMPARE_DATASETS: runCompareDatasets,
  TRANSFORM: runTransform,
  TEMPLATE: runTemplate,
  DATE: runDate,
  CRYPTO: runCrypto,
  RANDOM: runRandom,
  CSV: runCsv,
  XML: runXml,
  HTML: runHtml,
  HTTP_REQUEST: runHttpRequest,
  WAIT: runWait,
  STOP_AND_ERROR: runStopAndError,
  NO_OP: runNoOp,
}
