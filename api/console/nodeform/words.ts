import { nameConstant } from '../kit/status.tsx'
import { nameKey, type Schema } from './schema.ts'

/** What stands above the options of a type: these keys, or those of its operation. */
const MAIN: Record<string, string[] | Record<string, string[]>> = {
  HTTP_REQUEST: ['method', 'url', 'credentialId', 'query', 'headers', 'bodyType', 'body'],
  WEBHOOK_TRIGGER: ['path', 'method', 'responseMode', 'secretHeader'],
  SCHEDULE_TRIGGER: ['cron', 'timezone', 'overlap'],
  IF_ELSE: ['condition'],
  SWITCH: ['cases', 'all'],
  MERGE: ['mode'],
  FOR_EACH: ['items', 'concurrency', 'onItemError'],
  REPEAT: ['until', 'maxIterations'],
  WAIT: ['durationMs', 'until'],
  SET: ['values', 'include'],
  DATE: {
    now: ['format', 'timezone'],
    parse: ['value', 'inputFormat', 'timezone'],
    format: ['value', 'format', 'timezone', 'locale'],
    add: ['value', 'amount', 'unit'],
    subtract: ['value', 'amount', 'unit'],
    startOf: ['value', 'unit', 'timezone'],
    endOf: ['value', 'unit', 'timezone'],
    difference: ['from', 'to', 'unit'],
    roundUp: ['value', 'unit', 'into'],
    extract: ['value', 'unit', 'into'],
  },
  CRYPTO: {
    hash: ['value', 'algorithm', 'encoding'],
    hmac: ['value', 'algorithm', 'credentialId', 'secret', 'encoding'],
    uuid: [],
    randomBytes: ['size', 'encoding'],
    encode: ['value', 'encoding'],
    decode: ['value', 'encoding'],
  },
  RANDOM: { integer: ['min', 'max'], float: ['min', 'max'], uuid: [], pick: ['items'], shuffle: ['items'] },
  CSV: { parse: ['value', 'delimiter', 'header'], format: ['items', 'columns', 'delimiter', 'header'] },
  JSON: { parse: ['value'], format: ['value', 'indent'] },
  XML: { parse: ['value'], build: ['value'], read: ['source'], write: ['source'] },
  HTML: {
    text: ['value'],
    extract: ['value', 'fields'],
    pick: ['source', 'pick'],
    table: ['table'],
    fromMarkdown: ['value', 'into'],
    toMarkdown: ['value', 'into'],
  },
  CODE: ['code', 'mode', 'items'],
  FILTER: ['items', 'condition'],
  AGGREGATE: ['items', 'groupBy', 'fields'],
  SORT: ['items', 'by', 'order'],
  LIMIT: ['items', 'count', 'offset', 'keep'],
  DEDUPLICATE: ['items', 'by', 'keep'],
  SPLIT: ['value', 'separator', 'trim'],
  RENAME_KEYS: ['items', 'keys'],
  EXTRACT_FROM_FILE: ['file', 'format'],
  CONVERT_TO_FILE: ['format', 'data', 'name'],
  DATABASE_QUERY: ['credentialId', 'mode', 'query', 'params'],
  SEND_EMAIL: ['credentialId', 'to', 'subject', 'text', 'html', 'attachments'],
  CHAT_MESSAGE: ['credentialId', 'to', 'text', 'format'],
  LLM: ['credentialId', 'model', 'system', 'prompt', 'output', 'schema'],
  CLASSIFY: ['credentialId', 'model', 'input', 'categories', 'instructions'],
  EXTRACT: ['credentialId', 'model', 'input', 'schema', 'instructions'],
  SUMMARIZE: ['credentialId', 'model', 'input', 'style', 'instructions'],
  GUARDRAIL: ['text', 'detectPromptInjection', 'redactPii', 'filterContent', 'onViolation'],
  RESPOND_TO_WEBHOOK: ['status', 'body', 'headers'],
  APPROVAL: ['message', 'approvers', 'required', 'form', 'timeoutMs', 'onTimeout'],
  WAIT_FOR_EVENT: ['name', 'timeoutMs'],
  SUB_WORKFLOW: ['workflowId', 'input', 'wait'],
  AI_AGENT: ['credentialId', 'model', 'instructions', 'prompt', 'tools'],
}

/** The keys of a config that everybody sets, in their order, and the others. */
export function groupKeys(type: string, schema: Schema, config: Record<string, unknown>) {
  const all = Object.keys(schema.properties ?? {})
  const given = MAIN[type]
  const due = schema.required ?? []
  const wanted = Array.isArray(given)
    ? given
    : given
      ? ['operation', ...(given[String(config.operation)] ?? [])]
      : [...due, ...(due.length === 0 ? all.slice(0, 4) : [])]
  const main = [...new Set([...wanted, ...due])].filter((key) => all.includes(key))
  return { main, more: all.filter((key) => !main.includes(key)) }
}

