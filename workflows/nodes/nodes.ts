import { getOwn } from '../json.ts'
import { AGENT_NODES } from './agents.ts'
import { CALL_NODES } from './calls.ts'
import { CODE_NODES } from './code.ts'
import { CONNECTOR_NODES } from './connectors.ts'
import { DATA_NODES } from './data.ts'
import { DATABASE_NODES } from './databases.ts'
import { DOCUMENT_NODES } from './documents.ts'
import { FLOW_NODES } from './flow.ts'
import { FORMAT_NODES } from './formats.ts'
import { FORM_NODES } from './forms.ts'
import { GROUP_NODES } from './groups.ts'
import { GUARDRAIL_NODES } from './guardrails.ts'
import { ITEM_NODES } from './items.ts'
import { MCP_NODES } from './mcp.ts'
import { MEDIA_NODES } from './media.ts'
import { MESSAGE_NODES } from './messages.ts'
import { MODEL_NODES } from './models.ts'
import type { NodeType } from './nodetype.ts'
import { PAUSE_NODES } from './pauses.ts'
import { TABLE_NODES } from './tables.ts'
import { TEAM_NODES } from './team.ts'
import { TRIGGER_NODES } from './triggers.ts'
import { WEBHOOK_NODES } from './webhooks.ts'

/** Every node type, by name. Adding one takes a row in its table and a runner in activities/nodes/. */
export const NODES = {
  ...TRIGGER_NODES,
  ...FLOW_NODES,
  ...DATA_NODES,
  ...DOCUMENT_NODES,
  ...CODE_NODES,
  ...ITEM_NODES,
  ...GROUP_NODES,
  ...CALL_NODES,
  ...CONNECTOR_NODES,
  ...FORMAT_NODES,
  ...DATABASE_NODES,
  ...TABLE_NODES,
  ...TEAM_NODES,
  ...MESSAGE_NODES,
  ...MODEL_NODES,
  ...MEDIA_NODES,
  ...GUARDRAIL_NODES,
  ...WEBHOOK_NODES,
  ...PAUSE_NODES,
  ...FORM_NODES,
  ...MCP_NODES,
  ...AGENT_NODES,
} as const satisfies Record<string, NodeType>

export type NodeTypeName = keyof typeof NODES

/** The table's row for a type; undefined for an unknown one, as a graph of another release may have. */
export function nodeType(type: string): NodeType | undefined {
  return getOwn<NodeType>(NODES, type)
}
