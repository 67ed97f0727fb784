import type { Context } from 'hono'
import { html, raw } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { FormPage } from '../../db/executions/waits/pauses.ts'
import type { FormEnding } from '../../db/forms/pages.ts'
import { type Texts, textsOf } from '../../workflows/graph/formtexts.ts'
import { readRedirect, SUBMISSION_FIELD } from '../../workflows/nodes/forms.ts'
import type { AppEnv } from '../env.ts'
import type { ErrorBody } from '../http/responses.ts'
import { captionOf, idOf, renderField } from './fields.ts'
import { FORM_PAGE_POLICY, FORM_STYLE } from './style.ts'

/** The title of a page that names none. */
const TITLE = 'Form'

/** Sends a page of ours, with texts of users in it, and nothing else of them. */
export function sendPage(
  c: Context<AppEnv>,
  status: ContentfulStatusCode,
  { title, parts }: { title: string; parts: unknown[] },
): Response {
  c.header('Content-Security-Policy', FORM_PAGE_POLICY)
  // Without it a browser names no origin when the form is sent, and is taken for a page of others.
  c.header('Referrer-Policy', 'same-origin')
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<style>${raw(FORM_STYLE)}</style>
</head>
<body>
<main>
${parts}
</main>
</body>
</html>`
  return c.html(String(page), status)
}

/** What a page holds: what was typed, what is wrong with it by field, and what is wrong with all of it. */
export type Filled = {
  texts: Texts
  faults: ReadonlyMap<string, string[]>
  problem?: string
  /** By which it is known that the page is sent twice; null for a page that can be sent once anyway. */
  submission: string | null
}

/** Shows a form with what it holds; the browser sends it to the address that it came from. */
export function sendForm(
  c: Context<AppEnv>,
  status: ContentfulStatusCode,
  { form, ...said }: FormPage,
  { texts, faults, problem, submission }: Filled,
): Response {
  const title = said.title ?? form.title ?? TITLE
  const description = said.description ?? form.description ?? ''
  const fields = Object.entries(form.properties)
  const bringsFiles = fields.some(([, { type }]) => type === 'file')
  const isWrong = faults.size > 0 || problem !== undefined
  const parts = [
    html`<h1>${title}</h1>`,
    description === '' ? '' : html`<p class="said">${description}</p>`,
    isWrong ? renderFaults(fields, faults, problem) : '',
    // Our own words name all faults at once. Files would have to be chosen again, so the browser looks at those forms first.
    html`<form method="post" enctype="${bringsFiles ? 'multipart/form-data' : 'application/x-www-form-urlencoded'}"
 accept-charset="utf-8" ${bringsFiles ? '' : 'novalidate'}>
${fields.map(([name, field], at) =>
  renderField({
    at,
    name,
    field,
    required: form.required.includes(name),
    texts: textsOf(texts, name),
    faults: faults.get(name) ?? [],
  }),
)}
${submission === null ? '' : html`<input type="hidden" name="${SUBMISSION_FIELD}" value="${submission}">`}
<button type="submit">${said.button ?? 'Send'}</button>
</form>`,
  ]
  return sendPage(c, status, { title: isWrong ? `Problem: ${title}` : title, parts })
}

function renderFaults(
  fields: [string, FormPage['form']['properties'][string]][],
  faults: ReadonlyMap<string, string[]>,
  problem: string | undefined,
) {
  const lines = fields.flatMap(([name, field], at) =>
    (faults.get(name) ?? []).map(
      (fault) => html`<li><a href="#${idOf(field, at)}">${captionOf(name, field)}: ${fault}</a></li>`,
    ),
  )
  return html`<div class="faults" role="alert" tabindex="-1" autofocus>
<h2>${problem ?? 'It was not sent yet: some answers need another look'}</h2>
${lines.length > 0 ? html`<ul>${lines}</ul>` : ''}
</div>`
}

/** Shows that the execution works, and looks again in some seconds, in browsers without scripts too. */
export function sendWaiting(
  c: Context<AppEnv>,
  { again, after }: { again: string; after: number },
): Response {
  c.header('Refresh', `${after}; url=${again}`)
  return sendPage(c, 200, {
    title: 'One moment',
    parts: [
      html`<h1>One moment</h1>`,
      html`<p role="status">Your answers have arrived. This page goes on by itself as soon as the next step is ready.</p>`,
      html`<p class="quiet">You may close it, and come back to its address later. <a href="${again}">Look now</a></p>`,
    ],
  })
}

/** Shows the last page. `output` is what the execution has output, where that is to be shown. */
export function sendEnding(c: Context<AppEnv>, ending: FormEnding, output?: unknown): Response {
  const title = ending.title ?? 'Thank you'
  const url = ending.show === 'redirect' && ending.url ? readRedirect(ending.url) : undefined
  if (url !== undefined) {
    // Not by a status: what follows a form may lead nowhere else by the policy of its page.
    c.header('Refresh', `0; url=${url}`)
    return sendPage(c, 200, {
      title,
      parts: [
        html`<h1>${title}</h1>`,
        html`<p role="status">You are being led on to <a href="${url}" rel="noreferrer">${new URL(url).host}</a>.</p>`,
      ],
    })
  }
  const text = ending.text ?? (output === undefined ? 'Your answers have arrived.' : '')
  const shown = typeof output === 'string' ? output : JSON.stringify(output, null, 2)
  return sendPage(c, 200, {
    title,
    parts: [
      html`<h1>${title}</h1>`,
      text === '' ? '' : html`<p class="said" role="status">${text}</p>`,
      output === undefined ? '' : html`<pre tabindex="0">${shown}</pre>`,
    ],
  })
}

/** Shows a page with a few words, such as why something cannot be shown. */
export function sendWords(
  c: Context<AppEnv>,
  status: ContentfulStatusCode,
  title: string,
  text: string,
): Response {
  return sendPage(c, status, { title, parts: [html`<h1>${title}</h1>`, html`<p role="status">${text}</p>`] })
}

const ERRORS: Record<number, [title: string, text: string]> = {
  404: ['There is no such form', 'The address is not whole, or the form is not open at the moment.'],
  413: ['This is too large', ''],
  429: ['Too many at once', ''],
}

/** How errors are shown to people who fill in a form. */
export function showFormError(c: Context<AppEnv>, { status, message, errors }: ErrorBody): Response {
  const [title, text] = ERRORS[status] ?? [
    status >= 500 ? 'The service is not available at the moment' : 'This did not work',
    '',
  ]
  const named = errors?.map((one) => `${one.path} ${one.message}`).join('; ')
  return sendWords(c, status as ContentfulStatusCode, title, text || named || message)
}
