import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from 'hono'
import type { StatusCode } from 'hono/utils/http-status'
import * as v from 'valibot'
import type { Bus } from '../db/bus.ts'
import { isDatabaseAway } from '../db/connection.ts'
import { isEnded, readExecution } from '../db/executions.ts'
import { awaitAnswer, type Hook, type Answer as HookAnswer, leaveAnswer, readReply } from '../db/hooks.ts'
import type { Scope } from '../db/scope.ts'
import type { Started } from '../db/start.ts'
import { type Answer, ErrorAnswer, id } from './answers.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { runErrands } from './errands.ts'
import { describeError } from './errors.ts'

const AWAY_MS = 500

/**
 * A page that a workflow answers with runs in an origin of its own: never in that of the console, where it could act as
 * whoever is signed in.
 */
const SANDBOX = 'sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts'

const ReplyError = v.pipe(
  v.object({ ...ErrorAnswer.entries, executionId: v.optional(id) }),
  v.title('WebhookError'),
)

/** What a webhook answers beside 202, where its trigger waits for the run. */
export const REPLIES: Record<500 | 504 | 'default', Answer> = {
  default: {
    description:
      "responseMode lastNode: 200 with the run's output as JSON. responseNode: what its RESPOND_TO_WEBHOOK node says",
    type: '*/*',
  },
  500: { description: 'The run failed, was cancelled, or ended without an answer', schema: ReplyError },
  504: { description: 'The run has not answered in time; it goes on', schema: ReplyError },
}

/** Has the run of a webhook started, and answers the call once the run has; a caller who leaves does not stop it. */
export async function answerReply(
  deps: ApiDeps,
  c: Context<AppEnv>,
  hook: Hook,
  started: Started,
): Promise<Response> {
  const { executionId } = started
  const { mode, timeoutMs } = hook.response
  const limit = AbortSignal.timeout(timeoutMs)
  const { stopping } = deps.bus
  const signal = AbortSignal.any([limit, stopping, c.req.raw.signal])
  // Where a run's outputs are not kept, they stay as long as somebody waits for them.
  const held = mode === 'responseNode' || !hook.workflow.settings.saveData.outputs
  if (held) await awaitAnswer(deps.store, executionId)
  if (started.fresh && !started.queued) void runErrands(deps, 'START', [executionId])
  const found = await waitFor(deps.bus, executionId, signal, async () => {
    const reply = await readReply(deps.store, executionId)
    if (!reply) return { status: 'DELETED', answer: null }
    if (mode !== 'responseNode') reply.answer = null
    return reply.answer || isEnded(reply.status) ? reply : undefined
  })
  const outputData =
    mode === 'lastNode' && found?.status === 'SUCCESS' ? await readOutput(deps, hook, executionId) : null
  if (held) {
    const log = c.get('log')
    leaveAnswer(deps.store, executionId).catch((err) =>
      log.warn({ err, executionId }, 'an answer stays behind'),
    )
  }
  c.header('Location', `/api/executions/${executionId}`)
  const refuse = (status: 500 | 504, message: string) =>
    c.json({ ...describeError(c.req.path, status, message), executionId }, status)
  if (!found) {
    const why = stopping.aborted
      ? 'The service is stopping'
      : `The run has not answered within ${timeoutMs} ms`
    return refuse(504, `${why}; the run goes on`)
  }
  if (found.answer) return sendAnswer(c, found.answer)
  if (found.status !== 'SUCCESS') return refuse(500, ENDS[found.status] ?? 'The run failed')
  if (mode === 'responseNode') return refuse(500, 'The run ended without an answer')
  return c.json(outputData, 200)
}

async function readOutput(deps: ApiDeps, hook: Hook, executionId: string) {
  return (await readExecution(serve(deps, hook), executionId)).outputData
}

// What went wrong in a run is for its team, not for whoever calls.
const ENDS: Record<string, string> = {
  FAILED: 'The run failed',
  CANCELLED: 'The run was cancelled',
  DELETED: 'The run was deleted',
}

function sendAnswer(c: Context<AppEnv>, { status, headers, body }: HookAnswer): Response {
  const empty = body === null || [204, 205, 304].includes(status)
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const type = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json'
  if (!empty) c.header('Content-Type', type)
  c.header('Content-Security-Policy', SANDBOX)
  for (const [name, value] of Object.entries(headers)) c.header(name, value)
  c.status(status as StatusCode)
  return empty ? c.body(null) : c.body(text)
}

function serve({ store }: ApiDeps, { workflow }: Hook): Scope {
  const actor = { kind: 'SYSTEM', id: null, name: 'webhook' } as const
  const roles = new Map([[workflow.teamId, 'VIEWER' as const]])
  return { store, actor, userId: null, instanceAdmin: false, roles, requestId: null, ip: null }
}

/** Looks at a run after each of its changes until `look` has found something; undefined once `signal` is aborted. */
async function waitFor<T>(
  bus: Bus,
  executionId: string,
  signal: AbortSignal,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  let news = true
  let wake = () => {}
  const tell = () => {
    news = true
    wake()
  }
  signal.addEventListener('abort', tell)
  const leave = await bus.watch(executionId, tell)
  try {
    while (!signal.aborted) {
      if (!news) await new Promise<void>((resolve) => (wake = resolve))
      news = false
      try {
        const found = await look()
        if (found !== undefined) return found
      } catch (error) {
        if (!isDatabaseAway(error)) throw error
        news = true
        await sleep(AWAY_MS, undefined, { signal }).catch(() => {})
      }
    }
    return undefined
  } finally {
    signal.removeEventListener('abort', tell)
    leave()
  }
}
