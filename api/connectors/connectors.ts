import { Hono } from 'hono'
import * as v from 'valibot'
import {
  createConnector,
  deleteConnector,
  listConnectors,
  readConnector,
  readConnectorContent,
  updateConnector,
} from '../../db/connectors/connectors.ts'
import { demandTeam } from '../../db/scope.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, uuidField } from '../http/fields.ts'
import { forceField, paging } from '../http/query.ts'
import { EXAMPLE_ID, LOCATION_HEADER, messageResponse } from '../http/responses.ts'
import { changeContent, readContent } from './content.ts'
import {
  actionPaging,
  ChangedSchema,
  ConnectorBody,
  ConnectorId,
  ConnectorPage,
  ConnectorPatch,
  ConnectorSchema,
  CreatedSchema,
  search,
} from './fields.ts'
import { createConnectorTrialRoutes } from './trying.ts'

/** A document may have 20 MB, which JSON may write as somewhat more. */
const MOST_BYTES = 25 * 1024 * 1024

const EXAMPLE_DOCUMENT = `openapi: 3.1.0
info: { title: Pets, version: '1' }
servers: [{ url: https://pets.example.com }]
paths:
  /pets/{petId}:
    get:
      operationId: getPet
      summary: Read a pet
      parameters: [{ name: petId, in: path, required: true, schema: { type: integer } }]
      responses: { '200': { description: The pet } }
`

type Deps = Pick<ApiDeps, 'outside' | 'evaluator' | 'store'>

/** The services that a team's nodes can call: those that every team has, and those of its own. */
export function createConnectorRoutes(deps: Deps) {
  return new Hono<AppEnv>()
    .route('/', createConnectorListRoutes(deps))
    .route('/', createOneConnectorRoutes(deps))
    .route('/', createConnectorTrialRoutes(deps))
}

function createConnectorListRoutes({ outside }: Deps) {
  return new Hono<AppEnv>()
    .get(
      '/api/connectors',
      accept({
        id: 'listConnectors',
        tag: 'Connectors',
        summary: 'List the connectors that a team can use',
        description:
          "Those that every team has, whose id is their name, then the team's own, each sorted by name.",
        role: 'member',
        query: v.object({ teamId: uuidField, search, ...paging }),
        responses: { 200: { description: 'One page', schema: ConnectorPage } },
      }),
      async (c) => c.json(await listConnectors(c.get('scope'), c.req.valid('query'))),
    )
    .post(
      '/api/connectors',
      accept({
        id: 'createConnector',
        tag: 'Connectors',
        summary: 'Make a connector of an OpenAPI document',
        description:
          'Each operation becomes an action. Those that only read (GET, HEAD, OPTIONS) may be repeated, and what ' +
          '`repeatable` names; all others are sent at most once. References to other files or addresses are refused. ' +
          '`problems` says what cannot be used. At most 20 MB and 5,000 operations; a team can have 100 connectors.',
        role: 'BUILDER',
        json: ConnectorBody,
        mostBytes: MOST_BYTES,
        example: { teamId: EXAMPLE_ID, name: 'pets', openapi: EXAMPLE_DOCUMENT },
        faults: [409, 503],
        responses: {
          201: { description: 'The connector', schema: CreatedSchema, headers: LOCATION_HEADER },
        },
      }),
      async (c) => {
        const { teamId, name, ...given } = c.req.valid('json')
        await demandTeam(c.get('scope'), teamId, 'BUILDER')
        const content = await readContent(outside, teamId, given)
        const connector = await createConnector(c.get('scope'), { teamId, name, content })
        return c.json(connector, 201, { Location: `/api/connectors/${connector.id}` })
      },
    )
}

const forced = v.object({ force: forceField('Deletes it although published workflows use it (ADMIN)') })

function createOneConnectorRoutes({ outside }: Deps) {
  return new Hono<AppEnv>()
    .get(
      '/api/connectors/:id',
      accept({
        id: 'readConnector',
        tag: 'Connectors',
        summary: 'Read a connector',
        description: 'With its actions, those first that the document names first.',
        role: 'user',
        params: ConnectorId,
        query: v.object(actionPaging),
        responses: { 200: { description: 'The connector', schema: ConnectorSchema } },
        faults: [403, 404],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const { connector, actions } = await readConnector(c.get('scope'), id, c.req.valid('query'))
        const shown = actions.content.map((action) => ({ ...action, signIn: [...connector.signIn] }))
        return c.json({ ...connector, actions: shown, actionCount: actions.totalElements })
      },
    )
    .put(
      '/api/connectors/:id',
      accept({
        id: 'updateConnector',
        tag: 'Connectors',
        summary: 'Change a connector',
        description:
          'All but its name is a new version: workflows keep the one that they were saved with, until their nodes name ' +
          'another `version`. `changes` says what is different, `usedBy` whom it concerns.',
        role: 'BUILDER',
        of: 'connectors',
        params: ById,
        json: ConnectorPatch,
        mostBytes: MOST_BYTES,
        example: { name: 'our-pets' },
        faults: [409, 503],
        responses: { 200: { description: 'The connector', schema: ChangedSchema } },
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const scope = c.get('scope')
        const { name, ...given } = c.req.valid('json')
        if (Object.values(given).every((value) => value === undefined))
          return c.json(await updateConnector(scope, id, { name }))
        const { content: before, version: from, teamId } = await readConnectorContent(scope, id)
        const content = await changeContent(outside, teamId, before, given)
        return c.json(await updateConnector(scope, id, { name, content, from }))
      },
    )
    .delete(
      '/api/connectors/:id',
      accept({
        id: 'deleteConnector',
        tag: 'Connectors',
        summary: 'Delete a connector',
        description:
          'With all of its versions. Refused with 409 while published workflows use it, unless an ADMIN says ' +
          '`force=true`: then they fail where they need it.',
        role: 'BUILDER',
        of: 'connectors',
        params: ById,
        query: forced,
        faults: [409],
        responses: { 200: messageResponse('Connector deleted') },
      }),
      async (c) => {
        await deleteConnector(c.get('scope'), c.req.valid('param').id, c.req.valid('query').force)
        return c.json({ message: 'Connector deleted' })
      },
    )
}