const HELP: Record<string, string> = {
  allowedHosts: 'The only hosts it may reach.',
  approvers: 'Who may decide: e-mails of members, or roles. Without any: every OPERATOR.',
  bodyType: 'How the body is sent.',
  catchupWindowMs: 'How late a firing that was missed is still made up for.',
  columns: 'Their names, in order. Without them: all keys.',
  concurrency: 'How many items are worked on at the same time.',
  condition: 'An expression that is true or false, such as $input.total > 100.',
  conditions: 'A list of comparisons, in place of one expression.',
  contentType: 'The Content-Type header, if the usual one is not wanted.',
  cron: 'Five fields: minute, hour, day of the month, month, day of the week. 0 9 * * 1-5 is 9:00 on weekdays.',
  durationMs: 'How long it waits, in milliseconds.',
  expression: 'One expression; its value is the output.',
  handle: 'The name of the output that is taken.',
  instructions: 'What the model should do, in your words.',
  into: 'Puts the result into a field of the input, in place of the input.',
  items: 'The list to work on. Without it: the input.',
  maxBytes: 'How large an answer may be.',
  maxCost: 'It stops when its calls have cost this much.',
  maxIterations: 'It stops after this many turns in any case.',
  maxSteps: 'How many calls of the model it may make.',
  maxTokens: 'How long an answer may be.',
  memoryMb: 'How much memory the code may use.',
  model: 'The name of the model, as its provider writes it.',
  offset: 'How many are left out at the beginning.',
  otherwise: 'The output that is taken if no case fits. Without it, nothing goes on.',
  overlap: 'What is done with a firing while the execution of an earlier one goes on.',
  params: 'The values of $1, $2 … in the query, so that nothing is ever read as SQL.',
  prompt: 'What the model is asked.',
  query: 'What is added to the URL after the question mark.',
  readOnly: 'The database refuses everything that would change it.',
  repeat: 'It may be done a second time if it is not clear whether the first one went through.',
  required: 'How many must approve.',
  responseMode: 'Whether the caller gets an answer at once, or what the workflow makes.',
  schema: 'The JSON Schema of what the model shall give.',
  secret: 'Better: a credential, which is stored sealed.',
  secretHeader: 'Only requests that have this header with its value are taken.',
  selfApproval: 'Whether who started the execution may approve it.',
  signature: 'Only requests whose body is signed with the secret are taken.',
  system: 'Who the model is and how it should answer.',
  temperature: 'How freely it answers: 0 is strict.',
  timezone: 'Such as Europe/Berlin.',
  tools: 'What the agent may call.',
  until: 'It goes on until this is true.',
  url: 'The address, with expressions where parts of it are computed.',
  values: 'The keys of the output and their values.',
}

const OWN_HELP: Record<string, string> = {
  'CHAT_MESSAGE.to': 'The channel, chat or person.',
  'CODE.code': 'JavaScript. It reads input (and items), and returns its output.',
  'CODE.mode': 'Once for all items, or once for each.',
  'DATABASE_QUERY.query': 'SQL. Values belong into the parameters: $1, $2 …',
  'EXTRACT.schema': 'The JSON Schema of what is read out of the text.',
  'FILTER.condition': 'Items stay for which it is true, such as $item.price > 10.',
  'MAP.expression': 'What each item becomes, such as { "name": $item.name }.',
  'SORT.by': 'A field of the items, or an expression that reads $item.',
  'SUB_WORKFLOW.input': 'What its trigger puts out. Without it: the input.',
  'SWITCH.cases': 'The first case whose condition is true is taken.',
  'SWITCH.all': 'Every case that fits is taken, not the first only.',
  'WAIT.until': 'Waits until this time (ISO 8601), in place of a duration.',
  'WAIT_FOR_EVENT.name': 'The name by which the event is sent.',
  'WEBHOOK_TRIGGER.path': 'The end of the address.',
}

/** What a field says about itself: the schema's own words come first. */
export function helpFor(type: string, path: string, schema: Schema): string | undefined {
  if (schema.description) return schema.description
  // What a list says of its entries is said once.
  if (path.endsWith(']')) return undefined
  const plain = path.replaceAll(/\[\d+\]/g, '').replace(/^config\./, '')
  const own = OWN_HELP[`${type}.${plain}`]
  // The same word deep in a config may mean something else.
  return (
    own ??
    (plain.includes('.')
      ? undefined
      : type === 'WEBHOOK_TRIGGER' || plain !== 'files'
        ? HELP[plain]
        : undefined)
  )
}

const LABELS: Record<string, string> = {
  cc: 'Copy to',
  bcc: 'Blind copy to',
  credentialId: 'Credential',
  workflowId: 'Workflow',
  text: 'Text',
  to: 'To',
}

export function labelFor(key: string): string {
  return LABELS[key] ?? nameKey(key)
}

const PROPER: Record<string, string> = { openai: 'OpenAI', oauth2: 'OAuth 2' }

/** HTTP_REQUEST -> HTTP request */
export function nameType(type: string): string {
  return nameConstant(type).replace(
    /\b(ai|aws|http|imap|llm|csv|json|xml|html|smtp|oauth2|openai)\b/gi,
    (word) => PROPER[word.toLowerCase()] ?? word.toUpperCase(),
  )
}

export type Special = 'code' | 'condition' | 'credential' | 'json' | 'sql' | 'whole' | 'workflow'

/** What a field is beyond its schema. */
export function specialOf(type: string, path: string, schema: Schema): Special | undefined {
  const key = /[^.]+$/.exec(path.replace(/\[\d+\]$/, ''))![0]
  const plain = path.replace(/^config\./, '')
  if (schema.format === 'uuid' && key === 'credentialId') return 'credential'
  if (type === 'SUB_WORKFLOW' && plain === 'workflowId') return 'workflow'
  if (type === 'CODE' && plain === 'code') return 'code'
  if (type === 'DATABASE_QUERY' && plain === 'query') return 'sql'
  if (key === 'expression') return 'whole'
  // A JSON Schema is written as one.
  if (['schema', 'jsonSchema', 'parameters'].includes(key) && schema.type === 'object' && !schema.properties)
    return 'json'
  const isCondition = (schema.anyOf ?? []).map((one) => one.type).join() === 'boolean,string'
  return isCondition ? 'condition' : undefined
}

/** How many lines a text is likely to have. */
export function linesFor(path: string): number {
  const key = /[^.]+$/.exec(path)![0]
  if (['prompt', 'instructions', 'system', 'html', 'text', 'message', 'body', 'source'].includes(key))
    return 4
  return key === 'expression' ? 3 : 1
}
