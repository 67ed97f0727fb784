import { getOwn } from '../../json.ts'
import type { SourceNode } from '../document.ts'
import { readLoopOutputs } from '../items/nodekinds.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapToNode } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { findMergeOutput, mapMerge } from './merge.ts'
import { mapIf, mapSwitch } from './switch.ts'

/** Nodes that say where and when an execution continues. */
export const FLOW_MAPPERS: Record<string, NodeMapper> = {
  if: { takes: 'item', passesInput: true, map: mapIf },
  switch: { takes: 'item', passesInput: true, map: mapSwitch },
  merge: { takes: 'merge', outputFlow: findMergeOutput, map: mapMerge },
  splitInBatches: { takes: 'loop', map: mapLoopOverItems },
  wait: { takes: 'any', passesInput: true, map: mapWait },
  noOp: { takes: 'any', passesInput: true, map: () => mapToNode('NO_OP', {}) },
  stopAndError: { takes: 'any', map: mapStopAndError },
}

function mapLoopOverItems(node: SourceNode, { report, inputCode }: MapperTools): MappedNode {
  const { batchSize = 1, options = {} } = node.parameters
  if (batchSize !== 1) {
    const message =
      `n8n loops over batches of ${batchSize} items. Perdure loops over one item after the other: check ` +
      'the nodes in the loop that expect a batch.'
    report('items', 'parameters.batchSize', message, batchSize)
  }
  for (const [key, value] of Object.entries(Object(options))) {
    reportMissingOption(report, `parameters.options.${key}`, value)
  }
  const config = { items: `{{ ${inputCode} }}`, concurrency: 1, onItemError: 'stop' }
  // The loop output has no handle: the body of a FOR_EACH needs no edge.
  const handles = readLoopOutputs(node).done === 0 ? [null] : ['', null]
  return { ...mapToNode('FOR_EACH', config), handles }
}

const UNITS: Record<string, number> = { seconds: 1_000, minutes: 60_000, hours: 3_600_000, days: 86_400_000 }

function mapWait({ parameters, version }: SourceNode, { reader }: MapperTools): MappedNode {
  const { resume = 'timeInterval', dateTime } = parameters
  if (resume === 'specificTime') {
    const until = reader.readCode(dateTime ?? '', 'parameters.dateTime')
    return mapToNode('WAIT', { until: `{{ $fromMillis($toMillis(${until.text})) }}` })
  }
  if (resume !== 'timeInterval')
    throw new Error(`it waits for "${resume}", for which Perdure has WAIT_FOR_EVENT and APPROVAL`)
  // The defaults changed with version 1.1.
  const unit = parameters.unit ?? (version < 1.1 ? 'hours' : 'seconds')
  const amount = parameters.amount ?? (version < 1.1 ? 1 : 5)
  const unitMs = getOwn(UNITS, String(unit))
  if (!unitMs) throw new Error(`it waits for an amount of "${parameters.unit}", which Perdure does not know`)
  const durationMs =
    typeof amount === 'number'
      ? Math.round(amount * unitMs)
      : `{{ $number(${reader.readCode(amount, 'parameters.amount').text}) * ${unitMs} }}`
  return mapToNode('WAIT', { durationMs })
}

function mapStopAndError({ parameters }: SourceNode, { reader }: MapperTools): MappedNode {
  const given = parameters.errorType === 'errorObject' ? parameters.errorObject : parameters.errorMessage
  const message = reader.readTemplate(given ?? 'Stopped', 'parameters.errorMessage')
  return mapToNode('STOP_AND_ERROR', { message: message === '' ? 'Stopped' : message })
}
