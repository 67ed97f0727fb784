import { isObject } from '../../inputs.ts'
import type { SourceNode } from '../document.ts'
import { type Mapper, ONE, part, type Tools } from '../mapper.ts'

const manual: Mapper = {
  takes: 'trigger',
  map: () => ({ parts: [part('MANUAL_TRIGGER', {})] }),
}

const RESPONSES: Record<string, string> = {
  onReceived: 'immediate',
  lastNode: 'lastNode',
  responseNode: 'responseNode',
  streaming: 'immediate',
}

const webhook: Mapper = {
  takes: 'trigger',
  map({ parameters, raw }, { complain }) {
    const given = String(parameters.path || raw.webhookId || 'webhook')
    const path =
      given
        .replace(/[^A-Za-z0-9_-]+/g, '-')
        .replace(/^-+|-+$/g, '')
        .slice(0, 100) || 'webhook'
    if (path !== given) complain('parameter', 'parameters.path', `The path is "${path}" here`, given)
    let method = parameters.httpMethod ?? 'GET'
    if (Array.isArray(method)) {
      if (method.length > 1)
        complain('parameter', 'parameters.httpMethod', `It takes ${method[0]} only`, method)
      method = method[0] ?? 'GET'
    }
    const { responseMode = 'onReceived', authentication = 'none', options = {} } = parameters
    const mode = RESPONSES[String(responseMode)]
    if (!mode || responseMode === 'streaming') {
      complain('parameter', 'parameters.responseMode', 'It answers at once', responseMode)
    }
    if (authentication !== 'none') {
      complain(
        'credential',
        'parameters.authentication',
        'Set secretHeader or signature here: it takes calls of anybody',
        authentication,
      )
    }
    for (const [key, value] of Object.entries({
      ...Object(parameters.responseData && { responseData: parameters.responseData }),
      ...Object(options),
    })) {
      if (!(key === 'responseData' && value === 'firstEntryJson')) {
        complain('parameter', `parameters.options.${key}`, 'There is no such option', value)
      }
    }
    return { parts: [part('WEBHOOK_TRIGGER', { path, method, responseMode: mode ?? 'immediate' })] }
  },
}

const DAYS: Record<string, number> = { hours: 24, minutes: 60, seconds: 60 }

/** Rules of a schedule as 5-field cron; undefined for what cron cannot say. */
function readRule(rule: Record<string, unknown>): string | undefined {
  const number = (key: string, fallback: number) =>
    Number.isInteger(rule[key]) ? Number(rule[key]) : fallback
  const [minute, hour] = [number('triggerAtMinute', 0), number('triggerAtHour', 0)]
  const every = (key: string, fallback: number, within: number) => {
    const size = number(key, fallback)
    return size >= 1 && within % size === 0 ? (size === 1 ? '*' : `*/${size}`) : undefined
  }
  switch (rule.field ?? 'days') {
    case 'cronExpression': {
      const given = String(rule.expression ?? '')
        .replace(/^=/, '')
        .trim()
        .split(/\s+/)
      // n8n's has seconds in front; at second 0 it says the same.
      if (given.length === 6 && /^0+$/.test(given[0]!)) given.shift()
      return given.length === 5 ? given.join(' ') : undefined
    }
    case 'minutes': {
      const step = every('minutesInterval', 5, DAYS.minutes!)
      return step && `${step} * * * *`
    }
    case 'hours': {
      const step = every('hoursInterval', 1, DAYS.hours!)
      return step && `${minute} ${step} * * *`
    }
    case 'days':
      return number('daysInterval', 1) === 1 ? `${minute} ${hour} * * *` : undefined
    case 'weeks': {
      const days = Array.isArray(rule.triggerAtDay) && rule.triggerAtDay.length > 0 ? rule.triggerAtDay : [0]
      return number('weeksInterval', 1) === 1 ? `${minute} ${hour} * * ${days.join(',')}` : undefined
    }
    case 'months': {
      const step = every('monthsInterval', 1, 12)
      return step && `${minute} ${hour} ${number('triggerAtDayOfMonth', 1)} ${step} *`
    }
  }
}

/** The old cron node: {mode, hour, minute, weekday, dayOfMonth, value, unit, cronExpression}. */
function readOldRule(item: Record<string, unknown>): Record<string, unknown> {
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

function findRules({ type, parameters }: SourceNode): Record<string, unknown>[] {
  const listed = (value: unknown, key: string) => {
    const list = Object(value)[key]
    return Array.isArray(list) ? list.filter(isObject) : []
  }
  if (type === 'cron') return listed(parameters.triggerTimes, 'item').map(readOldRule)
  if (type === 'interval') {
    const { unit = 'seconds', interval = 1 } = parameters
    return [{ field: unit, [`${unit}Interval`]: interval }]
  }
  return listed(parameters.rule, 'interval')
}

/** Several rules become several triggers: the first is the node, the others are made beside it by the caller. */
const schedule: Mapper = {
  takes: 'trigger',
  map(node, { complain }) {
    const rules = findRules(node)
    const crons = (rules.length > 0 ? rules : [{}]).map((rule, i) => {
      const cron = readRule(rule)
      if (cron) return cron
      complain(
        'parameter',
        `parameters.rule.interval[${i}]`,
        'Cron cannot say this: set the schedule here',
        rule,
      )
      // A firing that does not come is noticed; one too often does harm.
      return undefined
    })
    const known = crons.filter((cron) => cron !== undefined)
    if (known.length === 0) return { parts: [part('MANUAL_TRIGGER', {})] }
    for (const cron of known.slice(1)) {
      complain(
        'parameter',
        'parameters.rule',
        `Add a SCHEDULE_TRIGGER for "${cron}": one has one cron expression`,
        cron,
      )
    }
    return { parts: [part('SCHEDULE_TRIGGER', { cron: known[0] })] }
  },
}

/** n8n tells more of the failed run under other names. */
const ERROR_SHAPE =
  '$merge([$input, {"execution": $merge([$input.execution, {"error": {"message": $input.execution.errorMessage}, ' +
  '"lastNodeExecuted": $input.execution.failedNode.nodeName}])}])'

const errorTrigger: Mapper = {
  takes: 'trigger',
  map: () => ({
    parts: [part('ERROR_TRIGGER', {}), part('TRANSFORM', { expression: ERROR_SHAPE }, '__shape')],
  }),
}

const subWorkflow: Mapper = {
  takes: 'trigger',
  map: () => ({ parts: [part('SUB_WORKFLOW_TRIGGER', {})] }),
}

/** A trigger of another kind: the run can be tried by hand, with what it would bring. */
const other: Mapper = {
  takes: 'trigger',
  gives: () => ONE,
  map(node: SourceNode, { complain }: Tools) {
    const message = `There is no trigger ${node.fullType}: runs are started by hand or over the API, with its data`
    complain('node', 'type', message, node.raw)
    return { parts: [part('MANUAL_TRIGGER', {})] }
  },
}

export const TRIGGERS: Record<string, Mapper> = {
  manualTrigger: manual,
  start: manual,
  webhook,
  scheduleTrigger: schedule,
  cron: schedule,
  interval: schedule,
  errorTrigger,
  executeWorkflowTrigger: subWorkflow,
}

export const OTHER_TRIGGER = other
