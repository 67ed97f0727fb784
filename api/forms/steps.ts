import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import { readExecution } from '../../db/executions/executions.ts'
import { makePlaceToken } from '../../db/executions/waits/places.ts'
import { Fault } from '../../db/fault.ts'
import { removeStored } from '../../db/files/store.ts'
import {
  answerFormStep,
  type FormProgress,
  type FormStep,
  readFormProgress,
  readFormStep,
} from '../../db/forms/pages.ts'
import { serviceScope } from '../../db/scope.ts'
import { readVersion } from '../../db/workflows/versions.ts'
import { startTexts } from '../../workflows/graph/formtexts.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { createSeats } from '../executions/seats.ts'
import { waitFor } from '../executions/wait.ts'
import { accept } from '../http/accept.ts'
import { carryOutErrands } from '../outbox.ts'
import { readOrigin } from '../people/session.ts'
import { createAnswerReader } from './body.ts'
import { shapeAnswers } from './output.ts'
import { sendEnding, sendForm, sendWaiting, sendWords, showFormError } from './page.ts'
import { progressOf, SHOWN, TAKEN } from './responses.ts'

const OneToken = v.object({ token: v.pipe(v.string(), v.maxLength(1_000, 'is too long')) })
const Looks = v.object({ n: v.optional(v.pipe(v.string(), v.regex(/^\d$/, 'must be a digit')), '0') })

/** For how long a page that waits is held, and how often it looks within that time. */
const HOLD_MS = 4_000
const LOOK_MS = 500

/** The seconds after which a page looks again, the longer the more often it has looked. */
const AFTER_S = [1, 1, 2, 4, 8, 15, 30]

/** How many pages one process holds, and for one execution and one team. */
const HELD = { ofPerson: 5, ofTeam: 500, ofAll: 2_000 }

/** The pages of forms while their executions go on: those in the middle, and the one that leads on. */
export function createFormStepRoutes(deps: ApiDeps) {
  const { store } = deps
  const readAnswers = createAnswerReader(deps)
  const hold = createHold(deps)
  const shared = { tag: 'Forms', role: 'public', params: OneToken, showError: showFormError } as const
  const leadOn = (c: Context<AppEnv>, { place }: FormStep) =>
    c.redirect(progressOf(store, place.executionId), 303)
  return new Hono<AppEnv>()
    .get(
      '/form/:token',
      accept({
        id: 'showFormStep',
        summary: "Show a form's page by its one-time address",
        description: 'The page of a FORM node; its address is in `$execution.resumeUrls.<node id>`.',
        ...shared,
        responses: { ...SHOWN, 303: TAKEN[303] },
      }),
      async (c) => {
        const step = await readFormStep(store, c.req.valid('param').token)
        c.set('teamId', step.teamId)
        if (step.status === 'OPEN') {
          const { page } = step
          const texts = startTexts(page.form, c.req.queries())
          return sendForm(c, 200, page, { texts, faults: new Map(), submission: null })
        }
        return step.status === 'EXPIRED' ? sendLate(c) : leadOn(c, step)
      },
    )
    .post(
      '/form/:token',
      accept({
        id: 'sendFormStep',
        summary: "Send a form's page by its one-time address",
        description: 'Once; what is sent again leads on to the page that follows.',
        anyBody: true,
        ...shared,
        responses: TAKEN,
      }),
      async (c) => {
        // Before the body is read: only those who have the address have it parsed.
        const step = await readFormStep(store, c.req.valid('param').token)
        c.set('teamId', step.teamId)
        if (step.status === 'EXPIRED') return sendLate(c)
        if (step.status !== 'OPEN') return leadOn(c, step)
        const { page, teamId, workflowId, place, timezone, draft: test } = step
        const shape = await readShape(deps, step)
        const asker = { form: page.form, teamId, workflowId, timezone }
        const { texts, values, faults, files } = await readAnswers(c, asker)
        if (faults.size > 0) return sendForm(c, 400, page, { texts, faults, submission: null })
        const data = shapeAnswers(shape, { form: page.form, values, test, timezone })
        try {
          const errand = await answerFormStep(store, step, { data, files }, readOrigin(c))
          if (errand) await carryOutErrands(deps, [errand])
          else await removeStored(store, files)
          return c.redirect(progressOf(store, place.executionId), 303)
        } catch (error) {
          await removeStored(store, files)
          if (!(error instanceof Fault) || error.code === 'NOT_FOUND') throw error
          const status = error.code === 'CONFLICT' ? 409 : error.code === 'TOO_LARGE' ? 413 : 503
          return sendForm(c, status, page, { texts, faults, problem: error.message, submission: null })
        }
      },
    )
    .get(
      '/form-progress/:token',
      accept({
        id: 'followForm',
        summary: 'Go on after a form was sent',
        description:
          'Leads on to the next page that waits, or shows the last one; until then it waits some seconds, and the browser ' +
          'looks again by itself.',
        query: Looks,
        ...shared,
        responses: { ...SHOWN, 303: TAKEN[303] },
      }),
      async (c) => {
        const { token } = c.req.valid('param')
        const progress = await hold(c, token)
        c.set('teamId', progress.teamId)
        const { open, ending, ended } = progress
        if (open) return c.redirect(`/form/${makePlaceToken(store.keys, 'form', open)}`, 303)
        if (ending?.show === 'output') return sendEnding(c, ending, await readOutput(deps, progress))
        if (ending) return sendEnding(c, ending)
        if (ended !== null) return sendFailed(c)
        const looked = Math.min(Number(c.req.valid('query').n), AFTER_S.length - 1)
        return sendWaiting(c, { again: `/form-progress/${token}?n=${looked + 1}`, after: AFTER_S[looked]! })
      },
    )
}

