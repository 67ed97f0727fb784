import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import {
  createExample,
  deleteExample,
  listExamples,
  MAX_EXAMPLES,
  readExample,
  updateExample,
} from '../../db/workflows/examples.ts'
import { EXAMPLE_KINDS } from '../../db/workflows/examplevalues.ts'
import type { AppEnv } from '../env.ts'
import { requestSchema } from '../executions/starts/request.ts'
import { accept } from '../http/accept.ts'
import { ById, boundedString, objectField, trimmedString, uuidField } from '../http/fields.ts'
import {
  countSchema,
  idSchema,
  LOCATION_HEADER,
  messageResponse,
  timeSchema,
  warningsEntry,
} from '../http/responses.ts'
import { listWarnings, warnLargeNumbers, warnUnknownKeys } from '../warnings.ts'

const OneExample = v.object({ id: uuidField, exampleId: uuidField })

const itemEntries = {
  id: idSchema,
  workflowId: idSchema,
  name: v.pipe(v.string(), v.examples(['A large order'])),
  trigger: v.pipe(v.string(), v.description('The id of the trigger'), v.examples(['order'])),
  kind: v.pipe(v.picklist(EXAMPLE_KINDS), v.description('Whether it holds a `request` or `data`')),
  bytes: v.pipe(countSchema, v.description('The size of what it holds, as JSON')),
  createdAt: timeSchema,
  updatedAt: timeSchema,
}
const held = v.record(v.string(), v.unknown())
const ExampleItemSchema = v.pipe(v.object(itemEntries), v.title('ExampleItem'))
const ExampleSchema = v.pipe(
  v.object({
    ...itemEntries,
    request: v.pipe(v.optional(held), v.description('Of the kind REQUEST: the `request` of execute')),
    data: v.pipe(v.optional(held), v.description('Of the kind DATA: the `data` of execute')),
    ...warningsEntry,
  }),
  v.title('Example'),
)

const valueFields = {
  request: v.pipe(
    v.optional(requestSchema),
    v.description(
      'A call of a WEBHOOK_TRIGGER, as execute takes it. Headers that say who calls are not kept',
    ),
  ),
  data: v.pipe(v.optional(objectField), v.description('In place of `request`: the output of the trigger')),
}
const nameField = trimmedString(100)
const triggerField = v.pipe(
  boundedString(100),
  v.description('The id of a trigger of the published graph or of the draft'),
)

const NewExample = v.pipe(
  v.object({ name: nameField, trigger: triggerField, ...valueFields }),
  checkNotBoth(),
  checkEither(),
)
const ExamplePatchBody = v.pipe(
  v.object({ name: v.optional(nameField), trigger: v.optional(triggerField), ...valueFields }),
  checkNotBoth(),
)

const one = { 200: { description: 'The example', schema: ExampleSchema } }

/** The routes of what people keep of a workflow to try it with. */
export function createExampleRoutes() {
  return new Hono<AppEnv>().route('/', createExampleListRoutes()).route('/', createOneExampleRoutes())
}

function createExampleListRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/workflows/:id/examples',
      accept({
        id: 'listExamples',
        tag: 'Workflows',
        summary: "List a workflow's saved examples",
        role: 'member',
        of: 'workflows',
        params: ById,
        responses: {
          200: {
            description: 'All of them by name, without what they hold',
            schema: v.array(ExampleItemSchema),
          },
        },
      }),
      async (c) => c.json(await listExamples(c.get('scope'), c.req.valid('param').id)),
    )
    .post(
      '/api/workflows/:id/examples',
      accept({
        id: 'createExample',
        tag: 'Workflows',
        summary: 'Save an example to try a workflow with',
        description:
          'A `request` or `data` for the route that executes the workflow, kept sealed: at most 256 KB. A workflow can ' +
          `have ${MAX_EXAMPLES}. They are deleted with the workflow, and are no part of its exports.`,
        role: 'BUILDER',
        of: 'workflows',
        params: ById,
        json: NewExample,
        example: { name: 'A large order', trigger: 'order', data: { body: { total: 120 } } },
        faults: [409],
        responses: {
          201: { description: 'The new example', schema: ExampleSchema, headers: LOCATION_HEADER },
        },
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const example = await createExample(c.get('scope'), id, c.req.valid('json'))
        const Location = `/api/workflows/${id}/examples/${example.id}`
        return c.json({ ...example, ...warnOfBody(c) }, 201, { Location })
      },
    )
}

function createOneExampleRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/workflows/:id/examples/:exampleId',
      accept({
        id: 'readExample',
        tag: 'Workflows',
        summary: 'Read a saved example',
        role: 'member',
        of: 'workflows',
        params: OneExample,
        faults: [409],
        responses: one,
      }),
      async (c) => {
        const { id, exampleId } = c.req.valid('param')
        return c.json(await readExample(c.get('scope'), id, exampleId))
      },
    )
    .put(
      '/api/workflows/:id/examples/:exampleId',
      accept({
        id: 'updateExample',
        tag: 'Workflows',
        summary: 'Change a saved example',
        description: 'Changes what is given; a `request` takes the place of `data`, and the other way round.',
        role: 'BUILDER',
        of: 'workflows',
        params: OneExample,
        json: ExamplePatchBody,
        example: { name: 'A small order' },
        faults: [409],
        responses: one,
      }),
      async (c) => {
        const { id, exampleId } = c.req.valid('param')
        const example = await updateExample(c.get('scope'), id, exampleId, c.req.valid('json'))
        return c.json({ ...example, ...warnOfBody(c) })
      },
    )
    .delete(
      '/api/workflows/:id/examples/:exampleId',
      accept({
        id: 'deleteExample',
        tag: 'Workflows',
        summary: 'Delete a saved example',
        role: 'BUILDER',
        of: 'workflows',
        params: OneExample,
        responses: { 200: messageResponse('Example deleted') },
      }),
      async (c) => {
        const { id, exampleId } = c.req.valid('param')
        await deleteExample(c.get('scope'), id, exampleId)
        return c.json({ message: 'Example deleted' })
      },
    )
}

type HeldValue = { request?: unknown; data?: unknown }

function checkNotBoth<T extends HeldValue>() {
  const isOne = ({ request, data }: T) => request === undefined || data === undefined
  return v.forward(v.check<T, string>(isOne, 'cannot be given together with `data`'), ['request'] as never)
}

function checkEither<T extends HeldValue>() {
  const isGiven = ({ request, data }: T) => request !== undefined || data !== undefined
  return v.forward(v.check<T, string>(isGiven, 'is required, unless `request` is given'), ['data'] as never)
}

/** What was read can be sent back: keys that the service writes need no warning. */
function warnOfBody(c: Context<AppEnv>) {
  const unknown = warnUnknownKeys(c, {}, [...Object.keys(itemEntries), 'warnings'])
  return listWarnings([...unknown, ...warnLargeNumbers(c)])
}
