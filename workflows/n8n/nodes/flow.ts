import { getOwn } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import { readBatchSize, readLoopOutputs } from '../loops.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapAll, mapEach } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { isTemplate, keepText, plainText, splitPieces } from '../texts.ts'
import { FORM_MAPPERS } from './forms.ts'

/** Nodes that say where and when an execution continues, or run code. */
export const FLOW_MAPPERS: Record<string, NodeMapper> = {
  splitInBatches: mapLoopOverItems,
  wait: mapWait,
  form: FORM_MAPPERS.form!,
  noOp: () => mapEach('NO_OP', {}),
  stopAndError: mapStopAndError,
  code: mapCode,
  function: ({ parameters }) => writeCode('all', parameters.functionCode, 'function'),
  functionItem: ({ parameters }) => writeCode('each', parameters.functionCode, 'functionItem'),
}

function mapLoopOverItems(node: SourceNode, { id, report, connectedOutputs }: MapperTools): MappedNode {
  const size = readBatchSize(node)
  for (const [key, value] of Object.entries(Object(node.parameters.options)))
    if (key !== 'reset') reportMissingOption(report, `parameters.options.${key}`, value)
  const list = `$nodes.${id}__list.items`
  const batches =
    size === 1
      ? `$map(${list}, function($one) { {"items": [$one]} })`
      : `($all := ${list}; $map([0..$floor(($count($all) - 1) / ${size})], function($at) { ` +
        `{"items": $filter($all, function($one, $i) { $floor($i / ${size}) = $at })[]} }))`
  const { done } = readLoopOutputs(node)
  return {
    type: 'FOR_EACH',
    config: { items: `{{ ${batches} }}`, concurrency: 1, onItemError: 'stop' },
    handles: done === 0 ? [null, null] : [null, null].slice(0, Math.max(connectedOutputs, 2)),
  }
}

const UNITS: Record<string, number> = { seconds: 1_000, minutes: 60_000, hours: 3_600_000, days: 86_400_000 }

function mapWait({ parameters, version }: SourceNode): MappedNode {
  const { resume = 'timeInterval', dateTime = '' } = parameters
  if (resume === 'specificTime') {
    const text = keepText(dateTime)
    return wait({ until: isTemplate(text) ? text : readInstant(text) })
  }
  if (resume !== 'timeInterval')
    throw new Error(`it waits for "${resume}", for which Perdure has WAIT_FOR_EVENT and APPROVAL`)
  // The defaults changed with version 1.1.
  const unit = parameters.unit ?? (version < 1.1 ? 'hours' : 'seconds')
  const amount = parameters.amount ?? (version < 1.1 ? 1 : 5)
  const unitMs = getOwn(UNITS, String(unit))
  if (!unitMs) throw new Error(`it waits for an amount of "${parameters.unit}", which Perdure does not know`)
  if (isTemplate(amount)) {
    const [only, ...more] = splitPieces(amount)
    if (!only || more.length > 0)
      throw new Error('it waits for an amount that is put together of several expressions')
    return { type: 'WAIT', config: { durationMs: `={{ Number(${only.slice(3, -2)}) * ${unitMs} }}` } }
  }
  return wait({ durationMs: Math.round((Number(plainText(amount)) || 0) * unitMs) })
}

const wait = (config: Record<string, unknown>): MappedNode => ({ type: 'WAIT', config })

function readInstant(text: string): string {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw new Error(`it waits for "${text.slice(0, 100)}", which is no time`)
  return new Date(time).toISOString()
}

function mapStopAndError({ parameters }: SourceNode): MappedNode {
  const given = parameters.errorType === 'errorObject' ? parameters.errorObject : parameters.errorMessage
  return mapAll('STOP_AND_ERROR', { message: keepText(given ?? '') || 'Stopped' })
}

function mapCode({ parameters }: SourceNode): MappedNode {
  const { language = 'javaScript', mode = 'runOnceForAllItems', jsCode } = parameters
  if (language !== 'javaScript')
    throw new Error(`its code is in ${language}, and Perdure runs only JavaScript`)
  return writeCode(mode === 'runOnceForEachItem' ? 'each' : 'all', jsCode, 'code')
}

/** A node that runs code of n8n's; `style` says which of its nodes it is from, as they hand over the items in other ways. */
function writeCode(
  mode: 'all' | 'each',
  text: unknown,
  style: 'code' | 'function' | 'functionItem',
): MappedNode {
  const code = String(text ?? '')
  if (code.trim() === '') throw new Error('it has no code')
  // What code does with files is stored, which only a node of its own can do.
  const files = /\bbinary\b/.test(code) ? { files: true } : {}
  const staticData = /\bgetWorkflowStaticData\b/.test(code) ? { staticData: true } : {}
  return mapAll('CODE', { language: 'javascript', mode, code, style, ...files, ...staticData })
}
