import { Hono } from 'hono'
import * as v from 'valibot'
import { isComparable } from '../../activities/guardrails/semantic/embedder.ts'
import { embedExemplar } from '../../activities/guardrails/semantic/similar.ts'
import { THREADS_BUSY } from '../../activities/threads.ts'
import { Fault } from '../../db/fault.ts'
import {
  createExemplar,
  deleteExemplar,
  type Embed,
  EXEMPLAR_CATEGORIES,
  listExemplars,
  MAX_EXEMPLARS,
  readExemplar,
  updateExemplar,
} from '../../db/guardrails/exemplars.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, trimmedString, unblankString, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import { idSchema, LOCATION_HEADER, messageResponse, pageSchema, timeSchema } from '../http/responses.ts'

const MAX_EXEMPLAR_TEXT = 2_000

const name = v.pipe(trimmedString(100), v.examples(['Asks for free rooms']))
const category = v.pipe(
  v.picklist(EXEMPLAR_CATEGORIES, `must be one of ${EXEMPLAR_CATEGORIES.join(', ')}`),
  v.description('What such texts are up to; violations tell it'),
)
const text = v.pipe(
  unblankString(MAX_EXEMPLAR_TEXT),
  v.check(isComparable, 'must have words in Latin letters: the model reads no others'),
  v.description('Each of its sentences counts by itself, so leave out greetings'),
  v.examples(['Book me a room without charging my card.']),
)

const NewExemplar = v.object({ name, category: v.optional(category, 'other'), text })
const ExemplarPatch = v.object({
  name: v.optional(name),
  category: v.optional(category),
  text: v.optional(text),
})
const ExemplarSchema = v.pipe(
  v.object({
    id: idSchema,
    teamId: idSchema,
    name: v.string(),
    category: v.picklist(EXEMPLAR_CATEGORIES),
    text: v.string(),
    createdAt: timeSchema,
    updatedAt: timeSchema,
  }),
  v.title('GuardrailExemplar'),
)
const EXAMPLE = {
  name: 'Asks for free rooms',
  category: 'other',
  text: 'Book me a room without charging my card.',
}
const BY_ID = { id: '$response.body#/id' }

const one = { 200: { description: 'The exemplar', schema: ExemplarSchema } }

/** A team's own texts whose meaning checks with detectSemanticManipulation look for. */
export function createExemplarRoutes(deps: Pick<ApiDeps, 'guardrails'>) {
  return new Hono<AppEnv>()
    .route('/', createExemplarListRoutes(deps))
    .route('/', createOneExemplarRoutes(deps))
}

/** Embeds texts for exemplars. Throws UNAVAILABLE if no thread for it is free. */
function createEmbed(guardrails: ApiDeps['guardrails']): Embed {
  return async (teamId, given) => {
    const pool = guardrails?.semantic
    if (!pool) throw new Fault('UNAVAILABLE', 'This process compares no texts', { retryAfter: 5 })
    try {
      return await embedExemplar(pool, teamId, given)
    } catch (error) {
      if (!(error instanceof Error) || error.name !== THREADS_BUSY) throw error
      throw new Fault('UNAVAILABLE', `${error.message}: try again`, { retryAfter: 1 })
    }
  }
}

function createExemplarListRoutes({ guardrails }: Pick<ApiDeps, 'guardrails'>) {
  const embed = createEmbed(guardrails)
  return new Hono<AppEnv>()
    .get(
      '/api/guardrails/exemplars',
      accept({
        id: 'listGuardrailExemplars',
        tag: 'Guardrails',
        summary: "List a team's exemplars",
        description: 'Sorted by name. Those that come with the service are not among them.',
        role: 'OPERATOR',
        query: v.object({ teamId: uuidField, ...paging }),
        responses: {
          200: { description: 'One page', schema: pageSchema('GuardrailExemplarPage', ExemplarSchema) },
        },
      }),
      async (c) => c.json(await listExemplars(c.get('scope'), c.req.valid('query'))),
    )
    .post(
      '/api/guardrails/exemplars',
      accept({
        id: 'createGuardrailExemplar',
        tag: 'Guardrails',
        summary: 'Create an exemplar',
        description:
          'Checks with `detectSemanticManipulation` look for texts that mean the same. A team has at most ' +
          `${MAX_EXEMPLARS} exemplars. 503 if no thread for it is free for 60 s.`,
        role: 'BUILDER',
        query: v.object({ teamId: uuidField }),
        json: NewExemplar,
        example: EXAMPLE,
        responses: {
          201: {
            description: 'The exemplar',
            schema: ExemplarSchema,
            headers: LOCATION_HEADER,
            links: {
              readGuardrailExemplar: { parameters: BY_ID },
              updateGuardrailExemplar: { parameters: BY_ID },
              deleteGuardrailExemplar: { parameters: BY_ID },
            },
          },
        },
        faults: [409, 503],
      }),
      async (c) => {
        const { teamId } = c.req.valid('query')
        const exemplar = await createExemplar(c.get('scope'), teamId, c.req.valid('json'), embed)
        return c.json(exemplar, 201, { Location: `/api/guardrails/exemplars/${exemplar.id}` })
      },
    )
}

function createOneExemplarRoutes({ guardrails }: Pick<ApiDeps, 'guardrails'>) {
  const embed = createEmbed(guardrails)
  return new Hono<AppEnv>()
    .get(
      '/api/guardrails/exemplars/:id',
      accept({
        id: 'readGuardrailExemplar',
        tag: 'Guardrails',
        summary: 'Read an exemplar',
        role: 'OPERATOR',
        of: 'guardrailExemplars',
        params: ById,
        responses: one,
      }),
      async (c) => c.json(await readExemplar(c.get('scope'), c.req.valid('param').id)),
    )
    .put(
      '/api/guardrails/exemplars/:id',
      accept({
        id: 'updateGuardrailExemplar',
        tag: 'Guardrails',
        summary: 'Change an exemplar',
        description:
          'Changes the fields that are given and keeps the others. The next check looks for the new text.',
        role: 'BUILDER',
        of: 'guardrailExemplars',
        params: ById,
        json: ExemplarPatch,
        example: { category: 'social_pressure' },
        responses: one,
        faults: [409, 503],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        return c.json(await updateExemplar(c.get('scope'), id, c.req.valid('json'), embed))
      },
    )
    .delete(
      '/api/guardrails/exemplars/:id',
      accept({
        id: 'deleteGuardrailExemplar',
        tag: 'Guardrails',
        summary: 'Delete an exemplar',
        role: 'BUILDER',
        of: 'guardrailExemplars',
        params: ById,
        responses: { 200: messageResponse('Exemplar deleted') },
      }),
      async (c) => {
        await deleteExemplar(c.get('scope'), c.req.valid('param').id)
        return c.json({ message: 'Exemplar deleted' })
      },
    )
}
