import { nameConstant } from '../../kit/status.tsx'
import type { GraphNode } from '../../nodeform/contract.ts'
import type { NodeType } from '../../nodeform/data.ts'
import type { SignName } from '../canvas/signs.tsx'

export type NodeTypes = ReadonlyMap<string, NodeType>

/** The groups of the palette, in its order. */
export const GROUPS = ['Triggers', 'Flow', 'AI', 'Calls', 'Data', 'Lists', 'Formats and files'] as const
export type Group = (typeof GROUPS)[number] | 'More'

type Kind = { group: Group; sign: SignName; label: string }

// biome-ignore format: one line a type
const KINDS: Record<string, [Group, SignName, string?]> = {
  MANUAL_TRIGGER: ['Triggers', 'play', 'Manual start'],
  WEBHOOK_TRIGGER: ['Triggers', 'link', 'Webhook'],
  FORM_TRIGGER: ['Triggers', 'fields', 'Form'],
  SCHEDULE_TRIGGER: ['Triggers', 'clock', 'Schedule'],
  CHAT_TRIGGER: ['Triggers', 'chat', 'Chat message'],
  MCP_TRIGGER: ['Triggers', 'robot', 'MCP tool'],
  SUB_WORKFLOW_TRIGGER: ['Triggers', 'enter', 'Called by a workflow'],
  ERROR_TRIGGER: ['Triggers', 'bolt', 'Failed execution'],
  IF_ELSE: ['Flow', 'branch', 'If / else'],
  SWITCH: ['Flow', 'branch', 'Switch'],
  MERGE: ['Flow', 'merge', 'Merge'],
  FOR_EACH: ['Flow', 'loop', 'For each'],
  REPEAT: ['Flow', 'loop', 'Repeat'],
  WAIT: ['Flow', 'clock', 'Wait'],
  WAIT_FOR_EVENT: ['Flow', 'bolt', 'Wait for an event'],
  FORM: ['Flow', 'fields', 'Form page'],
  APPROVAL: ['Flow', 'hand', 'Approval'],
  SUB_WORKFLOW: ['Flow', 'flow', 'Sub-workflow'],
  STOP_AND_ERROR: ['Flow', 'stop', 'Stop with an error'],
  NO_OP: ['Flow', 'right', 'Do nothing'],
  AI_AGENT: ['AI', 'robot', 'AI agent'],
  LLM: ['AI', 'sparkle', 'Ask a model'],
  CLASSIFY: ['AI', 'branch', 'Classify a text'],
  EXTRACT: ['AI', 'filter', 'Extract from a text'],
  SUMMARIZE: ['AI', 'fields', 'Summarize'],
  AI_MEDIA: ['AI', 'sparkle', 'Speech and images'],
  GUARDRAIL: ['AI', 'shield', 'Guardrail'],
  HTTP_REQUEST: ['Calls', 'globe', 'HTTP request'],
  CONNECTOR: ['Calls', 'link', 'Connector'],
  DATABASE_QUERY: ['Calls', 'database', 'Database query'],
  DATA_TABLE: ['Calls', 'database', 'Data table'],
  TEAM_READ: ['Calls', 'flow', 'Workflows and executions'],
  SEND_EMAIL: ['Calls', 'mail', 'Send an e-mail'],
  CHAT_MESSAGE: ['Calls', 'chat', 'Send a chat message'],
  RESPOND_TO_WEBHOOK: ['Calls', 'reply', 'Respond to the webhook'],
  SET: ['Data', 'fields', 'Set values'],
  TRANSFORM: ['Data', 'braces', 'Transform'],
  TEMPLATE: ['Data', 'fields', 'Template'],
  CODE: ['Data', 'code', 'Code'],
  DATE: ['Data', 'clock', 'Date'],
  CRYPTO: ['Data', 'key', 'Crypto'],
  RANDOM: ['Data', 'dice', 'Random'],
  FILTER: ['Lists', 'filter', 'Filter'],
  MAP: ['Lists', 'list', 'Map'],
  AGGREGATE: ['Lists', 'list', 'Aggregate'],
  SORT: ['Lists', 'sort', 'Sort'],
  LIMIT: ['Lists', 'list', 'Limit'],
  DEDUPLICATE: ['Lists', 'list', 'Remove duplicates'],
  SKIP_SEEN: ['Lists', 'list', 'Skip what was seen before'],
  SPLIT: ['Lists', 'branch', 'Split'],
  RENAME_KEYS: ['Lists', 'fields', 'Rename keys'],
  JOIN: ['Lists', 'merge', 'Join'],
  COMPARE_DATASETS: ['Lists', 'merge', 'Compare two lists'],
  CSV: ['Formats and files', 'file', 'CSV'],
  JSON: ['Formats and files', 'braces', 'JSON'],
  XML: ['Formats and files', 'code', 'XML'],
  HTML: ['Formats and files', 'code', 'HTML'],
  EXTRACT_FROM_FILE: ['Formats and files', 'file', 'Read a file'],
  CONVERT_TO_FILE: ['Formats and files', 'file', 'Write a file'],
}

