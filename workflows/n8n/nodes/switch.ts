import { getOwn } from '../../json.ts'
import { readConditions, writeComparison } from '../conditions.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { type MappedNode, mapToNode } from '../parts.ts'

type Parameters = Record<string, unknown>

export function mapSwitch(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  if ((parameters.mode ?? 'rules') === 'expression') return switchByNumber(parameters, tools)
  return version < 3 ? switchByValue(parameters, tools) : switchByRules(parameters, tools)
}

export function mapIf({ parameters }: SourceNode, tools: MapperTools): MappedNode {
  const isAny = parameters.combineOperation === 'any'
  const condition = readConditions(addOptions(parameters), 'parameters.conditions', tools, isAny)
  return { ...mapToNode('IF_ELSE', { condition }), handles: ['true', 'false'] }
}

/** The conditions, with the options that some versions of the node have beside them. */
function addOptions({ conditions, options, looseTypeValidation }: Parameters): unknown {
  const { looseTypeValidation: olderLoose, ignoreCase } = Object(options)
  const given = Object(conditions)
  if (!Array.isArray(given.conditions)) return conditions
  const isLoose = looseTypeValidation || olderLoose
  const added = {
    ...Object(given.options),
    ...(isLoose ? { typeValidation: 'loose' } : {}),
    ...(ignoreCase === true ? { caseSensitive: false } : {}),
  }
  return { ...given, options: added }
}

/** An expression computes the number of the output. */
function switchByNumber(parameters: Parameters, { reader, connectedOutputs }: MapperTools): MappedNode {
  const output = reader.readCode(parameters.output ?? 0, 'parameters.output').text
  const count = Number(parameters.numberOutputs ?? parameters.outputsAmount ?? connectedOutputs) || 4
  const handles = Array.from({ length: Math.min(count, 100) }, (_, i) => `output${i}`)
  const cases = handles.map((handle, i) => ({ handle, condition: `(${output}) = ${i}` }))
  return { ...mapToNode('SWITCH', { cases }), handles }
}

/** Each output has its conditions. */
function switchByRules(parameters: Parameters, tools: MapperTools): MappedNode {
  const { values } = Object(parameters.rules)
  const { allMatchingOutputs, fallbackOutput = 'none' } = Object(parameters.options)
  const rules: unknown[] = Array.isArray(values) ? values : []
  const handles = nameHandles(rules)
  const cases = rules.map((rule, i) => {
    const given = addOptions({ ...parameters, conditions: Object(rule).conditions })
    const condition = readConditions(given, `parameters.rules.values[${i}].conditions`, tools)
    return { handle: handles[i]!, condition }
  })
  if (allMatchingOutputs) {
    const message =
      'n8n sends the item to the outputs of all rules that match. Perdure takes only the first rule that ' +
      'matches: use an IF_ELSE node for each rule instead.'
    tools.report('parameter', 'parameters.options.allMatchingOutputs', message, true)
  }
  return {
    ...mapToNode('SWITCH', { cases }),
    handles: fallbackOutput === 'extra' ? [...handles, 'default'] : handles,
    extraHandles: typeof fallbackOutput === 'number' ? [{ output: fallbackOutput, handle: 'default' }] : [],
  }
}

/** A handle for each rule, with the name of the rule's output if a handle can have this name. */
function nameHandles(rules: unknown[]): string[] {
  const taken = new Set(['default', 'error'])
  return rules.map((rule, i) => {
    const { outputKey, renameOutput } = Object(rule)
    const isNamed = renameOutput && typeof outputKey === 'string'
    const wanted = isNamed ? outputKey.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 90) : ''
    const handle = wanted === '' || taken.has(wanted) ? `case${i}` : wanted
    taken.add(handle)
    return handle
  })
}

/** The names of comparisons before version 3. */
const OLD_OPERATIONS: Record<string, string> = {
  equal: 'equals',
  notEqual: 'notEquals',
  smaller: 'lt',
  smallerEqual: 'lte',
  larger: 'gt',
  largerEqual: 'gte',
}

/** Before version 3, one value is compared with that of each rule, and the rule says which output to take. */
function switchByValue(parameters: Parameters, tools: MapperTools): MappedNode {
  const { dataType = 'number', value1 = '', rules: given, fallbackOutput = -1 } = parameters
  const left = tools.reader.readCode(value1, 'parameters.value1')
  const rules: unknown[] = Array.isArray(Object(given).rules) ? Object(given).rules : []
  const cases = rules.map((rule, i) => {
    const { operation = dataType === 'number' ? 'smaller' : 'equal', value2 = '' } = Object(rule)
    const right = tools.reader.readCode(value2, `parameters.rules.rules[${i}].value2`)
    const condition = writeComparison({
      type: String(dataType),
      operation: getOwn(OLD_OPERATIONS, String(operation)) ?? String(operation),
      left,
      right,
      isLoose: true,
      ignoreCase: false,
    })
    if (!condition) throw new Error(`it compares with "${operation}", which Perdure cannot translate`)
    return { handle: `case${i}`, condition }
  })
  const outputs = rules.map((rule, i) => Number(Object(rule).output ?? Object(rule).outputKey ?? i))
  const extraHandles = outputs.flatMap((output, i) => (output === i ? [] : [{ output, handle: `case${i}` }]))
  if (Number(fallbackOutput) >= 0) extraHandles.push({ output: Number(fallbackOutput), handle: 'default' })
  // These versions always have four outputs.
  const handles = Array.from({ length: Math.max(4, rules.length) }, (_, i) =>
    outputs[i] === i ? `case${i}` : '',
  )
  return { ...mapToNode('SWITCH', { cases }), handles, extraHandles }
}
