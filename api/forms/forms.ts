import { type Context, Hono } from 'hono'
import * as v from 'valibot'
import type { FormPage } from '../../db/executions/waits/pauses.ts'
import { Fault } from '../../db/fault.ts'
import { findForm, findTestForm, type OpenForm, readFormUser, startForm } from '../../db/forms/triggers.ts'
import { readNetwork } from '../../db/people/network.ts'
import { startTexts } from '../../workflows/graph/formtexts.ts'
import { collectByName } from '../bodies/names.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { startWithFiles } from '../executions/starts/hookcall.ts'
import { accept } from '../http/accept.ts'
import { uuidField } from '../http/fields.ts'
import { carryOutEach } from '../outbox.ts'
import { admitToForm, takeFormPassword } from './access.ts'
import { createAnswerReader } from './body.ts'
import { shapeAnswers } from './output.ts'
import { sendForm, showFormError } from './page.ts'
import { ACCESS_FAULTS, progressOf, SHOWN, TAKEN } from './responses.ts'

const OneForm = v.object({ workflowId: uuidField, path: v.string() })

type Find = (workflowId: string, path: string) => Promise<OpenForm>

/** The pages of forms: at their live addresses, and at those for tests. */
export function createFormRoutes(deps: ApiDeps) {
  const { store } = deps
  const live: Find = (workflowId, path) => findForm(store, workflowId, path)
  const tested: Find = (workflowId, path) => findTestForm(store, workflowId, path)
  const pages = createFormPages(deps)
  const shared = {
    tag: 'Forms',
    role: 'public',
    params: OneForm,
    showError: showFormError,
  } as const
  const read = (c: Context<AppEnv>, find: Find) => {
    const { workflowId, path } = c.req.param() as { workflowId: string; path: string }
    return find(workflowId, path)
  }
  const shows = { ...shared, responses: { ...SHOWN, ...ACCESS_FAULTS } } as const
  const takes = { ...shared, anyBody: true, responses: { ...TAKEN, ...ACCESS_FAULTS } } as const
  const SHOWS =
    'A page of the service, without scripts. What its address has as a query stands in the fields of those names at first.'
  const SENDS =
    'As browsers send forms. The same answers of the same page start one execution, however often they are sent; the ' +
    'response leads to a page that goes on by itself.'
  const OPENS =
    'Leads on to the form, with a cookie for it that holds for 12 hours. Each address may try 20 a minute.'
  return new Hono<AppEnv>()
    .use('/forms/:workflowId/:path/password', countPasswords)
    .use('/forms-test/:workflowId/:path/password', countPasswords)
    .get(
      '/forms/:workflowId/:path',
      accept({ id: 'showForm', summary: 'Show a form', description: SHOWS, ...shows }),
      async (c) => pages.show(c, await read(c, live)),
    )
    .post(
      '/forms/:workflowId/:path',
      accept({ id: 'sendForm', summary: 'Send a form', description: SENDS, ...takes }),
      async (c) => pages.send(c, await read(c, live)),
    )
    .post(
      '/forms/:workflowId/:path/password',
      accept({ id: 'sendFormPassword', summary: "Send a form's password", description: OPENS, ...takes }),
      async (c) => takeFormPassword(deps, c, await read(c, live)),
    )
    .get(
      '/forms-test/:workflowId/:path',
      accept({ id: 'showTestForm', summary: 'Show a form for a test', description: SHOWS, ...shows }),
      async (c) => pages.show(c, await read(c, tested)),
    )
    .post(
      '/forms-test/:workflowId/:path',
      accept({
        id: 'sendTestForm',
        summary: 'Send a form for a test',
        description: SENDS,
        ...takes,
      }),
      async (c) => pages.send(c, await read(c, tested)),
    )
    .post(
      '/forms-test/:workflowId/:path/password',
      accept({
        id: 'sendTestFormPassword',
        summary: "Send a form's password for a test",
        description: OPENS,
        ...takes,
      }),
      async (c) => takeFormPassword(deps, c, await read(c, tested)),
    )
}

/** Passwords count against limits of their own, for each form and address. */
async function countPasswords(c: Context<AppEnv>, next: () => Promise<void>): Promise<void> {
  const { workflowId, path } = c.req.param() as { workflowId: string; path: string }
  const network = readNetwork(c.get('ip'))
  c.set('buckets', [
    { kind: 'IP', id: network },
    { kind: 'FORM_PASSWORD', id: `${workflowId.slice(0, 36)}/${path.slice(0, 100)}/${network}` },
  ])
  await next()
}

function createFormPages(deps: ApiDeps) {
  const { store } = deps
  const readAnswers = createAnswerReader(deps)
  const pageOf = ({ config }: OpenForm): FormPage => ({
    form: config.form,
    title: config.title ?? null,
    description: config.description ?? null,
    button: config.button ?? null,
  })

  async function show(c: Context<AppEnv>, form: OpenForm): Promise<Response> {
    c.set('teamId', form.workflow.teamId)
    const admitted = await admitToForm(deps, c, form)
    if (admitted instanceof Response) return admitted
    const texts = startTexts(form.config.form, c.req.queries())
    return sendForm(c, 200, pageOf(form), { texts, faults: new Map(), submission: crypto.randomUUID() })
  }

  async function send(c: Context<AppEnv>, form: OpenForm): Promise<Response> {
    const { workflow, config, test } = form
    c.set('teamId', workflow.teamId)
    const admitted = await admitToForm(deps, c, form)
    if (admitted instanceof Response) return admitted
    const { timezone } = workflow.settings
    const asker = { form: config.form, teamId: workflow.teamId, workflowId: workflow.id, timezone }
    const { texts, values, faults, files, submission } = await readAnswers(c, asker)
    // A page that is shown again is still the same one: it starts one execution.
    const shown = { texts, submission: submission ?? crypto.randomUUID() }
    if (faults.size > 0) return sendForm(c, 400, pageOf(form), { ...shown, faults })
    const { scope } = admitted
    const output = shapeAnswers(config.shape, {
      form: config.form,
      values,
      query: collectByName(new URL(c.req.url).searchParams),
      user: scope && (await readFormUser(scope)),
      test,
      timezone,
    })
    const by = scope?.actor ?? ({ kind: 'SYSTEM', id: null, name: 'form' } as const)
    try {
      const { executionId, fresh, queued } = await startWithFiles(store, files, () =>
        startForm(store, form, { values, output, files, submission }, { by, ...c.get('trace') }),
      )
      if (fresh && !queued) await carryOutEach(deps, 'START', [executionId])
      return c.redirect(progressOf(store, executionId), 303)
    } catch (error) {
      // It may succeed later: what was typed stays.
      if (!(error instanceof Fault) || !['CONFLICT', 'UNAVAILABLE', 'TOO_LARGE'].includes(error.code))
        throw error
      const status = error.code === 'CONFLICT' ? 409 : error.code === 'TOO_LARGE' ? 413 : 503
      const problem = `It was not sent yet: ${error.message}. Try again in a moment`
      return sendForm(c, status, pageOf(form), { ...shown, faults, problem })
    }
  }

  return { show, send }
}
