import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { Fault } from '../db/fault.ts'
import { checkSecret, findHooks, type Hook, startHook } from '../db/hooks.ts'
import { checkSignature } from '../db/signature.ts'
import { accept, uuid } from './accept.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { parseJson, readBody } from './body.ts'
import { answerStarted, STARTED } from './executions.ts'
import { answerReply, REPLIES } from './replies.ts'

const OneHook = v.object({ workflowId: uuid, path: v.string() })

/**
 * Webhooks, without credentials: the address is the workflow's, and a trigger may ask for a secret header. The
 * run's input is {body, query, headers, method}. Headers are in lower case, without cookie, authorization,
 * proxy-authorization and the secret.
 */
export function createHookRoutes(deps: ApiDeps) {
  return new Hono<AppEnv>().all(
    '/hooks/:workflowId/:path',
    accept({
      id: 'fireWebhook',
      tag: 'Webhooks',
      summary: 'Fire a webhook trigger',
      description:
        'Starts a run of an active workflow at its WEBHOOK_TRIGGER of this path and method, with the input ' +
        '`{body, query, headers, method}`. A trigger may ask for a secret in a header of its choice, and for a ' +
        'signature of the body. By its responseMode it answers 202 at once, or waits for the run.',
      role: 'public',
      params: OneHook,
      anyBody: true,
      responses: { 202: STARTED, ...REPLIES },
      faults: [401, 405, 409],
    }),
    async (c) => {
      const { workflowId, path } = c.req.valid('param')
      const hooks = await findHooks(deps.store, workflowId, path)
      const hook = hooks.find(({ method }) => method === c.req.method)
      if (!hook) {
        const allowed = hooks.map(({ method }) => method).join(', ')
        c.header('Allow', allowed)
        throw new Fault('METHOD_NOT_ALLOWED', `This webhook takes ${allowed}`)
      }
      checkSecret(hook, hook.secretHeader === null ? undefined : c.req.header(hook.secretHeader))
      const bytes = await readBody(c)
      if (hook.signature) checkSignature(hook.signature, bytes, (name) => c.req.header(name))
      const call = {
        body: await readCall(c, bytes),
        query: collect(new URL(c.req.url).searchParams),
        headers: readHeaders(c, hook),
        method: c.req.method,
      }
      const started = await startHook(deps.store, hook, call, c.get('traceparent'))
      if (hook.response.mode === 'immediate') return answerStarted(deps, c, started)
      return answerReply(deps, c, hook, started)
    },
  )
}

/**
 * The body by its type: JSON's value, a form's fields (a file is {filename, contentType, base64}), any other text;
 * {base64} of what is no text; null of none.
 */
export async function readCall(c: Context, bytes: Uint8Array<ArrayBuffer>): Promise<unknown> {
  if (bytes.length === 0) return null
  const header = c.req.header('content-type') ?? ''
  const type = header.split(';')[0]!.trim().toLowerCase()
  if (/^[a-z]+\/([a-z0-9.+-]+\+)?json$/.test(type)) return parseJson(bytes)
  const form = type === 'multipart/form-data' ? await readForm(bytes, header) : undefined
  if (form) return form
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return { base64: Buffer.from(bytes).toString('base64') }
  }
  return type === 'application/x-www-form-urlencoded' ? collect(new URLSearchParams(text)) : text
}

/** Tens of thousands would hold the thread for a while. */
const MAX_PARTS = 1_000

/** The fields of a form in parts; undefined of what is none, whatever its type says, or has too many. */
async function readForm(bytes: Uint8Array<ArrayBuffer>, type: string) {
  const [, boundary] = /;\s*boundary="?([^";]{1,200})/i.exec(type) ?? []
  if (!boundary) return undefined
  if (
    Buffer.from(bytes)
      .toString('latin1')
      .split(`--${boundary}`, MAX_PARTS + 3).length >
    MAX_PARTS + 2
  ) {
    return undefined
  }
  const form = await new Response(bytes, { headers: { 'content-type': type } })
    .formData()
    .catch(() => undefined)
  if (!form) return undefined
  const fields = [...form].map(async ([name, value]): Promise<[string, unknown]> => {
    if (typeof value === 'string') return [name, value]
    const base64 = Buffer.from(await value.arrayBuffer()).toString('base64')
    return [name, { filename: value.name, contentType: value.type, base64 }]
  })
  return collect(await Promise.all(fields))
}

/** A name given more than once holds all its values in order. */
function collect<T>(entries: Iterable<readonly [string, T]>): Record<string, T | T[]> {
  const byName = Map.groupBy(entries, ([name]) => name)
  byName.delete('__proto__')
  return Object.fromEntries(
    [...byName].map(([name, given]) => [
      name,
      given.length === 1 ? given[0]![1] : given.map(([, value]) => value),
    ]),
  )
}

function readHeaders(c: Context, hook: Hook): Record<string, string> {
  const hidden = new Set(['cookie', 'authorization', 'proxy-authorization', hook.secretHeader])
  return Object.fromEntries(Object.entries(c.req.header()).filter(([name]) => !hidden.has(name)))
}
