import { getOwn, isObject } from '../../json.ts'
import { findHeaderFault } from '../../nodes/webhooks.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import type { MappedNode } from '../parts.ts'
import { type ProblemReporter, reportMissingOption } from '../report.ts'
import { isTemplate, listObjects, plainText } from '../texts.ts'
import { FORM_MAPPERS } from './forms.ts'
import { readHookPath } from './paths.ts'

const manualTrigger: NodeMapper = () => ({ type: 'MANUAL_TRIGGER', config: {} })

/** Nodes that start an execution. */
export const TRIGGER_MAPPERS: Record<string, NodeMapper> = {
  manualTrigger,
  start: manualTrigger,
  webhook: mapWebhook,
  formTrigger: FORM_MAPPERS.formTrigger!,
  scheduleTrigger: mapSchedule,
  cron: mapSchedule,
  interval: mapSchedule,
  errorTrigger: mapErrorTrigger,
  chatTrigger: mapChatTrigger,
  manualChatTrigger: mapChatTrigger,
  mcpTrigger: mapMcpTrigger,
  executeWorkflowTrigger: () => ({ type: 'SUB_WORKFLOW_TRIGGER', config: {} }),
}

/** The fields of a message that n8n's trigger brings. */
const CHAT_SHAPE = '{"sessionId": $input.sessionId, "action": "sendMessage", "chatInput": $input.message}'

function mapChatTrigger({ parameters }: SourceNode, { report }: MapperTools): MappedNode {
  for (const [name, value] of Object.entries(parameters))
    if (name !== 'options' || Object.keys(Object(value)).length > 0)
      reportMissingOption(report, `parameters.${name}`, value)
  return {
    type: 'CHAT_TRIGGER',
    config: {},
    shaper: { type: 'TRANSFORM', config: { expression: CHAT_SHAPE } },
  }
}

/** Its tools are the nodes connected with it, of which each would be a trigger of its own here. */
function mapMcpTrigger(node: SourceNode, { report }: MapperTools): MappedNode {
  const message =
    "n8n's MCP server offers the nodes that are connected with it as tools. In Perdure each tool is an MCP_TRIGGER with a " +
    'name, a description and an inputSchema, which leads to the nodes that do the work: add one for each of these tools. ' +
    'Clients reach them at /api/mcp with an SDK token.'
  report('trigger', 'type', message, node.raw)
  return { type: 'MANUAL_TRIGGER', config: {} }
}

/** A trigger of another type becomes a manual one: callers pass the data that the trigger would bring. */
export function mapUnknownTrigger(node: SourceNode, { report }: MapperTools): MappedNode {
  const message =
    `In n8n this workflow is started by ${node.fullType}. Perdure has no such trigger, and a ` +
    'MANUAL_TRIGGER takes its place: execute the workflow over the API, with the data that the trigger ' +
    'would bring.'
  report('trigger', 'type', message, node.raw)
  return { type: 'MANUAL_TRIGGER', config: {} }
}

const RESPONSE_MODES: Record<string, string> = {
  onReceived: 'immediate',
  lastNode: 'lastNode',
  responseNode: 'responseNode',
  streaming: 'immediate',
}

function mapWebhook(node: SourceNode, { report, ends, usesFiles }: MapperTools): MappedNode {
  const { parameters } = node
  const path = readHookPath(node, report)
  const method = readMethod(parameters.httpMethod ?? 'GET', report)
  const { responseMode: given = 'onReceived', authentication = 'none' } = parameters
  const responseMode = getOwn(RESPONSE_MODES, String(given))
  if (!responseMode || given === 'streaming') {
    const message =
      `n8n answers the caller in the mode "${given}". Perdure cannot, and answers as soon as the execution ` +
      'is accepted: if the caller needs more, set another responseMode.'
    report('parameter', 'parameters.responseMode', message, given)
  }
  if (authentication !== 'none') {
    const message =
      'n8n checks a credential of the caller. Credentials are not imported, and this webhook accepts calls ' +
      'from anybody: set secretHeader or signature.'
    report('credential', 'parameters.authentication', message, authentication)
  }
  const respond = readAnswer(node, report, responseMode ?? 'immediate')
  const order = responseMode === 'lastNode' && ends.length > 1 ? { ends } : {}
  return {
    type: 'WEBHOOK_TRIGGER',
    config: {
      path,
      method,
      responseMode: responseMode ?? 'immediate',
      shape: 'n8n',
      ...readFiles(node, usesFiles),
      respond: { ...respond, ...order },
    },
  }
}

