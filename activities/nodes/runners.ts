import type { NODES, NodeTypeName } from '../../workflows/nodes/nodes.ts'
import { runAggregate } from './aggregate.ts'
import { resumeApproval, runApproval } from './approval.ts'
import { runChatMessage } from './chat.ts'
import { runCode } from './code.ts'
import { runConnector } from './connector.ts'
import { runConvertToFile } from './convert.ts'
import { runCrypto } from './crypto.ts'
import { runCsv } from './csv.ts'
import { runDatabaseQuery } from './database.ts'
import { runDate } from './date.ts'
import { runDeduplicate } from './deduplicate.ts'
import { resumeWaitForEvent, runWaitForEvent } from './event.ts'
import { runExtractFromFile } from './extract.ts'
import { runFilter } from './filter.ts'
import { resumeForm, runForm } from './form.ts'
import { runGuardrail } from './guardrail.ts'
import { runHtml } from './html.ts'
import { runHttpRequest } from './http.ts'
import { runIfElse } from './ifelse.ts'
import { runCompareDatasets, runJoin } from './join.ts'
import { runJson } from './json.ts'
import type { NodeRunner } from './kit/node.ts'
import { runLimit } from './limit.ts'
import { runSendEmail } from './mail.ts'
import { runMap } from './map.ts'
import { runMerge } from './merge.ts'
import { runClassify } from './models/classify.ts'
import { runExtract } from './models/extract.ts'
import { runLlm } from './models/llm.ts'
import { runMedia } from './models/media.ts'
import { runNoOp } from './noop.ts'
import { runRandom } from './random.ts'
import { runRenameKeys } from './rename.ts'
import { runRespondToWebhook } from './respond.ts'
import { runSet } from './set.ts'
import { runSkipSeen } from './skipseen.ts'
import { runSort } from './sort.ts'
import { runSplit } from './split.ts'
import { runStopAndError } from './stop.ts'
import { resumeSubWorkflow, runSubWorkflow } from './subworkflow.ts'
import { runSwitch } from './switch.ts'
import { runDataTable } from './table.ts'
import { runTeamRead } from './team.ts'
import { runTemplate } from './template.ts'
import { runTransform } from './transform.ts'
import { runWait } from './wait.ts'
import { runXml } from './xml.ts'

type Of<K> = { [T in NodeTypeName]: (typeof NODES)[T]['kind'] extends K ? T : never }[NodeTypeName]

/**
 * The runner of each node type. Agents have runners of their own (agents/runners.ts); triggers and loops have none: a
 * trigger's output is the data that started the run, and a loop only repeats its children.
 */
export const RUNNERS: Record<Exclude<NodeTypeName, Of<'trigger' | 'loop' | 'agent'>>, NodeRunner> = {
  SET: runSet,
  AI_MEDIA: runMedia,
  IF_ELSE: runIfElse,
  SWITCH: runSwitch,
  MERGE: runMerge,
  FILTER: runFilter,
  MAP: runMap,
  AGGREGATE: runAggregate,
  SORT: runSort,
  LIMIT: runLimit,
  DEDUPLICATE: runDeduplicate,
  SKIP_SEEN: runSkipSeen,
  SPLIT: runSplit,
  RENAME_KEYS: runRenameKeys,
  JOIN: runJoin,
  COMPARE_DATASETS: runCompareDatasets,
  CODE: runCode,
  TRANSFORM: runTransform,
  TEMPLATE: runTemplate,
  DATE: runDate,
  CRYPTO: runCrypto,
  RANDOM: runRandom,
  CSV: runCsv,
  JSON: runJson,
  XML: runXml,
  HTML: runHtml,
  HTTP_REQUEST: runHttpRequest,
  CONNECTOR: runConnector,
  EXTRACT_FROM_FILE: runExtractFromFile,
  CONVERT_TO_FILE: runConvertToFile,
  DATABASE_QUERY: runDatabaseQuery,
  DATA_TABLE: runDataTable,
  TEAM_READ: runTeamRead,
  SEND_EMAIL: runSendEmail,
  CHAT_MESSAGE: runChatMessage,
  LLM: runLlm,
  CLASSIFY: runClassify,
  EXTRACT: runExtract,
  GUARDRAIL: runGuardrail,
  WAIT: runWait,
  STOP_AND_ERROR: runStopAndError,
  NO_OP: runNoOp,
  APPROVAL: runApproval,
  WAIT_FOR_EVENT: runWaitForEvent,
  FORM: runForm,
  SUB_WORKFLOW: runSubWorkflow,
  RESPOND_TO_WEBHOOK: runRespondToWebhook,
}

/** The runners of nodes that pause, called again to look whether what they wait for has come. */
export const RESUMERS: Record<Of<'pause'>, NodeRunner> = {
  APPROVAL: resumeApproval,
  WAIT_FOR_EVENT: resumeWaitForEvent,
  FORM: resumeForm,
  SUB_WORKFLOW: resumeSubWorkflow,
}
