import { Hono } from 'hono'
import { listChoices, tryAction } from '../../activities/connectors/try.ts'
import { NodeFailure } from '../../activities/nodes/kit/failure.ts'
import { demandAction, noteTrial } from '../../db/connectors/trials.ts'
import { Fault, invalid } from '../../db/fault.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { createSeats } from '../executions/seats.ts'
import { accept } from '../http/accept.ts'
import { EXAMPLE_ID } from '../http/responses.ts'
import { ChoicesSchema, ConnectorId, OptionsBody, TriedSchema, TryBody } from './fields.ts'

/** How many tries a team may have under way in one process, and how long one may take. */
const MOST_AT_ONCE = 4
const TRY_MS = 60_000
const LIST_MS = 15_000

type Deps = Pick<ApiDeps, 'outside' | 'evaluator' | 'store'>

/** The routes that call a service for a person who builds, outside of executions. */
export function createConnectorTrialRoutes(deps: Deps) {
  const seats = createSeats('calls of connectors', { ofTeam: MOST_AT_ONCE })
  return new Hono<AppEnv>()
    .post(
      '/api/connectors/:id/try',
      accept({
        id: 'tryConnector',
        tag: 'Connectors',
        summary: 'Try an action of a connector',
        description:
          'Carries it out once, for real, and says what came of it and which requests were made; nothing is tried again. ' +
          'The audit says who did it. An action that fails is a 200 with the status FAILED. It takes at most a minute; ' +
          'actions that answer with a file can only be carried out in an execution.',
        role: 'BUILDER',
        params: ConnectorId,
        json: TryBody,
        example: { teamId: EXAMPLE_ID, action: 'getPet', input: { petId: 7 } },
        responses: { 200: { description: 'What came of it', schema: TriedSchema } },
        faults: [404, 503],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const { teamId, action, ...settings } = c.req.valid('json')
        const scope = c.get('scope')
        const found = await demandAction(scope, teamId, { connector: id, action })
        const giveBack = seats.take(scope.userId ?? '', teamId)
        try {
          const outside = await reach(deps, teamId)
          await noteTrial(scope, teamId, { connector: id, action, ...settings })
          const signal = AbortSignal.any([c.req.raw.signal, AbortSignal.timeout(TRY_MS)])
          return c.json(await tryAction({ ...outside, teamId, signal }, found, settings))
        } finally {
          giveBack()
        }
      },
    )
    .post(
      '/api/connectors/:id/options',
      accept({
        id: 'listConnectorOptions',
        tag: 'Connectors',
        summary: 'List the values of an input to choose from',
        description:
          'Asks the service for the values that a property of the input can have, where its schema has `x-options`. ' +
          '`input` is what is known of the others: tables are those of the base in it, for example. 422 says what the ' +
          'service refused.',
        role: 'BUILDER',
        params: ConnectorId,
        json: OptionsBody,
        example: { teamId: EXAMPLE_ID, action: 'getPet', property: 'petId' },
        responses: { 200: { description: 'At most 1,000 of them', schema: ChoicesSchema } },
        faults: [404, 422, 503],
      }),
      async (c) => {
        const { id } = c.req.valid('param')
        const { teamId, action, property, ...settings } = c.req.valid('json')
        const scope = c.get('scope')
        const found = await demandAction(scope, teamId, { connector: id, action })
        const source = findSource(found, property)
        if (!source) return c.json({ options: [] })
        const lacking = (source.needs ?? []).filter((key) => !settings.input[key])
        if (lacking.length > 0)
          throw invalid(lacking.map((key) => ({ path: `input.${key}`, message: 'is needed for this list' })))
        const giveBack = seats.take(scope.userId ?? '', teamId)
        try {
          const outside = await reach(deps, teamId)
          const signal = AbortSignal.any([c.req.raw.signal, AbortSignal.timeout(LIST_MS)])
          return c.json({
            options: await listChoices({ ...outside, teamId, signal }, found, source, settings),
          })
        } catch (error) {
          if (error instanceof NodeFailure) throw new Fault('UNPROCESSABLE', error.message)
          throw error
        } finally {
          giveBack()
        }
      },
    )
}

function findSource({ connector, action }: Awaited<ReturnType<typeof demandAction>>, property: string) {
  const schema = Object(Object(action.input.properties)[property])
  const named = schema['x-options']
  return typeof named === 'string' ? connector.options?.[named] : undefined
}

async function reach({ outside, evaluator, store }: Deps, teamId: string) {
  if (!outside || !evaluator)
    throw new Fault('UNAVAILABLE', 'This process calls no services', { retryAfter: 5 })
  return { ...(await outside.forTeam(teamId)), evaluator, store }
}
