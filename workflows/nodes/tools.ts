import * as v from 'valibot'
import { MAX_CODE } from '../javascript/code.ts'
import { DEFAULT_CODE_MS, MAX_CODE_MS, MAX_MEMORY_MB, MIN_MEMORY_MB } from '../javascript/limits.ts'
import { isObject } from '../json.ts'
import { checkJsonSchema } from '../jsonschema/schema.ts'
import { described } from '../object.ts'
import type { Path } from '../problem.ts'
import { NEEDS_CREDENTIAL, neededField, requestFields } from './calls.ts'
import { connectorFields } from './connectors.ts'
import { fitMode, statementFields } from './databases.ts'
import {
  anyObject,
  computed,
  credentialField,
  isOneExpression,
  oneOf,
  textField,
  wholeNumber,
} from './fields.ts'
import type { NodeType } from './nodetype.ts'
import { workflowIdField } from './pauses.ts'
import { fitOperation, tableFields } from './tables.ts'

/** The most tools that an agent is given, and the most entries of a list of names. */
const MAX_TOOLS = 64
const MAX_NAMES = 100

const flag = v.boolean('must be true or false')

/** The name by which a model calls a tool: one that all vendors take. */
export const toolName = v.pipe(
  v.string('must be a string'),
  v.regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -'),
)

/** For the model. It is no expression: what is computed belongs into the instructions. */
export const toolDescription = v.pipe(
  textField,
  v.maxLength(4_000, 'must have at most 4000 characters'),
  v.check((text) => !text.includes('{{'), 'must be a text without {{ }}'),
)

/** A JSON Schema of an object, whose keys are the arguments. */
export const toolArguments = v.pipe(
  anyObject,
  v.check(({ type }) => type === 'object', 'must be a JSON Schema with the type object'),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { value } = dataset
    for (const { path: key, message } of checkJsonSchema(value)) {
      const within = { type: 'object', origin: 'value', input: value, key, value: undefined } as const
      addIssue({ message, ...(key === '' ? {} : { path: [within] }) })
    }
  }),
)

const IDEMPOTENT = 'A call may be made again if nobody knows what came of it.'
const APPROVAL = 'Each call waits until somebody has approved it.'

const told = described(
  { name: toolName, description: toolDescription, parameters: toolArguments, approval: v.optional(flag) },
  {
    name: 'What the model calls the tool by.',
    description: 'Tells the model what the tool is good for.',
    parameters:
      'What the model calls it with, as the JSON Schema of an object. Expressions read it as $args.',
    approval: APPROVAL,
  },
)

/** The setting that says what a tool is. */
const kindOf = <const T extends string>(type: T) =>
  described({ type: v.literal(type) }, { type: 'What the tool does.' })

const list = <S extends v.GenericSchema>(entry: S) =>
  v.pipe(
    v.array(entry, 'must be an array'),
    v.minLength(1, 'must not be empty'),
    v.maxLength(MAX_NAMES, `must have at most ${MAX_NAMES} entries`),
  )

const unbraced = v.pipe(
  textField,
  v.check((text) => !text.includes('{{'), 'must be a name as it stands, without {{ }}'),
)

/** A text of which expressions give a part. */
function isMixed(body: unknown): boolean {
  if (typeof body !== 'string') return false
  return (body.includes('{{') || body.startsWith('=')) && !isOneExpression(body)
}

/** The fields of the tools of each kind. Their expressions know the arguments of a call as `$args`. */
const TOOLS = {
  HTTP: v.pipe(
    v.object({
      ...kindOf('HTTP'),
      ...told,
      ...requestFields,
      ...described(
        {
          bodyType: v.optional(oneOf('json', 'form', 'text'), 'json'),
          responseType: v.optional(oneOf('json', 'text')),
          idempotent: v.optional(flag),
        },
        {
          bodyType: 'How the body is sent.',
          responseType: 'How the answer is read. Without it as JSON where the answer says so.',
          idempotent: IDEMPOTENT,
        },
      ),
    }),
    v.forward(
      v.check(
        ({ bodyType, body }) => bodyType === 'text' || !isMixed(body),
        'must not have expressions within a text, since an argument could then change its structure: write an object, ' +
          'whose values may be expressions, or one expression',
      ),
      ['body'],
    ),
  ),
  SUB_WORKFLOW: v.object({
    ...kindOf('SUB_WORKFLOW'),
    ...told,
    ...described(
      { workflowId: workflowIdField, input: v.optional(computed(anyObject)) },
      {
        workflowId: 'The workflow that is executed.',
        input: 'What its trigger outputs. Without it the arguments of the call.',
      },
    ),
  }),
  CODE: v.object({
    ...kindOf('CODE'),
    ...told,
    ...described(
      {
        code: v.pipe(textField, v.maxLength(MAX_CODE, `must have at most ${MAX_CODE} characters`)),
        timeoutMs: v.optional(wholeNumber(1, MAX_CODE_MS), DEFAULT_CODE_MS),
        memoryMb: v.optional(wholeNumber(MIN_MEMORY_MB, MAX_MEMORY_MB)),
      },
      {
        code: 'What stands in an async function: it reads $args and what expressions read, and returns the answer.',
        timeoutMs: 'How long it may take, in milliseconds of processor time.',
        memoryMb: 'How much memory its values may take, in MB.',
      },
    ),
  }),
  DATABASE_QUERY: v.pipe(v.object({ ...kindOf('DATABASE_QUERY'), ...told, ...statementFields }), fitMode()),
  DATA_TABLE: v.pipe(v.object({ ...kindOf('DATA_TABLE'), ...told, ...tableFields }), fitOperation()),
  CONNECTOR: v.object({ ...kindOf('CONNECTOR'), ...told, ...connectorFields }),
  MCP: v.object({
    ...kindOf('MCP'),
    ...described(
      {
        name: toolName,
        description: v.optional(toolDescription),
        url: textField,
        headers: requestFields.headers,
        credentialId: v.optional(credentialField),
        needsCredential: v.optional(neededField),
        include: v.optional(list(textField)),
        timeoutMs: v.optional(wholeNumber(1_000, 600_000), 60_000),
        idempotent: v.optional(flag),
        approval: v.optional(flag),
      },
      {
        name: 'The name of the server, for tools whose name another one has.',
        description: 'What the model is told before the description of each of its tools.',
        url: 'The address of the server (streamable HTTP).',
        headers: 'The headers of the requests; one that is null is left out.',
        credentialId: 'How to sign in at the server.',
        needsCredential: NEEDS_CREDENTIAL,
        include: 'The only tools of the server that the agent gets.',
        timeoutMs: 'How long a call may take, in milliseconds.',
        idempotent: IDEMPOTENT,
        approval: APPROVAL,
      },
    ),
  }),
  RUN: v.object({
    ...kindOf('RUN'),
    ...described(
      { name: v.optional(toolName, 'run'), description: v.optional(toolDescription), nodes: list(unbraced) },
      {
        name: 'What the model calls the tool by.',
        description: 'Tells the model what the tool is good for.',
        nodes: 'The ids of the nodes before the agent whose outputs it shows.',
      },
    ),
  }),
} as const