/** How the console shows a type; one that is newer than this table is shown too. */
export function kindOf(type: string): Kind {
  const [group, sign, label] = KINDS[type] ?? ['More', 'right']
  return { group, sign, label: label ?? nameConstant(type) }
}

/** The config that a new node starts with, if its type does not accept an empty one. */
const STARTS: Record<string, Record<string, unknown>> = {
  SET: { values: {} },
  WAIT: { durationMs: 1_000 },
  SWITCH: { cases: [] },
  FOR_EACH: { items: '{{ $input.items }}' },
  REPEAT: { until: '{{ $index >= 2 }}' },
  TRANSFORM: { expression: '{{ $input }}' },
  TEMPLATE: { text: '' },
  CODE: { code: 'return $input' },
}

export function startConfig(type: string): Record<string, unknown> {
  return structuredClone(STARTS[type] ?? {})
}

export function isLoop(type: string): boolean {
  return type === 'FOR_EACH' || type === 'REPEAT'
}

type Configured = { config: Record<string, unknown> }

/** The types whose handles their config decides; the others have those of /api/node-types. */
const BY_CONFIG: Record<string, (node: Configured) => string[] | undefined> = {
  SWITCH: ({ config }) => [...namesIn(config.cases, 'handle'), 'default'],
  CLASSIFY: ({ config }) => [...namesIn(config.categories, 'name'), 'other'],
  COMPARE_DATASETS: ({ config }) =>
    config.inputs === undefined ? undefined : ['onlyLeft', 'same', 'different', 'onlyRight'],
}

function namesIn(list: unknown, key: string): string[] {
  if (!Array.isArray(list)) return []
  const names = list.map((one: Record<string, unknown> | null) => one?.[key])
  return [...new Set(names.filter((name): name is string => typeof name === 'string' && name !== ''))]
}

/** By which handles edges may leave a node; null is the main one. */
export function handlesOf(node: GraphNode, types: NodeTypes): (string | null)[] {
  const own = BY_CONFIG[node.type]?.(node) ?? types.get(node.type)?.handles ?? [null]
  return node.onError === 'BRANCH' && !own.includes('error') ? [...own, 'error'] : own
}

/** What the canvas calls a handle. */
export function nameHandle(handle: string | null): string {
  return handle ?? 'then'
}

export function isTrigger(type: string, types: NodeTypes): boolean {
  return types.get(type)?.kind === 'trigger'
}

/** What a node is called. */
export function nameNode({ name, id }: Pick<GraphNode, 'name' | 'id'>): string {
  return name || id
}

/** Whether an execution can end with a node, or with the loop that it is in. */
export function isExecutable({ type, disabled }: GraphNode): boolean {
  return !disabled && !type.endsWith('_TRIGGER')
}
