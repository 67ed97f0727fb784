import { html, raw } from 'hono/html'
import { writePagePolicy } from '../http/pagepolicy.ts'

const STYLE = `
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 12vh auto 0; max-width: 34rem; padding: 0 1.5rem }
h1 { font-size: 1.4rem }
`

/** The page loads nothing and runs nothing. */
export const CONNECT_PAGE_POLICY = writePagePolicy(STYLE, { sends: false })

/** The page for a person who comes back from an authorization server. Its texts are our own, or names out of rows. */
export function renderConnectPage(title: string, lines: string[]): string {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Perdure</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${lines.map((line) => html`<p>${line}</p>`)}
<p><a href="/">To the console</a></p>
</main>
</body>
</html>`
  return String(page)
}
