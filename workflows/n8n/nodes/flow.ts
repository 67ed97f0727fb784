import { isObject } from '../../inputs.ts'
import { readConditions, writeTest } from '../conditions.ts'
import type { SourceNode } from '../document.ts'
import { isPaired } from '../layout.ts'
import { LIST, type Mapper, ONE, part, type Tools } from '../mapper.ts'
import { batchOutputs } from '../order.ts'

const branch: Mapper = {
  takes: 'item',
  same: true,
  map({ parameters }, tools) {
    const any = parameters.combineOperation === 'any'
    const given = looseOf(parameters)
    const condition = readConditions(given, 'parameters.conditions', tools, any)
    return { parts: [part('IF_ELSE', { condition })], handles: ['true', 'false'] }
  },
}

/** The conditions, with the options that stand beside them. */
function looseOf({ conditions, options, looseTypeValidation }: Record<string, unknown>): unknown {
  const { looseTypeValidation: older, ignoreCase } = Object(options)
  const given = Object(conditions)
  if (!Array.isArray(given.conditions)) return conditions
  const own = {
    ...Object(given.options),
    ...(looseTypeValidation || older ? { typeValidation: 'loose' } : {}),
    ...(ignoreCase === true ? { caseSensitive: false } : {}),
  }
  return { ...given, options: own }
}

const switchNode: Mapper = {
  takes: 'item',
  same: true,
  map(node, tools) {
    const { parameters, version } = node
    if ((parameters.mode ?? 'rules') === 'expression') return switchByNumber(parameters, tools)
    return version < 3 ? switchByValue(parameters, tools) : switchByRules(parameters, tools)
  },
}

function switchByNumber(parameters: Record<string, unknown>, { reader, outputs }: Tools) {
  const output = reader.code(parameters.output ?? 0, 'parameters.output').text
  const count = Number(parameters.numberOutputs ?? parameters.outputsAmount ?? outputs) || 4
  const handles = Array.from({ length: Math.min(count, 100) }, (_, i) => `output${i}`)
  const cases = handles.map((handle, i) => ({ handle, condition: `(${output}) = ${i}` }))
  return { parts: [part('SWITCH', { cases })], handles }
}

function switchByRules(parameters: Record<string, unknown>, tools: Tools) {
  const { values } = Object(parameters.rules)
  const options = Object(parameters.options)
  const rules: unknown[] = Array.isArray(values) ? values : []
  const handles = nameHandles(rules)
  const cases = rules.map((rule, i) => ({
    handle: handles[i]!,
    condition: readConditions(
      looseOf({ ...parameters, conditions: Object(rule).conditions }),
      `parameters.rules.values[${i}].conditions`,
      tools,
    ),
  }))
  if (options.allMatchingOutputs) {
    tools.complain(
      'parameter',
      'parameters.options.allMatchingOutputs',
      'Only the first rule that holds is taken',
      true,
    )
  }
  const { fallbackOutput = 'none' } = options
  const more = typeof fallbackOutput === 'number' ? [{ output: fallbackOutput, handle: 'default' }] : []
  return {
    parts: [part('SWITCH', { cases })],
    handles: fallbackOutput === 'extra' ? [...handles, 'default'] : handles,
    more,
  }
}

function nameHandles(rules: unknown[]): string[] {
  const taken = new Set(['default', 'error'])
  return rules.map((rule, i) => {
    const { outputKey, renameOutput } = Object(rule)
    const wanted =
      renameOutput && typeof outputKey === 'string'
        ? outputKey.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 90)
        : ''
    const name = wanted === '' || taken.has(wanted) ? `case${i}` : wanted
    taken.add(name)
    return name
  })
}

const OLD_RULES: Record<string, string> = {
  equal: 'equals',
  notEqual: 'notEquals',
  smaller: 'lt',
  smallerEqual: 'lte',
  larger: 'gt',
  largerEqual: 'gte',
}

