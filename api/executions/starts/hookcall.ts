import type { Context } from 'hono'
import { isFileValue } from '../../../activities/files/files.ts'
import { listWithheld, type Webhook, type WebhookCall } from '../../../db/executions/starts/webhooks.ts'
import { removeStored, type StoredFile } from '../../../db/files/store.ts'
import type { Store } from '../../../db/scope.ts'
import { FILES_KEY, type ItemFiles } from '../../../workflows/itemfiles.ts'
import { isObject, setOwn } from '../../../workflows/json.ts'
import type { BodyReader } from '../../bodies/away.ts'
import { collectByName } from '../../bodies/names.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { createReceiver, type HookBody, type SignedBody } from './hookbody.ts'

/** A request to a webhook as its trigger outputs it, with the files that it brought and what is known of its body. */
export type ReadCall = { call: WebhookCall } & Omit<HookBody, 'body' | 'rawBody'>

/** Reads requests to webhooks into `{body, query, headers, method}`, or the shape that the trigger wants. */
export function createCallReader(deps: Pick<ApiDeps, 'store' | 'publicUrl'>, readAway: BodyReader) {
  const receive = createReceiver(deps, readAway)
  return async (c: Context<AppEnv>, hook: Webhook, signed: SignedBody): Promise<ReadCall> => {
    const { body, rawBody, ...checked } = await receive(c, hook, signed)
    const asked = {
      body,
      ...(rawBody ? { rawBody } : {}),
      query: collectByName(new URL(c.req.url).searchParams),
      headers: readHeaders(c, hook),
    }
    const call =
      hook.node.config.shape === 'n8n'
        ? shapeForN8n(hook, asked, `${deps.publicUrl}${c.req.path}`)
        : { ...asked, method: c.req.method }
    return { call, ...checked }
  }
}

/** Starts an execution with the files of its call. They are removed if it is refused, or was started before. */
export async function startWithFiles<T extends { fresh: boolean }>(
  store: Store,
  files: StoredFile[],
  start: () => Promise<T>,
): Promise<T> {
  const started = await start().catch(async (error) => {
    await removeStored(store, files)
    throw error
  })
  // The execution that was started before has those of its own request.
  if (!started.fresh) await removeStored(store, files)
  return started
}

/** What a Webhook node of n8n outputs. */
function shapeForN8n(
  hook: Webhook,
  { body, query, headers, rawBody }: WebhookCall,
  webhookUrl: string,
): WebhookCall {
  const executionMode = hook.test ? 'test' : 'production'
  const taken = hook.files ? takeFiles(body, hook.files.name) : { body, files: {} }
  const files = rawBody ? { data: rawBody } : taken.files
  return {
    headers,
    params: {},
    query,
    body: taken.body ?? {},
    webhookUrl,
    executionMode,
    ...(Object.keys(files).length > 0 ? { [FILES_KEY]: files } : {}),
  }
}

/** The files in a body, which is one or a form, by the names that n8n gives them; and the rest of the body. */
function takeFiles(body: unknown, name?: string): { body: unknown; files: ItemFiles } {
  if (isFileValue(body)) return { body: {}, files: { [name ?? 'data']: body } }
  if (!isObject(body)) return { body, files: {} }
  const rest: Record<string, unknown> = {}
  const files: ItemFiles = {}
  let count = 0
  for (const [key, value] of Object.entries(body)) {
    const several = Array.isArray(value) && value.some(isFileValue)
    const found = [value].flat().filter(isFileValue)
    if (found.length === 0) setOwn(rest, key, value)
    for (const [at, file] of found.entries()) {
      const plain = key.replace(/\[\]$/, '')
      const own = plain.trim() === '' ? `data${count}` : several ? `${plain}${at}` : plain
      setOwn(files, name === undefined ? own : `${name}${count}`, file)
      count++
    }
  }
  return { body: rest, files }
}

function readHeaders(c: Context, hook: Webhook): Record<string, string> {
  const withheld = listWithheld(hook.node)
  return Object.fromEntries(Object.entries(c.req.header()).filter(([name]) => !withheld.has(name)))
}
