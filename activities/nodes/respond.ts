import * as v from 'valibot'
import { isObject } from '../../workflows/inputs.ts'
import { answerStatus, findHeaderFault } from '../../workflows/nodes/hooks.ts'
import { invalidConfig } from './failure.ts'
import type { NodeContext, NodeRunner } from './node.ts'

/** RESPOND_TO_WEBHOOK: notes what the call that started the run is answered with, at once, and outputs it. */
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
  const parsed = v.safeParse(answerStatus, /^\d{3}$/.test(String(status)) ? Number(status) : status)
  if (!parsed.success) throw invalidConfig('status', parsed.issues[0].message)
  return parsed.output
}

/** In lower case; those that are nothing are left out. */
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
