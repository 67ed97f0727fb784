import { Hono } from 'hono'
import * as v from 'valibot'
import {
  createVariable,
  deleteVariable,
  listVariables,
  readVariable,
  updateVariable,
} from '../db/variables.ts'
import { accept, ById, shown, text, uuid } from './accept.ts'
import { EXAMPLE_ID, id, LOCATION, pageOf, said, time } from './answers.ts'
import type { AppEnv } from './app.ts'
import { paging } from './query.ts'

const key = v.pipe(
  v.string('must be a text'),
  v.regex(
    /^[A-Za-z_][A-Za-z0-9_]{0,99}$/,
    'must be 1 to 100 letters, digits or _, not beginning with a digit',
  ),
  v.examples(['region']),
)
const description = v.nullable(text(1_000, 0))
const value = v.pipe(
  v.custom<unknown>((given) => given !== undefined, 'is required'),
  shown<unknown>({ description: 'Any JSON, up to 32 KB' }),
)

const VariableQuery = v.object({ teamId: uuid, ...paging })
const NewVariable = v.object({ teamId: uuid, key, value, description: v.optional(description) })
const VariablePatch = v.object({
  key: v.optional(key),
  value: v.optional(value),
  description: v.optional(description),
})

const VariableAnswer = v.pipe(
  v.object({
    id,
    teamId: id,
    key: v.pipe(v.string(), v.examples(['region'])),
    value: v.pipe(v.unknown(), v.description('Any JSON'), v.examples(['eu'])),
    description: v.nullable(v.pipe(v.string(), v.examples(['Where our servers stand']))),
    createdAt: time,
    updatedAt: time,
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
        description: 'In the order of their keys.',
        role: 'member',
        query: VariableQuery,
        responses: { 200: { description: 'One page', schema: pageOf('VariablePage', VariableAnswer) } },
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
          'Expressions of all workflows of the team read it as $vars.<key>. It is no secret: whoever may read the ' +
          'team reads it. At most 1,000 a team.',
        role: 'BUILDER',
        json: NewVariable,
        example: { teamId: EXAMPLE_ID, key: 'region', value: 'eu', description: 'Where our servers stand' },
        responses: {
          201: {
            description: 'The variable',
            schema: VariableAnswer,
            headers: LOCATION,
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
        responses: { 200: { description: 'The variable', schema: VariableAnswer } },
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
          'Changes what is given and keeps the rest. Nodes that start a second later or more read the new value.',
        role: 'BUILDER',
        of: 'variables',
        params: ById,
        json: VariablePatch,
        example: { value: ['eu', 'us'] },
        responses: { 200: { description: 'The variable', schema: VariableAnswer } },
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
        description: 'Expressions find nothing under its key from then on.',
        role: 'BUILDER',
        of: 'variables',
        params: ById,
        responses: { 200: said('Variable deleted') },
      }),
      async (c) => {
        await deleteVariable(c.get('scope'), c.req.valid('param').id)
        return c.json({ message: 'Variable deleted' })
      },
    )
}
