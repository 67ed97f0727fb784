import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { OpenedCredential } from '../../../db/credentials/open.ts'
import { findGuardrailSettings, type GuardrailSettings } from '../../../db/guardrails/settings.ts'
import { reserveSpending, settleSpending } from '../../../db/guardrails/spending.ts'
import { NO_WORKFLOW } from '../../../db/monitoring/usage/calls.ts'
import type { Store } from '../../../db/scope.ts'
import { unlessAborted } from '../../abort.ts'
import { createCredentials } from '../../credentials/credentials.ts'
import type { Outsides } from '../../egress/outside.ts'
import type { Metrics } from '../../metrics.ts'
import type { ModelContext } from '../../models/ask.ts'
import type { UsageMeter } from '../../models/meter.ts'
import { createCallerMeter } from '../../models/usage.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { guardrailSeatsOf, takeGuardrailSeat } from './seats.ts'

/** What calls for guardrails need of the process. */
export type GuardrailModelDeps = {
  store: Store
  /** Without it, no model can be asked. */
  outside?: Pick<Outsides, 'forTeam'> | undefined
  log: Logger
  metrics?: Metrics | undefined
  /** How long an answer may take, with all waiting, in milliseconds; tests set less than the default. */
  limitMs?: number | undefined
}

/** A call that is about to be made. */
export type GuardrailCall = {
  team: string
  /** What the call is for, as its usage row has it. */
  purpose: string
  /** The most tokens that it can take. */
  tokens: { input: number; output: number }
  /** The meter of the attempt that asks: the call then counts for its execution. */
  meter?: UsageMeter | undefined
  signal?: AbortSignal | undefined
}

/** What the work of a call gets. Its `credentials` open one credential only: `opened`. */
export type GuardrailWork = {
  context: ModelContext & { credentials: NonNullable<ModelContext['credentials']> }
  opened: OpenedCredential
  model: string
}

/** The answer for a team that has named no model. */
export const NO_MODEL = 'The team has set up no model for guardrails'

const LIMIT_MS = 10_000
/** How long the end of a call is tried to be noted. */
const NOTE_MS = 60_000

/** A reason that may be told: it has nothing of a text, and nothing that a provider said. */
class Told extends Error {}

/**
 * Makes one call for the guardrails of a team, with the credential and the model of its settings, within 10 seconds: waits
 * for a seat, reserves what the call can cost, and puts what it did cost in its place. Resolves to what `work` made, or to
 * why there is nothing, in a sentence without any word of a text or of a provider. Never rejects.
 */
export async function callGuardrailModel<T>(
  deps: GuardrailModelDeps,
  call: GuardrailCall,
  work: (given: GuardrailWork) => Promise<T>,
): Promise<{ made: T } | { error: string }> {
  const limitMs = deps.limitMs ?? LIMIT_MS
  const limit = new AbortController()
  const timer = setTimeout(
    () => limit.abort(new Told(`The model did not answer within ${limitMs / 1_000} s`)),
    limitMs,
  )
  const signal = call.signal ? AbortSignal.any([limit.signal, call.signal]) : limit.signal
  try {
    const working = makeCall(deps, call, signal, work)
    // Work that does not heed the signal, such as a statement that hangs, is left behind.
    working.catch(() => {})
    return { made: await unlessAborted(working, signal) }
  } catch (error) {
    if (call.signal?.aborted) return { error: 'Nobody waits for the answer any more' }
    return { error: explain(error, limit.signal, deps) }
  } finally {
    clearTimeout(timer)
  }
}

async function makeCall<T>(
  deps: GuardrailModelDeps,
  call: GuardrailCall,
  signal: AbortSignal,
  work: (given: GuardrailWork) => Promise<T>,
): Promise<T> {
  const { store, outside } = deps
  const settings = await findGuardrailSettings(store.db, call.team)
  const { credentialId, model, cap } = demandModel(settings)
  if (!outside) throw new Told('This process asks no models')
  const giveBack = await takeSeat(deps, call.team, signal)
  try {
    const { http } = await outside.forTeam(call.team)
    const opener = { kind: 'GUARDRAILS', id: call.team } as const
    const credentials = createCredentials(store, http, { teamId: call.team, opener })
    const opened = await credentials.open(credentialId, 'LLM')
    const { baseUrl } = opened.data
    const called = { provider: opened.type, model, ...(typeof baseUrl === 'string' ? { baseUrl } : {}) }
    const meter = call.meter ?? openMeter(deps, call, signal)
    const most = await meter.estimate(called, call.tokens)
    if (most === undefined)
      throw new Told('The price of the model is not known, so that the cap cannot be kept: set a price')
    signal.throwIfAborted()
    const reserved = await reserveSpending(store, { teamId: call.team, cap, cost: roundUp(most) })
    if (!reserved) throw new Told('The monthly cap for models of guardrails is reached')
    const spent = { cost: 0 }
    const context = {
      http,
      credentials: { ...credentials, open: async () => opened },
      signal,
      meter: watchCost(meter, spent, reserved.cost),
      models: { silenceMs: deps.limitMs ?? LIMIT_MS, metrics: deps.metrics },
    }
    try {
      return await work({ context, opened, model })
    } finally {
      await settleSpending(store, reserved, spent.cost).catch((error) =>
        deps.log.error({ error: nameError(error), teamId: call.team }, 'what a guardrail cost was not noted'),
      )
    }
  } finally {
    giveBack()
  }
}

