import { getOwn } from '../json.ts'
import { CONNECTOR_MAPPERS } from './connectors/mappers.ts'
import { DATABASE_MAPPERS } from './databases/mappers.ts'
import type { SourceNode } from './document.ts'
import type { NodeMapper } from './mapper.ts'
import { BRANCH_MAPPERS } from './nodes/branches.ts'
import { CALL_MAPPERS } from './nodes/calls.ts'
import { FILE_MAPPERS } from './nodes/files.ts'
import { FLOW_MAPPERS } from './nodes/flow.ts'
import { FORMAT_MAPPERS } from './nodes/formats.ts'
import { GUARDRAIL_MAPPERS } from './nodes/guardrails.ts'
import { LIST_MAPPERS } from './nodes/lists.ts'
import { MERGE_MAPPERS } from './nodes/merge.ts'
import { MODEL_MAPPERS } from './nodes/models.ts'
import { mapSet } from './nodes/set.ts'
import { TABLE_MAPPERS } from './nodes/tables.ts'
import { TEAM_MAPPERS } from './nodes/team.ts'
import { mapUnknownTrigger, TRIGGER_MAPPERS } from './nodes/triggers.ts'
import { VALUE_MAPPERS } from './nodes/values.ts'
import { createPlaceholder } from './parts.ts'
import { MESSAGE_MAPPERS } from './send/mappers.ts'

const MAPPERS: Record<string, NodeMapper> = {
  ...BRANCH_MAPPERS,
  ...FILE_MAPPERS,
  ...FLOW_MAPPERS,
  ...CALL_MAPPERS,
  ...LIST_MAPPERS,
  ...MERGE_MAPPERS,
  ...VALUE_MAPPERS,
  ...TABLE_MAPPERS,
  ...TEAM_MAPPERS,
  ...DATABASE_MAPPERS,
  ...CONNECTOR_MAPPERS,
  ...FORMAT_MAPPERS,
  ...MODEL_MAPPERS,
  ...GUARDRAIL_MAPPERS,
  ...MESSAGE_MAPPERS,
  set: mapSet,
}

/** Whether the node starts an execution. */
export function isTrigger({ type }: SourceNode): boolean {
  return getOwn(TRIGGER_MAPPERS, type) !== undefined || /trigger$/i.test(type)
}

/** The mapper for an n8n node. Unknown nodes become placeholders, unknown triggers become manual ones. */
export function findNodeMapper(node: SourceNode): NodeMapper {
  if (isTrigger(node)) return getOwn(TRIGGER_MAPPERS, node.type) ?? mapUnknownTrigger
  return getOwn(MAPPERS, node.type) ?? mapUnknown
}

const DISK =
  'it reads or writes files on the machine of n8n, which Perdure never does: take files by a webhook or HTTP_REQUEST, and ' +
  'send them where they are to be kept'

/** The advice for some nodes that have no counterpart. */
const HINTS: Record<string, string> = {
  executeCommand: 'it runs a command on the machine of n8n, which Perdure never does',
  readWriteFile: DISK,
  readBinaryFile: DISK,
  readBinaryFiles: DISK,
  writeBinaryFile: DISK,
  editImage:
    'it changes an image, for which Perdure has no node: call a service for images with HTTP_REQUEST',
}

const mapUnknown: NodeMapper = (node, { report }) => {
  const reason = getOwn(HINTS, node.type) ?? `Perdure has no node for "${node.fullType}"`
  return createPlaceholder(node, reason, 'type', report)
}