function switchByValue(parameters: Record<string, unknown>, tools: Tools) {
  const { dataType = 'number', value1 = '', rules: given, fallbackOutput = -1 } = parameters
  const left = tools.reader.code(value1, 'parameters.value1')
  const rules: unknown[] = Array.isArray(Object(given).rules) ? Object(given).rules : []
  const cases = rules.map((rule, i) => {
    const { operation = dataType === 'number' ? 'smaller' : 'equal', value2 = '' } = Object(rule)
    const right = tools.reader.code(value2, `parameters.rules.rules[${i}].value2`)
    const name = OLD_RULES[operation] ?? String(operation)
    const test = writeTest({
      type: String(dataType),
      operation: name,
      left,
      right,
      loose: true,
      ignoreCase: false,
    })
    if (!test) throw new Error(`its comparison ${operation} has no counterpart`)
    return { handle: `case${i}`, condition: test }
  })
  const target = rules.map((rule, i) => Number(Object(rule).output ?? Object(rule).outputKey ?? i))
  const more = target.flatMap((output, i) => (output === i ? [] : [{ output, handle: `case${i}` }]))
  if (Number(fallbackOutput) >= 0) more.push({ output: Number(fallbackOutput), handle: 'default' })
  const handles = rules.map((_, i) => (target[i] === i ? `case${i}` : ''))
  while (handles.length < 4) handles.push('')
  return { parts: [part('SWITCH', { cases })], handles, more }
}

const UNITS: Record<string, number> = { seconds: 1_000, minutes: 60_000, hours: 3_600_000, days: 86_400_000 }

const wait: Mapper = {
  takes: 'any',
  same: true,
  map({ parameters, version }, { reader }) {
    const { resume = 'timeInterval', amount, unit, dateTime } = parameters
    if (resume === 'specificTime') {
      const until = reader.code(dateTime ?? '', 'parameters.dateTime')
      return { parts: [part('WAIT', { until: `{{ $fromMillis($toMillis(${until.text})) }}` })] }
    }
    if (resume !== 'timeInterval')
      throw new Error(`it waits for a ${resume}: see WAIT_FOR_EVENT and APPROVAL`)
    const size = UNITS[String(unit ?? (version < 1.1 ? 'hours' : 'seconds'))]
    if (!size) throw new Error(`it waits for ${unit}`)
    const many = amount ?? (version < 1.1 ? 1 : 5)
    const durationMs =
      typeof many === 'number'
        ? Math.round(many * size)
        : `{{ $number(${reader.code(many, 'parameters.amount').text}) * ${size} }}`
    return { parts: [part('WAIT', { durationMs })] }
  },
}

const noOp: Mapper = { takes: 'any', same: true, map: () => ({ parts: [part('NO_OP', {})] }) }

const stop: Mapper = {
  takes: 'any',
  map({ parameters }, { reader }) {
    const given = parameters.errorType === 'errorObject' ? parameters.errorObject : parameters.errorMessage
    const message = reader.template(given ?? 'Stopped', 'parameters.errorMessage')
    return { parts: [part('STOP_AND_ERROR', { message: message === '' ? 'Stopped' : message })] }
  },
}

const batches: Mapper = {
  takes: 'loop',
  map(node, { complain, source }) {
    const { batchSize = 1, options = {} } = node.parameters
    if (batchSize !== 1) {
      complain('items', 'parameters.batchSize', 'The items go one by one, not in batches', batchSize)
    }
    for (const [key, value] of Object.entries(Object(options))) {
      complain('parameter', `parameters.options.${key}`, 'There is no such option', value)
    }
    const { done } = batchOutputs(node)
    const config = { items: `{{ ${source} }}`, concurrency: 1, onItemError: 'stop' }
    return { parts: [part('FOR_EACH', config)], handles: done === 0 ? [null] : ['', null] }
  },
}