export type ToolKind = keyof typeof TOOLS
const TOOL_KINDS = Object.keys(TOOLS) as ToolKind[]

/** A tool of an agent as it is stored. */
export type Tool = { [K in ToolKind]: v.InferOutput<(typeof TOOLS)[K]> }[ToolKind]
export type ToolOf<K extends ToolKind> = Extract<Tool, { type: K }>

const toolField = v.variant(
  'type',
  [
    TOOLS.HTTP,
    TOOLS.SUB_WORKFLOW,
    TOOLS.CODE,
    TOOLS.DATABASE_QUERY,
    TOOLS.DATA_TABLE,
    TOOLS.CONNECTOR,
    TOOLS.MCP,
    TOOLS.RUN,
  ],
  `must be one of ${TOOL_KINDS.join(', ')}`,
)

/** The tools of an agent. Each has a name of its own. */
export const toolsField = v.pipe(
  v.array(toolField, 'must be an array of tools'),
  v.maxLength(MAX_TOOLS, `must have at most ${MAX_TOOLS} entries`),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const first = new Map<string, number>()
    for (const [at, tool] of dataset.value.entries()) {
      const taken = first.get(tool.name)
      if (taken === undefined) {
        first.set(tool.name, at)
        continue
      }
      const within = { type: 'array', origin: 'value', input: dataset.value, key: at, value: tool } as const
      const path = { type: 'object', origin: 'value', input: tool, key: 'name', value: tool.name } as const
      addIssue({
        message: `repeats the name of tools[${taken}]`,
        path: [within, path as unknown as v.ObjectPathItem],
      })
    }
  }),
)

const CREDENTIAL_USES = {
  HTTP: ['HTTP'],
  DATABASE_QUERY: ['DATABASE'],
  CONNECTOR: ['HTTP'],
  MCP: ['HTTP'],
} as const

/** The tools of a config that may not have passed its check. */
function listTools({ tools }: Record<string, unknown>): [number, Record<string, unknown>][] {
  return Array.isArray(tools) ? [...tools.entries()].filter(([, tool]) => isObject(tool)) : []
}

/** The credentials that tools name, and what each must be good for. */
export const listToolCredentials: NonNullable<NodeType['moreCredentials']> = (config) =>
  listTools(config).flatMap(([at, { type }]) => {
    const path: Path = ['tools', at, 'credentialId']
    return Object.hasOwn(CREDENTIAL_USES, String(type))
      ? [{ path, uses: CREDENTIAL_USES[type as keyof typeof CREDENTIAL_USES] }]
      : []
  })

/** The code of tools: functions' bodies in JavaScript. */
export const listToolCode: NonNullable<NodeType['conditions']> = (config) =>
  listTools(config).flatMap(([at, { type, code }]) =>
    type === 'CODE' && typeof code === 'string'
      ? [{ path: `tools[${at}].code`, text: code, code: true as const }]
      : [],
  )

/** The nodes whose outputs the tools of the kind RUN show. */
export const listToolReads: NonNullable<NodeType['reads']> = (config) =>
  listTools(config).flatMap(([at, { type, nodes }]) =>
    type === 'RUN' && Array.isArray(nodes)
      ? nodes.flatMap((id, i) => (typeof id === 'string' ? [{ path: `tools[${at}].nodes[${i}]`, id }] : []))
      : [],
  )

/** How the texts of tools are read: texts for the model are literal, settings know `$args`. */
export const readToolText: NonNullable<NodeType['texts']> = (config) => {
  const tools = new Map(listTools(config))
  return (path) => {
    const [, at, key] = /^tools\[(\d+)\]\.(\w+)/.exec(path) ?? []
    if (key === undefined) return undefined
    if (
      [
        'parameters',
        'description',
        'include',
        'nodes',
        'workflowId',
        'table',
        'connector',
        'action',
        'server',
      ].includes(key)
    )
      return 'plain'
    // A server is asked for its tools before any is called.
    return tools.get(Number(at))?.type === 'MCP' ? undefined : 'args'
  }
}
