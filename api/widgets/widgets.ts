import { Hono } from 'hono'
import * as v from 'valibot'
import {
  createWidget,
  deleteWidget,
  listWidgets,
  MAX_WIDGETS,
  readWidget,
  rotateWidgetKey,
  updateWidget,
} from '../../db/widgets/widgets.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, uuidField } from '../http/fields.ts'
import { LOCATION_HEADER, messageResponse } from '../http/responses.ts'
import { tellRightsChange } from '../people/changes.ts'
import { NEW_WIDGET_EXAMPLE, NewWidget, WidgetPatchBody, WidgetSchema } from './fields.ts'

const BY_ID = { id: '$response.body#/id' }

const one = { 200: { description: 'The widget', schema: WidgetSchema } }

/** The routes with which a team cares for its widgets. */
export function createWidgetRoutes(deps: Pick<ApiDeps, 'bus'>) {
  return new Hono<AppEnv>().route('/', createWidgetListRoutes()).route('/', createOneWidgetRoutes(deps))
}

function createWidgetListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/widgets',
      accept({
        id: 'listWidgets',
        tag: 'Widgets',
        summary: "List a team's widgets",
        role: 'OPERATOR',
        query: v.object({ teamId: uuidField }),
        responses: { 200: { description: 'All of them, the oldest first', schema: v.array(WidgetSchema) } },
      }),
      async (c) => c.json(await listWidgets(c.get('scope'), c.req.valid('query').teamId)),
    )
    .post(
      '/api/widgets',
      accept({
        id: 'createWidget',
        tag: 'Widgets',
        summary: 'Add a widget',
        description:
          'A chat with an AI agent workflow of the team, for visitors of pages of the `allowedOrigins`. They can use it ' +
          `while it is enabled and the workflow is active. A team can have ${MAX_WIDGETS}.`,
        role: 'BUILDER',
        json: NewWidget,
        example: NEW_WIDGET_EXAMPLE,
        responses: {
          201: {
            description: 'The new widget, with its key',
            schema: WidgetSchema,
            headers: LOCATION_HEADER,
            links: {
              readWidget: { parameters: BY_ID },
              updateWidget: { parameters: BY_ID },
              rotateWidgetKey: { parameters: BY_ID },
              deleteWidget: { parameters: BY_ID },
            },
          },
        },
        faults: [409, 422],
      }),
      async (c) => {
        const widget = await createWidget(c.get('scope'), c.req.valid('json'))
        return c.json(widget, 201, { Location: `/api/widgets/${widget.id}` })
      },
    )
}

function createOneWidgetRoutes({ bus }: Pick<ApiDeps, 'bus'>) {
  return new Hono<AppEnv>()
    .get(
      '/api/widgets/:id',
      accept({
        id: 'readWidget',
        tag: 'Widgets',
        summary: 'Read a widget',
        role: 'OPERATOR',
        of: 'widgets',
        params: ById,
        responses: one,
      }),
      async (c) => c.json(await readWidget(c.get('scope'), c.req.valid('param').id)),
    )
    .put(
      '/api/widgets/:id',
      accept({
        id: 'updateWidget',
        tag: 'Widgets',
        summary: 'Change a widget',
        description:
          'Changes what is given, of `theme`, its `colours` and `limits` key by key. With another workflow, visitors ' +
          'begin anew.',
        role: 'BUILDER',
        of: 'widgets',
        params: ById,
        json: WidgetPatchBody,
        example: { enabled: false },
        responses: one,
        faults: [409, 422],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const widget = await updateWidget(c.get('scope'), id, c.req.valid('json'))
        tellRightsChange(bus, id)
        return c.json(widget)
      },
    )
    .delete(
      '/api/widgets/:id',
      accept({
        id: 'deleteWidget',
        tag: 'Widgets',
        summary: 'Delete a widget',
        description: 'With all that its visitors have said, and the executions that replied.',
        role: 'BUILDER',
        of: 'widgets',
        params: ById,
        responses: { 200: messageResponse('Widget deleted') },
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        await deleteWidget(c.get('scope'), id)
        tellRightsChange(bus, id)
        return c.json({ message: 'Widget deleted' })
      },
    )
    .post(
      '/api/widgets/:id/rotate-key',
      accept({
        id: 'rotateWidgetKey',
        tag: 'Widgets',
        summary: 'Give a widget another key',
        description:
          'Pages with the old key show no widget any more, and visitors who came by it cannot go on: for a key that ' +
          'is used where it should not be.',
        role: 'BUILDER',
        of: 'widgets',
        params: ById,
        responses: { 200: { description: 'The widget, with its new key', schema: WidgetSchema } },
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const widget = await rotateWidgetKey(c.get('scope'), id)
        tellRightsChange(bus, id)
        return c.json(widget)
      },
    )
}