/** A call that begins when its time is almost over would be paid for nothing. */
async function takeSeat(
  { store, limitMs = LIMIT_MS }: GuardrailModelDeps,
  team: string,
  signal: AbortSignal,
): Promise<() => void> {
  const busy = new Told('Too many calls to models are under way')
  const patience = new AbortController()
  const timer = setTimeout(() => patience.abort(busy), 0.8 * limitMs)
  try {
    const until = AbortSignal.any([signal, patience.signal])
    const giveBack = await takeGuardrailSeat(guardrailSeatsOf(store.db), team, until)
    if (!giveBack) throw busy
    return giveBack
  } finally {
    clearTimeout(timer)
  }
}

function demandModel({ credentialId, model, monthlyCostCap: cap }: GuardrailSettings) {
  if (credentialId === null || model === null || cap === null) throw new Told(NO_MODEL)
  return { credentialId, model, cap }
}

/** Outside of executions, a call is its own. */
function openMeter(
  { store, log }: GuardrailModelDeps,
  { team, purpose }: GuardrailCall,
  signal: AbortSignal,
): UsageMeter {
  const by = {
    executionId: randomUUID(),
    activityId: `guardrails ${purpose}`,
    attempt: 1,
    caller: randomUUID(),
    teamId: team,
    workflowId: NO_WORKFLOW,
    nodeId: 'guardrails',
    iteration: '',
    step: null,
  }
  return createCallerMeter({ store, log }, by, {
    signal,
    unwanted: AbortSignal.timeout(NOTE_MS),
    pause: () => () => {},
  })
}

/** If the cost of a call that was sent is unknown, the reserved amount counts. */
function watchCost(meter: UsageMeter, spent: { cost: number }, most: number): UsageMeter {
  return {
    ...meter,
    async begin(called) {
      const row = await meter.begin(called)
      spent.cost = most
      return {
        async end(outcome) {
          if (outcome.status === 'REFUSED') spent.cost = 0
          const cost = await row.end(outcome)
          if (cost !== null) spent.cost = cost
          return cost
        },
      }
    },
  }
}

/** The sentences for each kind of failure. The failures' own messages quote providers, who may quote the text. */
const SAID: Record<string, string> = {
  ModelUnavailable: 'The provider of the model is not available',
  ModelRefused: 'The provider of the model refused the request',
  ModelAnswer: 'The model gave no usable answer',
  CredentialMissing: 'The credential of the guardrails no longer exists',
  CredentialBroken: 'The credential of the guardrails cannot be used',
  InvalidConfig: 'The settings of the guardrails cannot be used with this credential',
  HttpRefusedAddress: 'Calls to the provider of the model are not allowed',
  HttpRefusedHost: 'Calls to the provider of the model are not allowed',
}

function explain(error: unknown, limit: AbortSignal, { log }: GuardrailModelDeps): string {
  if (error instanceof Told) return error.message
  if (limit.aborted && limit.reason instanceof Told) return limit.reason.message
  const said = error instanceof NodeFailure ? SAID[error.type] : undefined
  if (said && error instanceof NodeFailure) {
    const status = /responded with (\d{3})(?:$|:)/.exec(error.message)?.[1]
    return status ? `${said} (${status})` : said
  }
  // The error itself may hold the request, and so the text.
  log.warn({ error: nameError(error) }, 'a model could not be asked for guardrails')
  return 'The model could not be asked'
}

const nameError = (error: unknown) => (error instanceof Error ? error.name : typeof error)

const PLACES = 10 ** 10
const roundUp = (cost: number) => Math.ceil(cost * PLACES) / PLACES
