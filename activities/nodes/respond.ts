import * as v from 'valibot'
import { filesOf, withoutFiles } from '../../workflows/itemfiles.ts'
import { isObject } from '../../workflows/json.ts'
import { findHeaderFault, responseStatusField } from '../../workflows/nodes/webhooks.ts'
import { readFileValue } from '../files/files.ts'
import { demandFile } from '../files/store.ts'
import { describeLarge, readJson } from '../reading/json.ts'
import { invalidConfig, NodeFailure } from './kit/failure.ts'
import { listOwnItems } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'
import { setField } from './kit/paths.ts'

/**
 * RESPOND_TO_WEBHOOK: sets the response to the request that started the execution. It is sent at once, and is
 * also the output.
 */
export const runRespondToWebhook: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  const body = await readBody(context)
  const given = config.as === 'file' ? (readFileValue(body) ?? body) : undefined
  const output = {
    status: await readStatus(context),
    headers: readHeaders(await evaluator.render(config.headers ?? {}, bindings)),
    body: given ?? body,
  }
  const { store, executionId } = context.spot
  const file = config.as === 'file' ? await demandFile(store, executionId, given) : undefined
  await context.answer(file ? { ...output, fileId: file.id } : output)
  if (config.passOn !== true) return { output }
  const items = listOwnItems(context.inputs)
  return { output: items, places: { of: items, from: [...items.keys()] } }
}

/** `as` says what the body is: JSON that may be a text, a text, the first of the items, all of them, or a file. */
async function readBody({ config, bindings, evaluator, inputs, notes }: NodeContext): Promise<unknown> {
  const { as, key, body } = config
  if (as === 'first' || as === 'all') {
    const items = listOwnItems(inputs).map(withoutFiles)
    const value = as === 'all' ? items : (items[0] ?? null)
    if (key === undefined) return value
    const named: Record<string, unknown> = {}
    setField(named, String(await evaluator.render(key, bindings)), value)
    return named
  }
  // Without a body it is the first file of the first item.
  if (as === 'file' && body === undefined) return Object.values(filesOf(listOwnItems(inputs)[0]) ?? {})[0]
  const value = body === undefined ? null : ((await evaluator.render(body, bindings)) ?? null)
  if (as === 'text') return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
  if (as !== 'json' || typeof value !== 'string') return value
  if (value === '') return null
  try {
    const read = readJson(value)
    const message = describeLarge(read)
    if (message) notes.add({ warnings: [{ path: 'config.body', message }] })
    return read.value
  } catch {
    throw new NodeFailure("Invalid JSON in 'Response Body' field", { type: 'InvalidInput' })
  }
}

async function readStatus({ config, bindings, evaluator }: NodeContext): Promise<number> {
  const status = await evaluator.render(config.status ?? 200, bindings)
  const parsed = v.safeParse(responseStatusField, /^\d{3}$/.test(String(status)) ? Number(status) : status)
  if (!parsed.success) throw invalidConfig('status', parsed.issues[0].message)
  return parsed.output
}

/** The headers with names in lower case; null and empty ones are left out. */
function readHeaders(headers: unknown): Record<string, string> {
  if (!isObject(headers)) throw invalidConfig('headers', 'must be an object')
  const given = Object.entries(headers).filter(([, value]) => value !== null && value !== '')
  return Object.fromEntries(
    given.map(([name, value]) => {
      const fault = findHeaderFault(name, value)
      if (fault) throw invalidConfig(`headers.${name.slice(0, 100)}`, fault)
      return [name.toLowerCase(), String(value)]
    }),
  )
}
