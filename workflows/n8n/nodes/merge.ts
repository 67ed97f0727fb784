import { getOwn, isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import { isMergeByPosition } from '../items/nodekinds.ts'
import { ITEM_LIST, type ItemFlow, type MapperTools, ONE_ITEM, type OutputUse } from '../mapper.ts'
import { type MappedNode, mapToNode } from '../parts.ts'

/** A Merge node becomes a TRANSFORM or a JOIN, which reads the nodes before it by their ids. */
export function mapMerge(node: SourceNode, tools: MapperTools): MappedNode {
  if (choosesInput(node)) return mapChosenInput(node, tools)
  const { parameters } = node
  const lists = tools.mergeInputs.map((arrivals) => arrivals.map(({ text }) => text).join(', '))
  const { mode = 'append', combineBy = 'combineByFields', combinationMode = 'mergeByFields' } = parameters
  if (mode === 'append') return mapToItems(`[${lists.filter((list) => list !== '').join(', ')}]`)
  if (lists.length > 2) throw new Error('it combines more than two inputs')
  const { resolveClash } = Object(Object(Object(parameters.options).clashHandling).values)
  if (resolveClash === 'addSuffix') throw new Error('it adds a suffix to the fields that both inputs have')
  const [first = '', second = ''] = lists.map((list) => `[${list}]`)
  const prefersFirst = resolveClash === 'preferInput1'
  if (isMergeByPosition(node)) return mergeByPosition(first, second, prefersFirst, tools)
  if (combineBy === 'combineAll' || combinationMode === 'multiplex' || mode === 'multiplex') {
    const pair = writePair(prefersFirst)
    return mapToItems(`($r := ${second}; [${first}.($a := $; $r.($b := $; ${pair}))])`)
  }
  return joinByFields(node, tools, first, second)
}

export function findMergeOutput(node: SourceNode, { inputs }: OutputUse): ItemFlow {
  const all = inputs.flat()
  if (choosesInput(node)) return all[0]?.count === 'many' ? ITEM_LIST : ONE_ITEM
  return isMergeByPosition(node) && all.every(({ count }) => count === 'one') ? ONE_ITEM : ITEM_LIST
}

/** Whether the node passes on one of its inputs and drops the other. */
function choosesInput({ parameters }: SourceNode): boolean {
  return parameters.mode === 'chooseBranch' || parameters.mode === 'passThrough'
}

function mapChosenInput({ parameters }: SourceNode, { mergeInputs }: MapperTools): MappedNode {
  const { output, useDataOfInput } = parameters
  const isSecond = output === 'input2' || useDataOfInput === 2 || useDataOfInput === '2'
  const chosen = mergeInputs[isSecond ? 1 : 0]?.[0]
  if (!chosen) throw new Error('it outputs the items of an input that nothing is connected to')
  return chosen.count === 'many'
    ? mapToItems(chosen.text)
    : mapToNode('TRANSFORM', { expression: chosen.text })
}

function mergeByPosition(
  first: string,
  second: string,
  prefersFirst: boolean,
  { mergeInputs }: MapperTools,
): MappedNode {
  if (mergeInputs.flat().every(({ count }) => count === 'one')) {
    // If both have a field, $merge takes that of the later one.
    const [low, high] = prefersFirst ? [second, first] : [first, second]
    return mapToNode('TRANSFORM', { expression: `$merge($append(${low}, ${high}))` })
  }
  const pair = writePair(prefersFirst)
  return mapToItems(
    `($l := ${first}; $r := ${second}; [$map($l, function($a, $i){($b := $r[$i]; $exists($b) ? ${pair})})])`,
  )
}

/** One item out of the item `$a` of the first input and the item `$b` of the second one. */
function writePair(prefersFirst: boolean): string {
  return prefersFirst ? '$merge([$b, $a])' : '$merge([$a, $b])'
}

const JOIN_MODES: Record<string, string> = {
  keepMatches: 'inner',
  keepEverything: 'outer',
  enrichInput1: 'left',
  enrichInput2: 'right',
}

function joinByFields(
  { parameters }: SourceNode,
  tools: MapperTools,
  left: string,
  right: string,
): MappedNode {
  const { joinMode, outputDataFrom } = parameters
  const on = readJoinFields(parameters)
  const mode = getOwn(JOIN_MODES, String(joinMode ?? 'keepMatches'))
  if (on.length === 0) throw new Error('it names no fields to match')
  if (!mode) throw new Error(`its output type "${joinMode}" has no counterpart`)
  if (outputDataFrom && outputDataFrom !== 'both') {
    const message =
      'n8n outputs the fields of one input. Perdure outputs those of both: remove the ones that you do not ' +
      'need in the next node.'
    tools.report('parameter', 'parameters.outputDataFrom', message, outputDataFrom)
  }
  return mapToNode('JOIN', { left: `{{ ${left} }}`, right: `{{ ${right} }}`, on, mode })
}

function readJoinFields(parameters: Record<string, unknown>): { left: string; right: string }[] {
  const { fieldsToMatchString } = parameters
  if (typeof fieldsToMatchString === 'string') {
    return fieldsToMatchString.split(',').map((field) => ({ left: field.trim(), right: field.trim() }))
  }
  const { values } = Object(parameters.mergeByFields ?? parameters.fieldsToMatch)
  return (Array.isArray(values) ? values : [])
    .filter(isObject)
    .map(({ field1, field2 }) => ({ left: String(field1), right: String(field2) }))
}

function mapToItems(list: string): MappedNode {
  return mapToNode('TRANSFORM', { expression: `{"items": ${list}}` })
}
