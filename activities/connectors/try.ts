import { randomUUID } from 'node:crypto'
import type { FoundAction } from '../../db/connectors/find.ts'
import type { Store } from '../../db/scope.ts'
import type { ConnectorOptions } from '../../workflows/connectors/connector.ts'
import { NEWEST_RULES } from '../../workflows/expressions/rules.ts'
import { isObject } from '../../workflows/json.ts'
import type { FailureType } from '../../workflows/nodes/failures.ts'
import { createCredentials } from '../credentials/credentials.ts'
import { createMasking } from '../credentials/masking.ts'
import type { Outside } from '../egress/outside.ts'
import type { Evaluator } from '../expressions/evaluator.ts'
import type { HttpClient } from '../http/http.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeContext } from '../nodes/kit/node.ts'
import { createNoteKeeper } from '../nodes/kit/notes.ts'
import { callAction } from './call.ts'
import { type ActionSettings, prepareCall } from './prepare.ts'

/** Who tries something, and with what. */
export type TryDeps = Outside & { store: Store; evaluator: Evaluator; teamId: string; signal: AbortSignal }

/** A request that a try has made. `url` is without its query; `status` is null if no answer came. */
type TriedRequest = { method: string; url: string; status: number | null; ms: number }

/** What came of a try: never more than one attempt is made. `output` is null if it failed. */
type Tried = {
  status: 'SUCCESS' | 'FAILED'
  output: unknown
  error: { type: FailureType; message: string } | null
  requests: TriedRequest[]
  warnings: string[]
}

/** The most of what a service answers that a try shows, in characters of JSON. */
const MAX_SHOWN = 1_000_000

/** Carries out an action once, outside of an execution. Never throws for what the service or the input does. */
export async function tryAction(deps: TryDeps, found: FoundAction, settings: ActionSettings): Promise<Tried> {
  const { context, requests, masking } = openTry(deps)
  const told = () => {
    const warnings = (context.notes.kept().notes?.warnings ?? []).map(({ message }) => message)
    return { requests, warnings }
  }
  try {
    const call = await prepareCall(context, found, settings)
    const made = await callAction(context, { ...call, noted: false })
    const { output } = await masking.result({ output: made })
    if ((JSON.stringify(output) ?? '').length > MAX_SHOWN)
      throw new NodeFailure('It was done, but its answer is too large to be shown here', {
        type: 'OutputTooLarge',
      })
    return { status: 'SUCCESS', output: output ?? null, error: null, ...told() }
  } catch (error) {
    deps.signal.throwIfAborted()
    if (!(error instanceof NodeFailure)) throw error
    const { type, message } = masking.error(error) as NodeFailure
    return { status: 'FAILED', output: null, error: { type, message }, ...told() }
  }
}

/** One value to choose from. */
export type Choice = { value: string; label: string }

const MAX_CHOICES = 1_000

/**
 * The values that a property of an input can have, as the service lists them; `input` is what is known of it so far. Throws
 * a NodeFailure for what the service refuses.
 */
export async function listChoices(
  deps: TryDeps,
  found: FoundAction,
  { steps, list }: ConnectorOptions,
  settings: ActionSettings,
): Promise<Choice[]> {
  const { context, masking } = openTry(deps)
  try {
    const action = {
      ...found.action,
      input: { type: 'object' },
      safety: 'REPEATABLE' as const,
      steps,
      result: `{{ ${list} }}`,
    }
    const call = await prepareCall(context, { ...found, action }, settings)
    const { output } = await masking.result({ output: await callAction(context, { ...call, noted: false }) })
    const entries = Array.isArray(output) ? output : output === null ? [] : [output]
    return entries.slice(0, MAX_CHOICES).flatMap((one) => {
      if (!isObject(one) || one.value === undefined || one.value === null) return []
      return [{ value: String(one.value), label: String(one.label ?? one.value) }]
    })
  } catch (error) {
    throw masking.error(error)
  }
}

/** A context for an action outside of an execution, and the list of the requests that are made with it. */
function openTry({ store, evaluator, teamId, signal, ...outside }: TryDeps) {
  const credentials = createCredentials(store, outside.http, { teamId, opener: null })
  const requests: TriedRequest[] = []
  const notes = createNoteKeeper()
  const key = randomUUID()
  const nothing = { input: null, nodes: {}, trigger: null, vars: {}, execution: { id: key } }
  const context: NodeContext = {
    ...{ config: {}, input: null, inputs: [], bindings: nothing, notes, credentials, signal, attempt: 1 },
    evaluator: evaluator.for({ team: teamId, signal }).under({ rules: NEWEST_RULES, strict: false }),
    http: listRequests(outside.http, requests),
    idempotencyKey: key,
    check: () => Promise.reject(new Error('a try checks no texts')),
    leads: () => false,
    answer: async () => {},
    spot: {
      ...{ store, executionId: key, nodeId: '', nodeName: '', iteration: '' },
      ...{ traceparent: undefined, tracestate: undefined },
    },
  }
  return { context, requests, masking: createMasking(credentials) }
}

function listRequests(http: HttpClient, requests: TriedRequest[]): HttpClient {
  return {
    close: http.close,
    async request(req) {
      const began = performance.now()
      const { origin, pathname } = new URL(req.url)
      const one: TriedRequest = { method: req.method, url: origin + pathname, status: null, ms: 0 }
      requests.push(one)
      try {
        const response = await http.request(req)
        one.status = response.status
        return response
      } finally {
        one.ms = Math.round(performance.now() - began)
      }
    },
  }
}
