import { Hono } from 'hono'
import * as v from 'valibot'
import {
  createVariable,
  deleteVariable,
  listVariables,
  readVariable,
  updateVariable,
} from '../../db/variables/variables.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedString, documentAs, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import {
  EXAMPLE_ID,
  idSchema,
  LOCATION_HEADER,
  messageResponse,
  pageSchema,
  timeSchema,
} from '../http/responses.ts'

const key = v.pipe(
  v.string('must be a string'),
  v.regex(
    /^[A-Za-z_][A-Za-z0-9_]{0,99}$/,
    'must be 1 to 100 letters, digits or _, and must not start with a digit',
  ),
  v.examples(['region']),
)
const description = v.nullable(boundedString(1_000, 0))
const value = v.pipe(
  v.custom<unknown>((given) => given !== undefined, 'is required'),
  documentAs<unknown>({ description: 'Any JSON value, up to 32 KB' }),
)

const VariableListQuery = v.object({ teamId: uuidField, ...paging })
const NewVariable = v.object({ teamId: uuidField, key, value, description: v.optional(description) })
const VariablePatch = v.object({
  key: v.optional(key),
  value: v.optional(value),
  description: v.optional(description),
})

const VariableSchema = v.pipe(
  v.object({
    id: idSchema,
    teamId: idSchema,
    key: v.pipe(v.string(), v.examples(['region'])),
    value: v.pipe(v.unknown(), v.description('Any JSON value'), v.examples(['eu'])),
    description: v.nullable(v.pipe(v.string(), v.examples(['The region of our servers']))),
    createdAt: timeSchema,
    updatedAt: timeSchema,
  }),
  v.title('Variable'),
)
const BY_ID = { id: '$response.body#/id' }

/** A team's variables, which expressions read as $vars. */
export function createVariableRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/variables',
      accept({
        id: 'listVariables',
        tag: 'Variables',
        summary: "List a team's variables",
        description: 'Sorted by key.',
        role: 'member',
        query: VariableListQuery,
        responses: { 200: { description: 'One page', schema: pageSchema('VariablePage', VariableSchema) } },
      }),
      async (c) => c.json(await listVariables(c.get('scope'), c.req.valid('query'))),
    )
    .post(
      '/api/variables',
      accept({
        id: 'createVariable',
        tag: 'Variables',
        summary: 'Create a variable',
        description:
          'Expressions in all workflows of the team read it as `$vars.<key>`. It is not a secret: every ' +
          'member of the team can read it. A team has at most 1,000 variables.',
        role: 'BUILDER',
        json: NewVariable,
        example: { teamId: EXAMPLE_ID, key: 'region', value: 'eu', description: 'The region of our servers' },
        responses: {
          201: {
            description: 'The variable',
            schema: VariableSchema,
            headers: LOCATION_HEADER,
            links: {
              readVariable: { parameters: BY_ID },
              updateVariable: { parameters: BY_ID },
              deleteVariable: { parameters: BY_ID },
            },
          },
        },
        faults: [409],
      }),
      async (c) => {
        const variable = await createVariable(c.get('scope'), c.req.valid('json'))
        c.header('Location', `/api/variables/${variable.id}`)
        return c.json(variable, 201)
      },
    )
    .get(
      '/api/variables/:id',
      accept({
        id: 'readVariable',
        tag: 'Variables',
        summary: 'Read a variable',
        role: 'member',
        of: 'variables',
        params: ById,
        responses: { 200: { description: 'The variable', schema: VariableSchema } },
      }),
      async (c) => c.json(await readVariable(c.get('scope'), c.req.valid('param').id)),
    )
    .put(
      '/api/variables/:id',
      accept({
        id: 'updateVariable',
        tag: 'Variables',
        summary: 'Change a variable',
        description:
          'Changes the fields that are given and keeps the others. Nodes that start at least a second ' +
          'later read the new value.',
        role: 'BUILDER',
        of: 'variables',
        params: ById,
        json: VariablePatch,
        example: { value: ['eu', 'us'] },
        responses: { 200: { description: 'The variable', schema: VariableSchema } },
        faults: [409],
      }),
      async (c) => c.json(await updateVariable(c.get('scope'), c.req.valid('param').id, c.req.valid('json'))),
    )
    .delete(
      '/api/variables/:id',
      accept({
        id: 'deleteVariable',
        tag: 'Variables',
        summary: 'Delete a variable',
        description: 'From then on, expressions find no value under its key.',
        role: 'BUILDER',
        of: 'variables',
        params: ById,
        responses: { 200: messageResponse('Variable deleted') },
      }),
      async (c) => {
        await deleteVariable(c.get('scope'), c.req.valid('param').id)
        return c.json({ message: 'Variable deleted' })
      },
    )
}
