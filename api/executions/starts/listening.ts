import { Hono } from 'hono'
import * as v from 'valibot'
import {
  type Listening,
  listenForCalls,
  readListening,
  stopListening,
} from '../../../db/executions/starts/listeners.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { ById } from '../../http/fields.ts'
import { idSchema, messageResponse, timeSchema, versionSchema } from '../../http/responses.ts'

const ListeningSchema = v.pipe(
  v.object({
    workflowId: idSchema,
    version: v.pipe(versionSchema, v.description('The version that test calls execute')),
    draft: v.pipe(
      v.boolean(),
      v.description('Whether it is the draft; without one it is the published version'),
    ),
    until: v.pipe(
      v.nullable(timeSchema),
      v.description('When the test addresses close unless they are opened again; null if they are closed'),
    ),
    hooks: v.pipe(
      v.array(
        v.object({
          nodeId: v.pipe(v.string(), v.examples(['call'])),
          method: v.pipe(v.string(), v.examples(['POST'])),
          path: v.pipe(v.string(), v.examples(['orders'])),
          url: v.pipe(v.string(), v.description('The test address')),
        }),
      ),
      v.description('The webhooks of this version'),
    ),
    forms: v.pipe(
      v.array(
        v.object({
          nodeId: v.pipe(v.string(), v.examples(['ask'])),
          path: v.pipe(v.string(), v.examples(['contact'])),
          url: v.pipe(v.string(), v.description('The page for tests')),
        }),
      ),
      v.description('The forms of this version'),
    ),
  }),
  v.title('Listening'),
)

const LISTENING_RESPONSE = { description: 'How test calls are heard', schema: ListeningSchema }

/** The routes by which an editor listens for test calls of a workflow's webhooks. */
export function createListeningRoutes({ publicUrl }: ApiDeps) {
  const show = ({ hooks, forms, ...listening }: Listening) => ({
    ...listening,
    forms: forms.map((form) => ({
      ...form,
      url: `${publicUrl}/forms-test/${listening.workflowId}/${encodeURIComponent(form.path)}`,
    })),
    hooks: hooks.map((hook) => ({
      ...hook,
      url: `${publicUrl}/hooks-test/${listening.workflowId}/${encodeURIComponent(hook.path)}`,
    })),
  })
  const shared = { tag: 'Webhooks', of: 'workflows', params: ById } as const
  return new Hono<AppEnv>()
    .get(
      '/api/workflows/:id/listening',
      accept({
        id: 'readListening',
        summary: 'Read whether test calls are heard',
        role: 'VIEWER',
        ...shared,
        responses: { 200: LISTENING_RESPONSE },
      }),
      async (c) => c.json(show(await readListening(c.get('scope'), c.req.valid('param').id))),
    )
    .put(
      '/api/workflows/:id/listening',
      accept({
        id: 'listenForCalls',
        summary: 'Listen for test calls',
        description:
          'Opens `/hooks-test/:workflowId/:path` and `/forms-test/:workflowId/:path` for two minutes: calls execute the draft, or the published version ' +
          'if there is no draft. Another request within this time keeps it open for longer. A delivery that is sent ' +
          'again starts nothing within this time; once it was closed and opened anew, it does.',
        role: 'BUILDER',
        ...shared,
        responses: { 200: LISTENING_RESPONSE },
      }),
      async (c) => c.json(show(await listenForCalls(c.get('scope'), c.req.valid('param').id))),
    )
    .delete(
      '/api/workflows/:id/listening',
      accept({
        id: 'stopListening',
        summary: 'Stop listening for test calls',
        description: 'The test addresses close at once, unless somebody else listens too.',
        role: 'BUILDER',
        ...shared,
        responses: { 200: messageResponse('No longer listening') },
      }),
      async (c) => {
        await stopListening(c.get('scope'), c.req.valid('param').id)
        return c.json({ message: 'No longer listening' })
      },
    )
}
