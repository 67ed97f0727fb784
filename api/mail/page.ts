import { html, raw } from 'hono/html'
import type { ChoiceView, MailChoice } from '../../db/mail/choices.ts'
import { writePagePolicy } from '../http/pagepolicy.ts'

const STYLE = `
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 12vh auto 0; max-width: 34rem; padding: 0 1.5rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
form { margin: 0 0 1rem }
button { font: inherit; padding: .5rem 1rem; min-width: 100%; text-align: start }
p { overflow-wrap: anywhere }
`

/** The page loads nothing and runs nothing; its buttons send to this service. */
export const CHOICE_PAGE_POLICY = writePagePolicy(STYLE, { sends: true })

/** The number of characters of a team's name that are shown. */
const MAX_NAME = 60

const SAID = {
  YES: 'You get mails of this team.',
  NO: 'You get no mail of this team.',
  NEVER: 'You get no mail of any team, and no questions whether you want some.',
} as const

/** The label of each button, and the states in which it is of no use. */
const BUTTONS: { choice: MailChoice; label: string; done: ChoiceView['state'][] }[] = [
  { choice: 'yes', label: 'Yes, I want mails of this team', done: ['YES'] },
  { choice: 'stop', label: 'No mails of this team', done: ['NO', 'NEVER'] },
  { choice: 'never', label: 'No mails of any team, and no more questions', done: ['NEVER'] },
]

/**
 * The page where the owner of an address says whether a team's mails may come; `base` is where its buttons lead. The
 * `wanted` one is first.
 */
export function renderChoicePage(view: ChoiceView, base: string, wanted?: MailChoice): string {
  const { address, teamName, state } = view
  const name = teamName.length > MAX_NAME ? `${teamName.slice(0, MAX_NAME)}…` : teamName
  const buttons = BUTTONS.filter(({ done }) => !done.includes(state)).sort(
    (a, b) => Number(b.choice === wanted) - Number(a.choice === wanted),
  )
  return renderPage('Mails of a team', [
    html`<p>The team that calls itself “<bdi>${name}</bdi>” sends, or wants to send, reports or alerts to <bdi>${address}</bdi>.</p>`,
    ...(state === null ? [] : [html`<p role="status"><strong>${SAID[state]}</strong></p>`]),
    ...buttons.map(
      ({ choice, label }) =>
        html`<form method="post" action="${base}${choice}"><button type="submit">${label}</button></form>`,
    ),
  ])
}

/** The page for a link that leads nowhere. */
export function renderUnknownLink(): string {
  return renderPage('This link leads nowhere', [
    html`<p>It is not whole, or the team that it was about is deleted, and sends no mail.</p>`,
  ])
}

function renderPage(title: string, parts: unknown[]): string {
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · Perdure</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${parts}
</main>
</body>
</html>`)
}
