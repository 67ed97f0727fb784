import { isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapEach } from '../parts.ts'
import { keepNumber, listObjects, plainText } from '../texts.ts'
import { readConditions, readOldComparison, readOldConditions } from './conditions.ts'

/** Nodes that send items one way or the other. */
export const BRANCH_MAPPERS: Record<string, NodeMapper> = { if: mapIf, filter: mapFilter, switch: mapSwitch }

function readEither({ parameters, version }: SourceNode): Record<string, unknown> {
  const { conditions, combineOperation, combineConditions } = parameters
  if (version >= 2) return readConditions(conditions)
  return readOldConditions(conditions, combineOperation === 'any' || combineConditions === 'OR')
}

function mapIf(node: SourceNode): MappedNode {
  return { ...mapEach('IF_ELSE', { conditions: readEither(node) }), handles: ['true', 'false'] }
}

function mapFilter(node: SourceNode): MappedNode {
  return mapEach('FILTER', { conditions: readEither(node) })
}

function mapSwitch(node: SourceNode, tools: MapperTools): MappedNode {
  const { parameters, version } = node
  if (parameters.mode === 'expression') return chooseByNumber(node, tools)
  return version >= 3 ? chooseByRules(parameters) : chooseByValue(node)
}

const MAX_OUTPUTS = 100

/** A value is the number of the output. */
function chooseByNumber({ parameters, version }: SourceNode, tools: MapperTools): MappedNode {
  const given = version < 2 ? 4 : (parameters.numberOutputs ?? parameters.outputsAmount ?? 4)
  const count = Math.max(Number(given) || 4, tools.connectedOutputs)
  const handles = Array.from({ length: Math.min(count, MAX_OUTPUTS) }, (_, i) => `output${i}`)
  const cases = handles.map((handle) => ({ handle, condition: false }))
  return { ...mapEach('SWITCH', { cases, choose: keepNumber(parameters.output, 0) }), handles }
}

type Parameters = Record<string, unknown>

/** Each output has its conditions. */
function chooseByRules(parameters: Parameters): MappedNode {
  const rules = listObjects(Object(parameters.rules).values ?? Object(parameters.rules).rules)
  const { allMatchingOutputs, fallbackOutput = 'none' } = Object(parameters.options)
  const handles = nameHandles(rules)
  const cases = rules.map(({ conditions }, i) => ({
    handle: handles[i]!,
    conditions: readConditions(conditions),
  }))
  const other = typeof fallbackOutput === 'number' ? handles[fallbackOutput] : undefined
  return {
    ...mapEach('SWITCH', {
      cases,
      ...(allMatchingOutputs === true ? { all: true } : {}),
      ...(other ? { otherwise: other } : {}),
    }),
    handles: fallbackOutput === 'extra' ? [...handles, 'default'] : handles,
  }
}

/** A handle for each rule, with the name of the rule's output if a handle can have this name. */
function nameHandles(rules: Parameters[]): string[] {
  const taken = new Set(['default', 'error'])
  return rules.map(({ outputKey, renameOutput }, i) => {
    const isNamed = renameOutput && typeof outputKey === 'string'
    const wanted = isNamed ? outputKey.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 90) : ''
    const handle = wanted === '' || taken.has(wanted) ? `case${i}` : wanted
    taken.add(handle)
    return handle
  })
}

/** Before version 3 one value is compared with that of each rule, which in version 1 says its output. */
function chooseByValue({ parameters, version }: SourceNode): MappedNode {
  const { dataType = 'number', value1, rules: given, fallbackOutput = -1 } = parameters
  const type = String(dataType)
  const rules = listObjects(isObject(given) ? given.rules : [])
  const outputs = rules.map(({ output = 0 }, i) => (version < 2 ? Number(output) : i))
  const count = Math.max(version < 2 ? 4 : rules.length, ...outputs.map((output) => output + 1))
  const names = Array.from({ length: Math.min(count, MAX_OUTPUTS) }, (_, i) => `output${i}`)
  const cases = rules.map((rule, i) => ({
    handle: names[outputs[i]!]!,
    conditions: { types: 'none', conditions: [readOldComparison(type, { ...rule, value1 })] },
  }))
  const used = new Set(cases.map(({ handle }) => handle))
  const fallback = Number(plainText(fallbackOutput) ?? -1)
  const other = fallback >= 0 ? names[fallback] : undefined
  // An output without a rule may still be that of what no rule takes.
  const handles = names.map((name) => (used.has(name) ? name : name === other ? 'default' : ''))
  return {
    ...mapEach('SWITCH', { cases, ...(other && used.has(other) ? { otherwise: other } : {}) }),
    handles,
  }
}