/** Reads where a person is, and holds the request for a moment if they are nowhere yet. */
function createHold(deps: ApiDeps) {
  const seats = createSeats('forms', HELD)
  return async (c: Context<AppEnv>, token: string): Promise<FormProgress> => {
    const isThere = ({ open, ending, ended }: FormProgress) =>
      open !== null || ending !== null || ended !== null
    const first = await readFormProgress(deps.store, token)
    if (isThere(first)) return first
    const leave = takeSeat(first)
    if (!leave) return first
    try {
      const request = c.req.raw.signal
      for (
        const until = Date.now() + HOLD_MS;
        Date.now() < until && !request.aborted && !deps.bus.stopping.aborted;
      ) {
        const found = await waitFor(deps.bus, first.executionId, { ms: LOOK_MS, request }, async () => {
          const now = await readFormProgress(deps.store, token)
          return isThere(now) ? now : undefined
        })
        if (found) return found
      }
      return first
    } finally {
      leave()
    }
  }

  /** Without a seat the page is not held, and looks again all the same. */
  function takeSeat({ executionId, teamId }: FormProgress): (() => void) | undefined {
    try {
      return seats.take(executionId, teamId)
    } catch {
      return undefined
    }
  }
}

/** The shape of what a page's node outputs. */
async function readShape({ store }: ApiDeps, { place, workflowId, version }: FormStep): Promise<unknown> {
  const { nodes } = await readVersion(store, workflowId, version)
  return nodes.find(({ id }) => id === place.nodeId)?.config.shape
}

async function readOutput({ store }: ApiDeps, { executionId, teamId }: FormProgress): Promise<unknown> {
  const actor = { kind: 'SYSTEM', id: null, name: 'form' } as const
  const { outputData } = await readExecution(serviceScope(store, actor, [[teamId, 'VIEWER']]), executionId)
  return outputData ?? undefined
}

function sendLate(c: Context<AppEnv>): Response {
  return sendWords(
    c,
    409,
    'The time is over',
    'This page could be filled in until a certain time, which is over.',
  )
}

function sendFailed(c: Context<AppEnv>): Response {
  return sendWords(
    c,
    200,
    'Something went wrong',
    'Your answers have arrived, but what was to be done with them did not come to its end. The team whose form this is can see why.',
  )
}