/** Options about the files of callers. */
const FILE_OPTIONS = new Set(['binaryData', 'binaryPropertyName', 'rawBody'])

/** Takes the files of callers if the workflow has a use for them. */
function readFiles({ parameters }: SourceNode, usesFiles: boolean): Record<string, unknown> {
  const { binaryData, binaryPropertyName, rawBody } = Object(parameters.options)
  const name = plainText(binaryPropertyName)
  return {
    ...(usesFiles || binaryData === true || name ? { files: name ? { name } : {} } : {}),
    ...(rawBody === true ? { rawBody: true } : {}),
  }
}

/** The answer to the caller: of the last node's items the first one or all, or nothing. */
function readAnswer(
  { parameters }: SourceNode,
  report: ProblemReporter,
  mode: string,
): Record<string, unknown> {
  const options = isObject(parameters.options) ? parameters.options : {}
  const { responseData: data = mode === 'immediate' ? undefined : 'firstEntryJson' } = parameters
  const { responseHeaders, responsePropertyName, responseContentType, responseData, responseCode, ...rest } =
    options
  const answer: Record<string, unknown> = {}
  if (data === 'allEntries') answer.data = 'all'
  else if (data === 'noData' || options.noResponseBody === true) answer.data = 'none'
  else if (data === 'firstEntryBinary') {
    answer.data = 'file'
    answer.field = plainText(parameters.responseBinaryPropertyName ?? 'data')
  } else if (mode === 'immediate' && typeof responseData === 'string') answer.text = plainText(responseData)
  const code = isObject(parameters.responseCode)
    ? Object(parameters.responseCode.values).responseCode
    : undefined
  const custom = Object(Object(responseCode).values)
  const status = Number(
    custom.customCode ??
      custom.responseCode ??
      (isObject(responseCode) ? undefined : responseCode) ??
      code ??
      parameters.responseCode ??
      200,
  )
  if (Number.isInteger(status) && status >= 200 && status <= 599 && status !== 200) answer.status = status
  const headers: Record<string, string> = {}
  for (const { name, value } of listObjects(Object(responseHeaders).entries)) {
    const fault = isTemplate(value) ? 'is an expression' : findHeaderFault(String(name), plainText(value))
    if (fault)
      report(
        'parameter',
        'parameters.options.responseHeaders',
        `The header "${name}" was left out: it ${fault}.`,
        value,
      )
    else headers[String(name).toLowerCase()] = String(plainText(value))
  }
  if (Object.keys(headers).length > 0) answer.headers = headers
  if (responsePropertyName && !isTemplate(responsePropertyName))
    answer.field = plainText(responsePropertyName)
  if (responseContentType && !isTemplate(responseContentType))
    answer.contentType = plainText(responseContentType)
  for (const [key, value] of Object.entries(rest)) {
    if (!['noResponseBody', 'ignoreBots', 'allowedOrigins'].includes(key) || value === true)
      if (key !== 'noResponseBody' && !FILE_OPTIONS.has(key))
        reportMissingOption(report, `parameters.options.${key}`, value)
  }
  return answer
}

function readMethod(method: unknown, report: ProblemReporter): unknown {
  if (!Array.isArray(method)) return method
  if (method.length > 1) {
    const message =
      `n8n accepts calls by ${method.join(', ')}. A WEBHOOK_TRIGGER accepts one method, and this one ` +
      `accepts ${method[0]}: add a WEBHOOK_TRIGGER for each of the others.`
    report('parameter', 'parameters.httpMethod', message, method)
  }
  return method[0] ?? 'GET'
}

/** An n8n trigger may have several rules. The first one becomes the trigger, the others are reported. */
function mapSchedule(node: SourceNode, { report }: MapperTools): MappedNode {
  const rules = findRules(node)
  const crons = (rules.length > 0 ? rules : [{}]).flatMap((rule, i) => {
    const cron = writeCron(rule)
    if (cron) return [cron]
    // No schedule is better than one that fires too often: people notice that an execution is missing.
    const message =
      'n8n starts executions by this rule. A cron expression cannot say the same, so the rule was left ' +
      'out: set the cron of a SCHEDULE_TRIGGER.'
    report('parameter', `parameters.rule.interval[${i}]`, message, rule)
    return []
  })
  const [first, ...others] = crons
  if (first === undefined) return { type: 'MANUAL_TRIGGER', config: {} }
  for (const cron of others) {
    const message =
      'n8n has several rules in this trigger. A SCHEDULE_TRIGGER has one cron expression, that of the ' +
      `first rule: add another SCHEDULE_TRIGGER for "${cron}".`
    report('parameter', 'parameters.rule', message, cron)
  }
  return { type: 'SCHEDULE_TRIGGER', config: { cron: first } }
}

