import { isObject } from '../../json.ts'
import { findHeaderFault } from '../../nodes/webhooks.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools, NodeMapper } from '../mapper.ts'
import { type MappedNode, mapAll, mapEach } from '../parts.ts'
import { reportMissingOption } from '../report.ts'
import { isTemplate, keepText, keepTexts, listObjects, plainText } from '../texts.ts'
import { fileOf } from './fileparts.ts'
import { mapHttpRequest } from './http.ts'

/** Nodes that call a service or another workflow, or answer a caller. */
export const CALL_MAPPERS: Record<string, NodeMapper> = {
  httpRequest: mapHttpRequest,
  respondToWebhook: mapRespondToWebhook,
  executeWorkflow: mapExecuteWorkflow,
}

function mapRespondToWebhook(
  { parameters, version }: SourceNode,
  { report, connectedOutputs }: MapperTools,
): MappedNode {
  const { responseCode, responseHeaders, responseKey, ...rest } = Object(parameters.options ?? {})
  const headers: Record<string, unknown> = {}
  for (const [i, { name = '', value = '' }] of listObjects(Object(responseHeaders).entries).entries()) {
    const path = `parameters.options.responseHeaders.entries[${i}]`
    const key = plainText(name)?.trim() ?? ''
    const fault = findHeaderFault(key, isTemplate(value) ? '' : plainText(value))
    if (fault) report('parameter', path, `The header "${key}" was left out: it ${fault}.`, value)
    else headers[key.toLowerCase()] = keepText(value)
  }
  for (const [key, value] of Object.entries(rest)) {
    if (key !== 'enableStreaming') reportMissingOption(report, `parameters.options.${key}`, value)
  }
  if (connectedOutputs > 1 && (version === 1.3 || parameters.enableResponseOutput === true))
    report(
      'connection',
      'main[1]',
      'n8n sends the response by the second output. Perdure does not: nothing leaves by it.',
      null,
    )
  const config: Record<string, unknown> = { ...readResponse(parameters, headers), passOn: true }
  if (responseCode !== undefined)
    config.status = isTemplate(responseCode) ? responseCode : Number(plainText(responseCode))
  if (responseKey) config.key = keepText(responseKey)
  if (Object.keys(headers).length > 0) config.headers = headers
  return mapAll('RESPOND_TO_WEBHOOK', config)
}

/** The response of the node. A redirect adds its header. */
function readResponse(
  parameters: Record<string, unknown>,
  headers: Record<string, unknown>,
): Record<string, unknown> {
  const { respondWith = 'firstIncomingItem', responseBody = '', redirectURL = '' } = parameters
  const { responseDataSource, inputFieldName } = parameters
  switch (respondWith) {
    case 'json':
      return { body: keepTexts(responseBody), as: 'json' }
    case 'text':
      headers['content-type'] ??= 'text/html; charset=utf-8'
      return { body: keepText(responseBody), as: 'text' }
    case 'firstIncomingItem':
      return { as: 'first' }
    case 'allIncomingItems':
      return { as: 'all' }
    case 'noData':
      return {}
    case 'redirect':
      headers.location = keepText(redirectURL)
      return { status: 307 }
  }
  if (respondWith === 'binary')
    return responseDataSource === 'set' ? { as: 'file', body: fileOf(inputFieldName) } : { as: 'file' }
  throw new Error(`it responds with "${respondWith}", which Perdure cannot`)
}

/**
 * The id of our workflow for the one that a node of n8n executes: its own, or the one that replaces another by its id or
 * its name. Throws an Error that says why it finds nothing.
 */
export function findCalled(reference: unknown, { own, findWorkflow }: MapperTools): string {
  const { value, cachedResultName: name } = isObject(reference) ? reference : { value: reference }
  const theirs = String(value ?? '')
  if (theirs !== '' && (theirs === own.theirs || /^=\s*\{\{\s*\$workflow\.id\s*\}\}\s*$/.test(theirs))) {
    if (own.ours !== undefined) return own.ours
    throw new Error('it executes its own workflow, which has no trigger for that')
  }
  const ours = findWorkflow(theirs) ?? (typeof name === 'string' ? findWorkflow(name) : undefined)
  if (ours !== undefined) return ours
  const called = typeof name === 'string' && name !== '' ? `"${theirs}" ("${name}")` : `"${theirs}"`
  throw new Error(
    `it executes the n8n workflow ${called}, and "workflows" does not say which workflow replaces it`,
  )
}

function mapExecuteWorkflow({ parameters }: SourceNode, tools: MapperTools): MappedNode {
  const { source = 'database', workflowId, mode = 'once', options = {} } = parameters
  if (source !== 'database') throw new Error(`it takes the workflow that it executes from "${source}"`)
  const ours = findCalled(workflowId, tools)
  const { mappingMode, value } = Object(parameters.workflowInputs)
  const definesInput = mappingMode === 'defineBelow' && isObject(value) && Object.keys(value).length > 0
  const wait = Object(options).waitForSubWorkflow !== false
  const more = wait ? {} : { passOn: true }
  const config = { workflowId: ours, wait, ...more }
  if (mode === 'each')
    return mapEach('SUB_WORKFLOW', { ...config, input: definesInput ? keepTexts(value) : '{{ $item }}' })
  if (definesInput) return mapAll('SUB_WORKFLOW', { ...config, itemInput: keepTexts(value) })
  return mapAll('SUB_WORKFLOW', { ...config, input: '{{ $input }}' })
}
