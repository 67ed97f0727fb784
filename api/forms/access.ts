import { createHmac } from 'node:crypto'
import type { Context } from 'hono'
import { html } from 'hono/html'
import { isSameSecret } from '../../db/executions/starts/webhooks.ts'
import { Fault } from '../../db/fault.ts'
import { type OpenForm, openFormPassword } from '../../db/forms/triggers.ts'
import type { Scope } from '../../db/scope.ts'
import { purposeKey } from '../../db/seal.ts'
import { parseForm } from '../bodies/form.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { readBytes } from '../http/body.ts'
import { openCookie, putCookie } from '../people/cookies.ts'
import { sendPage, sendWords } from './page.ts'

/** For how long a password holds once it was typed. */
const HOLDS_MS = 12 * 3_600_000

/** The most bytes of the page that asks for a password. */
const MAX_PASSWORD_BODY = 8 * 1024

const COOKIE = 'perdure_form'

/** Who may see and send a form: `scope` is that of a signed-in member, if it is for members. */
type Admitted = { scope?: Scope }

/**
 * Lets a person through to a form, before anything of a body is read; else returns the page that they see instead.
 */
export async function admitToForm(
  deps: ApiDeps,
  c: Context<AppEnv>,
  form: OpenForm,
): Promise<Admitted | Response> {
  const { access } = form.config
  if (access === 'none') return {}
  if (access === 'members') return admitMember(c, form)
  const password = await openFormPassword(deps.store, form)
  const claims = await openCookie(deps.store.keys, c, COOKIE, 'form')
  const isKnown = claims?.sub === nameForm(form) && claims.mark === markOf(deps, password!)
  return isKnown ? {} : askPassword(c, form, 401)
}

async function admitMember(c: Context<AppEnv>, { workflow }: OpenForm): Promise<Admitted | Response> {
  // Another page could send a form with the session of a member who looks at it.
  if (c.req.method === 'POST' && isForeignPage(c))
    return sendWords(c, 403, 'This did not work', 'The form can only be sent from its own page.')
  const scope = await c
    .get('authenticate')()
    .catch((error) => {
      if (error instanceof Fault && error.code === 'UNAUTHENTICATED') return undefined
      throw error
    })
  if (!scope) {
    return sendPage(c, 401, {
      title: 'Sign in first',
      parts: [
        html`<h1>Sign in first</h1>`,
        html`<p>This form is for members of a team. <a href="/" target="_blank" rel="noopener">Sign in</a>, then load this page again.</p>`,
      ],
    })
  }
  if (scope.roles.has(workflow.teamId)) return { scope }
  return sendWords(c, 403, 'This form is for others', 'It is for members of the team that it belongs to.')
}

function isForeignPage(c: Context): boolean {
  if (/^bearer /i.test(c.req.header('authorization') ?? '')) return false
  const site = c.req.header('sec-fetch-site')
  if (site !== undefined) return site !== 'same-origin'
  const origin = c.req.header('origin')
  return origin !== undefined && URL.parse(origin)?.host !== c.req.header('host')?.toLowerCase()
}

/** Asks for the password; the page leads to takeFormPassword. */
function askPassword(
  c: Context<AppEnv>,
  { config }: OpenForm,
  status: 200 | 401,
  problem?: string,
): Response {
  const title = config.title ?? config.form.title ?? 'Form'
  const isWrong = problem !== undefined
  return sendPage(c, status, {
    title: isWrong ? `Problem: ${title}` : title,
    parts: [
      html`<h1>${title}</h1>`,
      html`<form method="post" action="${pathOf(c)}/password${new URL(c.req.url).search}">
<div class="field"><label for="password">Password</label>
<input type="password" id="password" name="password" autocomplete="current-password" required
${isWrong ? html` aria-invalid="true" aria-describedby="password-wrong" autofocus` : ''}>
${isWrong ? html`<p class="wrong" id="password-wrong" role="alert">${problem}</p>` : ''}</div>
<button type="submit">Go on</button>
</form>`,
    ],
  })
}

/** The path of the form itself, also for the page that takes its password. */
function pathOf(c: Context): string {
  return c.req.path.replace(/\/password$/, '')
}

/** Takes a password, and leads on to the form if it is right. */
export async function takeFormPassword(deps: ApiDeps, c: Context<AppEnv>, form: OpenForm): Promise<Response> {
  const path = pathOf(c)
  const query = new URL(c.req.url).search
  const password = await openFormPassword(deps.store, form)
  if (password === undefined) return c.redirect(path + query, 303)
  const given = parseForm(await readBytes(c, MAX_PASSWORD_BODY)).password
  if (typeof given !== 'string' || !isSameSecret(given, password))
    return askPassword(c, form, 401, 'This is not the password of the form')
  const claims = { mark: markOf(deps, password) }
  const expiresAt = new Date(Date.now() + HOLDS_MS)
  await putCookie(deps, c, COOKIE, { purpose: 'form', subject: nameForm(form), claims, expiresAt, path })
  return c.redirect(path + query, 303)
}

function nameForm({ workflow, node }: OpenForm): string {
  return `${workflow.id}/${node.id}`
}

/** Another password ends what the one before has opened. Who has the cookie cannot guess the password by it. */
function markOf({ store }: ApiDeps, password: string): string {
  return createHmac('sha256', purposeKey(store.keys, 'form password')).update(password).digest('base64url')
}
