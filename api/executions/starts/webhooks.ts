import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { findTestWebhooks } from '../../../db/executions/starts/listeners.ts'
import {
  beginWebhookSignature,
  checkWebhookSecret,
  findWebhooks,
  startWebhook,
  type Webhook,
} from '../../../db/executions/starts/webhooks.ts'
import { Fault } from '../../../db/fault.ts'
import type { BodyReader } from '../../bodies/away.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { uuidField } from '../../http/fields.ts'
import { createCallReader, startWithFiles } from './hookcall.ts'
import { STARTED_RESPONSE, startAndRespond } from './start.ts'
import { AWAITED_RESPONSES, startAndAcknowledge, startAndRelayAnswer } from './webhookresponse.ts'

const OneHook = v.object({ workflowId: uuidField, path: v.string() })

/**
 * The routes of webhooks: the live address, and the test address. They need no credentials, but a trigger may demand a
 * secret header or a signature. The execution's input is {body, query, headers, method}. Header names are in lower case;
 * cookie, authorization, proxy-authorization, the secret header and the signature's are left out.
 */
export function createWebhookRoutes(deps: ApiDeps, readAway: BodyReader) {
  const answer = createAnswerer(deps, readAway)
  const shared = {
    tag: 'Webhooks',
    role: 'public',
    params: OneHook,
    anyBody: true,
    responses: { 202: STARTED_RESPONSE, ...AWAITED_RESPONSES },
    faults: [401, 405, 409],
  } as const
  return new Hono<AppEnv>()
    .all(
      '/hooks/:workflowId/:path',
      accept({
        id: 'fireWebhook',
        summary: 'Fire a webhook trigger',
        description:
          'Starts an execution of an active workflow at its WEBHOOK_TRIGGER with this path and method. The ' +
          'input is `{body, query, headers, method}`. The trigger may demand a secret in a header of its ' +
          'choice, or a signature of the body. If its config has `files`, the files of a form are stored, and so is ' +
          'a body that is neither JSON, a form nor plain text. Its responseMode decides whether the response is 202 at once, ' +
          'or waits for the execution.',
        ...shared,
      }),
      async (c) => {
        const { workflowId, path } = c.req.valid('param')
        return answer(c, await findWebhooks(deps.store, workflowId, path))
      },
    )
    .all(
      '/hooks-test/:workflowId/:path',
      accept({
        id: 'testWebhook',
        summary: 'Call a webhook trigger for a test',
        description:
          'Does what `/hooks` does, with the draft of the workflow if it has one, and also if the workflow is inactive, ' +
          'while an editor listens (see `listenForCalls`); otherwise the response is 404. The execution is a test ' +
          '(`draft`).',
        ...shared,
      }),
      async (c) => {
        const { workflowId, path } = c.req.valid('param')
        return answer(c, await findTestWebhooks(deps.store, workflowId, path))
      },
    )
}

/** Starts an execution by a call of one of the webhooks, which are of one path, and answers as that one says. */
function createAnswerer(deps: ApiDeps, readAway: BodyReader) {
  const readCall = createCallReader(deps, readAway)
  return async (c: Context<AppEnv>, hooks: Webhook[]) => {
    const hook = hooks.find(({ method }) => method === c.req.method)
    if (!hook) {
      const allowed = hooks.map(({ method }) => method).join(', ')
      c.header('Allow', allowed)
      throw new Fault('METHOD_NOT_ALLOWED', `This webhook accepts ${allowed}, not ${c.req.method}`)
    }
    c.set('teamId', hook.workflow.teamId)
    const given = hook.secretHeader === null ? undefined : c.req.header(hook.secretHeader)
    await checkWebhookSecret(deps.store, hook, given)
    const signed = await beginWebhookSignature(deps.store, hook, (name) => c.req.header(name))
    const { call, files, ...checked } = await readCall(c, hook, signed)
    const started = await startWithFiles(deps.store, files, () =>
      startWebhook(deps.store, hook, call, { ...checked, files, ...c.get('trace') }),
    )
    // The answer of an execution goes to the caller who sent its delivery first; one who repeats the delivery learns
    // only the id.
    const { mode, respond } = hook.response
    if (mode === 'immediate' && respond) return startAndAcknowledge(deps, c, started, respond)
    if (mode === 'immediate' || !started.fresh) return startAndRespond(deps, c, started)
    return startAndRelayAnswer(deps, c, hook, started)
  }
}