const merge: Mapper = {
  takes: 'merge',
  gives(node, { inputs }) {
    const all = inputs.flat()
    if (isChoice(node)) return all[0]?.card === 'many' ? LIST : ONE
    return isPaired(node) && all.every(({ card }) => card === 'one') ? ONE : LIST
  },
  map(node, tools) {
    const { parameters } = node
    const lists = tools.inputs.map((arrivals) => arrivals.map(({ text }) => text).join(', '))
    const [first = '', second = ''] = lists.map((list) => `[${list}]`)
    const items = (text: string) => ({ parts: [part('TRANSFORM', { expression: `{"items": ${text}}` })] })
    if (isChoice(node)) {
      const index =
        parameters.output === 'input2' || parameters.useDataOfInput === 2 || parameters.useDataOfInput === '2'
          ? 1
          : 0
      const chosen = tools.inputs[index]?.[0]
      if (!chosen) throw new Error('it takes an input that nothing is connected to')
      const text = chosen.card === 'many' ? `{"items": ${chosen.text}}` : chosen.text
      return { parts: [part('TRANSFORM', { expression: text })] }
    }
    const { mode = 'append', combineBy = 'combineByFields', combinationMode = 'mergeByFields' } = parameters
    if (mode === 'append') return items(`[${lists.filter((list) => list !== '').join(', ')}]`)
    if (lists.length > 2) throw new Error('it combines more than two inputs')
    const { clashHandling } = Object(parameters.options)
    const { resolveClash } = Object(Object(clashHandling).values)
    if (resolveClash === 'addSuffix') throw new Error('it renames keys that both inputs have')
    const [low, high] = resolveClash === 'preferInput1' ? ['$b', '$a'] : ['$a', '$b']
    if (isPaired(node)) {
      const all = tools.inputs.flat()
      const [a, b] = resolveClash === 'preferInput1' ? [second, first] : [first, second]
      if (all.every(({ card }) => card === 'one')) {
        return { parts: [part('TRANSFORM', { expression: `$merge($append(${a}, ${b}))` })] }
      }
      return items(
        `($l := ${first}; $r := ${second}; [$map($l, function($a, $i){($b := $r[$i]; $exists($b) ? $merge([${low}, ${high}]))})])`,
      )
    }
    if (combineBy === 'combineAll' || combinationMode === 'multiplex' || mode === 'multiplex') {
      return items(`($r := ${second}; [${first}.($a := $; $r.($b := $; $merge([${low}, ${high}])))])`)
    }
    return joinByFields(node, tools, first, second)
  },
}

function isChoice({ parameters }: SourceNode): boolean {
  return parameters.mode === 'chooseBranch' || parameters.mode === 'passThrough'
}

function joinByFields({ parameters }: SourceNode, tools: Tools, left: string, right: string) {
  const named =
    typeof parameters.fieldsToMatchString === 'string' ? parameters.fieldsToMatchString.split(',') : undefined
  const { values } = Object(parameters.mergeByFields ?? parameters.fieldsToMatch)
  const pairs = named
    ? named.map((field) => ({ field1: field.trim(), field2: field.trim() }))
    : (Array.isArray(values) ? values : []).filter(isObject)
  const on = pairs.map(({ field1, field2 }) => ({ left: String(field1), right: String(field2) }))
  const modes: Record<string, string> = {
    keepMatches: 'inner',
    keepEverything: 'outer',
    enrichInput1: 'left',
    enrichInput2: 'right',
  }
  const mode = modes[String(parameters.joinMode ?? 'keepMatches')]
  if (on.length === 0 || !mode) throw new Error(`it joins by ${parameters.joinMode ?? 'no field'}`)
  if (parameters.outputDataFrom && parameters.outputDataFrom !== 'both') {
    tools.complain(
      'parameter',
      'parameters.outputDataFrom',
      'It puts out the fields of both',
      parameters.outputDataFrom,
    )
  }
  return { parts: [part('JOIN', { left: `{{ ${left} }}`, right: `{{ ${right} }}`, on, mode })] }
}

export const FLOW: Record<string, Mapper> = {
  if: branch,
  switch: switchNode,
  wait,
  noOp,
  stopAndError: stop,
  splitInBatches: batches,
  merge,
}
