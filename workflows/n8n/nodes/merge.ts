import { getOwn, isObject } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapAll } from '../parts.ts'
import { listObjects, plainText, splitNames } from '../texts.ts'

/** Nodes with several inputs. */
export const MERGE_MAPPERS: Record<string, NodeMapper> = {
  merge: mapMerge,
  compareDatasets: mapCompareDatasets,
}

type Fields = Record<string, unknown>

function mapMerge(node: SourceNode, { inputs }: MapperTools): MappedNode {
  const config = node.version < 2 ? readFirst(node) : readMode(node)
  return mapAll('MERGE', { ...config, inputs })
}

/** Version 1: modes with names of their own. */
function readFirst({ parameters }: SourceNode): Fields {
  const { mode = 'append', join = 'left', overwrite, output = 'input1' } = parameters
  const key = (name: string) => String(plainText(parameters[name]) ?? '')
  const on = [{ left: key('propertyName1'), right: key('propertyName2') }]
  switch (mode) {
    case 'append':
      return { mode: 'items' }
    case 'mergeByIndex':
      return { mode: 'byPosition', join }
    case 'multiplex':
      return { mode: 'all', clash: { deep: false } }
    case 'mergeByKey':
      return { mode: 'byKey', on, ...(overwrite && overwrite !== 'always' ? { overwrite } : {}) }
    case 'keepKeyMatches':
      return { mode: 'byKey', on, join: 'keepMatches' }
    case 'removeKeyMatches':
      return { mode: 'byKey', on, join: 'remove' }
    case 'passThrough':
      return { mode: 'choose', choose: output === 'input2' ? 2 : 1 }
    case 'wait':
      return { mode: 'choose', choose: 'empty' }
  }
  throw new Error(`its mode "${mode}" has no counterpart`)
}

const COMBINATIONS: Record<string, string> = {
  mergeByFields: 'byFields',
  combineByFields: 'byFields',
  mergeByPosition: 'byPosition',
  combineByPosition: 'byPosition',
  multiplex: 'all',
  combineAll: 'all',
}

function readMode(node: SourceNode): Fields {
  const { parameters, version } = node
  const { mode = 'append', combinationMode, combineBy } = parameters
  if (mode === 'append') return { mode: 'items' }
  if (mode === 'chooseBranch') {
    const { output = version < 3 ? 'input1' : 'specifiedInput', useDataOfInput = 1 } = parameters
    const number = output === 'input2' ? 2 : output === 'input1' ? 1 : Number(useDataOfInput) || 1
    return { mode: 'choose', choose: output === 'empty' ? 'empty' : number, demandInputs: true }
  }
  if (mode !== 'combine') throw new Error(`its mode "${mode}" has no counterpart`)
  const by = getOwn(
    COMBINATIONS,
    String(version < 3 ? (combinationMode ?? 'mergeByFields') : (combineBy ?? 'combineByFields')),
  )
  if (!by) throw new Error(`it combines by "${combineBy ?? combinationMode}", which has no counterpart`)
  const options = isObject(parameters.options) ? parameters.options : {}
  const clash = readClash(Object(Object(options.clashHandling).values))
  const more = Object.keys(clash).length > 0 ? { clash } : {}
  if (by === 'all') return { mode: by, ...more }
  if (by === 'byPosition') {
    const unpaired = options.includeUnpaired === true ? { includeUnpaired: true } : {}
    return { mode: by, ...more, ...unpaired, ...(version < 3 ? { passSingle: true } : {}) }
  }
  const { joinMode = 'keepMatches', outputDataFrom } = parameters
  return {
    mode: by,
    on: readPairs(node),
    join: joinMode,
    ...(outputDataFrom ? { output: outputDataFrom } : {}),
    ...more,
    ...(options.multipleMatches === 'first' ? { first: true } : {}),
    ...(options.fuzzyCompare === true ? { fuzzy: true } : {}),
    ...(options.disableDotNotation === true ? { dots: false } : {}),
    ...(version < 2.1 ? { demandFields: true } : {}),
  }
}

/** The pairs of fields to compare: a list of pairs or, in version 3, names in a text. */
function readPairs({ parameters, version }: SourceNode): { left: string; right: string }[] {
  const { values } = Object(parameters.mergeByFields)
  if (version < 3 || parameters.advanced === true)
    return listObjects(values).map(({ field1, field2 }) => ({
      left: String(plainText(field1) ?? ''),
      right: String(plainText(field2) ?? ''),
    }))
  return splitNames(parameters.fieldsToMatchString).map((name) => ({ left: name, right: name }))
}

function readClash({ resolveClash, mergeMode, overrideEmpty }: Fields): Fields {
  const input = /^preferInput(\d+)$/.exec(String(resolveClash ?? ''))?.[1]
  return {
    ...(resolveClash === 'addSuffix' ? { prefer: 'suffix' } : {}),
    ...(input ? { prefer: Number(input) } : {}),
    ...(resolveClash === 'preferLast' ? { prefer: 2 } : {}),
    ...(mergeMode === 'shallowMerge' ? { deep: false } : {}),
    ...(overrideEmpty === true ? { keepIfEmpty: true } : {}),
  }
}

const RESOLUTIONS: Record<string, string> = {
  includeBoth: 'both',
  preferInput1: 'left',
  preferInput2: 'right',
  mix: 'mix',
}

function mapCompareDatasets({ parameters, version }: SourceNode, { inputs }: MapperTools): MappedNode {
  const options = isObject(parameters.options) ? parameters.options : {}
  const {
    resolve = version < 2 ? 'preferInput2' : 'includeBoth',
    preferWhenMix = 'input1',
    exceptWhenMix,
  } = parameters
  const on = listObjects(Object(parameters.mergeByFields).values).map(({ field1, field2 }) => ({
    left: String(plainText(field1) ?? ''),
    right: String(plainText(field2) ?? ''),
  }))
  const fuzzy = version >= 2 ? parameters.fuzzyCompare : options.fuzzyCompare
  const rules = {
    resolve: getOwn(RESOLUTIONS, String(resolve)) ?? 'both',
    prefer: preferWhenMix === 'input2' ? 'right' : 'left',
    except: splitNames(exceptWhenMix),
    skip: splitNames(options.skipFields),
    ...(fuzzy === true ? { fuzzy: true } : {}),
    ...(options.multipleMatches === 'all' ? { multiple: 'all' } : {}),
    ...(options.disableDotNotation === true ? { dots: false } : {}),
    dialect: version,
  }
  return {
    ...mapAll('COMPARE_DATASETS', { inputs, on, rules }),
    handles: ['onlyLeft', 'same', 'different', 'onlyRight'],
  }
}