/** The rules of the trigger, in the form of the newest of the three schedule nodes. */
function findRules({ type, parameters }: SourceNode): Record<string, unknown>[] {
  const listObjects = (value: unknown, key: string) => {
    const list = Object(value)[key]
    return Array.isArray(list) ? list.filter(isObject) : []
  }
  if (type === 'cron') return listObjects(parameters.triggerTimes, 'item').map(readCronItem)
  if (type === 'interval') {
    const { unit = 'seconds', interval = 1 } = parameters
    return [{ field: unit, [`${unit}Interval`]: interval }]
  }
  return listObjects(parameters.rule, 'interval')
}

/** A rule of the old cron node: {mode, hour, minute, weekday, dayOfMonth, value, unit, cronExpression}. */
function readCronItem(item: Record<string, unknown>): Record<string, unknown> {
  const at = { triggerAtHour: Number(item.hour ?? 14), triggerAtMinute: Number(item.minute ?? 0) }
  switch (item.mode ?? 'everyDay') {
    case 'everyMinute':
      return { field: 'minutes', minutesInterval: 1 }
    case 'everyHour':
      return { field: 'hours', triggerAtMinute: at.triggerAtMinute }
    case 'everyDay':
      return { field: 'days', ...at }
    case 'everyWeek':
      return { field: 'weeks', ...at, triggerAtDay: [Number(item.weekday ?? 1)] }
    case 'everyMonth':
      return { field: 'months', ...at, triggerAtDayOfMonth: Number(item.dayOfMonth ?? 1) }
    case 'everyX':
      return item.unit === 'minutes'
        ? { field: 'minutes', minutesInterval: Number(item.value) }
        : { field: 'hours', hoursInterval: Number(item.value) }
    case 'custom':
      return { field: 'cronExpression', expression: item.cronExpression }
  }
  return { field: String(item.mode) }
}

/** A rule as a cron expression of five fields; undefined if cron cannot express it. */
function writeCron(rule: Record<string, unknown>): string | undefined {
  const read = (key: string, fallback: number) => (Number.isInteger(rule[key]) ? Number(rule[key]) : fallback)
  const minute = read('triggerAtMinute', 0)
  const hour = read('triggerAtHour', 0)
  switch (rule.field ?? 'days') {
    case 'cronExpression':
      return readCronExpression(rule.expression)
    case 'minutes': {
      const step = writeStep(read('minutesInterval', 5), 60)
      return step && `${step} * * * *`
    }
    case 'hours': {
      const step = writeStep(read('hoursInterval', 1), 24)
      return step && `${minute} ${step} * * *`
    }
    case 'days':
      return read('daysInterval', 1) === 1 ? `${minute} ${hour} * * *` : undefined
    case 'weeks': {
      const given = rule.triggerAtDay
      const days = Array.isArray(given) && given.length > 0 ? given : [0]
      return read('weeksInterval', 1) === 1 ? `${minute} ${hour} * * ${days.join(',')}` : undefined
    }
    case 'months': {
      const step = writeStep(read('monthsInterval', 1), 12)
      return step && `${minute} ${hour} ${read('triggerAtDayOfMonth', 1)} ${step} *`
    }
  }
}

/** Undefined if the steps do not fit evenly: cron begins again with every hour, day or year. */
function writeStep(size: number, whole: number): string | undefined {
  if (size < 1 || whole % size !== 0) return undefined
  return size === 1 ? '*' : `*/${size}`
}

function readCronExpression(expression: unknown): string | undefined {
  const fields = String(expression ?? '')
    .replace(/^=/, '')
    .trim()
    .split(/\s+/)
  // In n8n an expression may begin with the seconds. If they are 0, they can be left out.
  if (fields.length === 6 && /^0+$/.test(fields[0]!)) fields.shift()
  return fields.length === 5 ? fields.join(' ') : undefined
}

/** Adds the fields of a failed execution that have other names in n8n. */
const ERROR_SHAPE =
  '$merge([$input, {"execution": $merge([$input.execution, {"error": {"message": ' +
  '$input.execution.errorMessage}, "lastNodeExecuted": $input.execution.failedNode.nodeName}])}])'

function mapErrorTrigger(): MappedNode {
  return {
    type: 'ERROR_TRIGGER',
    config: {},
    shaper: { type: 'TRANSFORM', config: { expression: ERROR_SHAPE } },
  }
}
