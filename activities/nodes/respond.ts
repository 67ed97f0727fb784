import * as v from 'valibot'
import { isObject } from '../../workflows/json.ts'
import { findHeaderFault, responseStatusField } from '../../workflows/nodes/webhooks.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

/**
 * RESPOND_TO_WEBHOOK: sets the response to the request that started the execution. It is sent at once, and is
 * also the output.
 */
export const runRespondToWebhook: NodeRunner = async (context) => {
  const { config, bindings, evaluator } = context
  const output = {
    status: await readStatus(context),
    headers: readHeaders(await evaluator.render(config.headers ?? {}, bindings)),
    body: (config.body === undefined ? null : await evaluator.render(config.body, bindings)) ?? null,
  }
  await context.answer(output)
  return { output }
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
