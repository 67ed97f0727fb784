import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { Hono } from 'hono'
import { html } from 'hono/html'
import { missing } from '../../db/fault.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { hasState } from '../http/tags.ts'
import { ByKey } from './public.ts'
import { makePageToken, openWidget, readOpenWidget } from './visitors.ts'

/** The parts of the script, each after those that it imports from. */
const PARTS = ['dom.js', 'markdown.js', 'style.js', 'talk.js', 'panel.js', 'widget.js']

/** Pages may keep the script for five minutes, and show the one they have while they ask for another. */
const CACHING = 'public, max-age=300, stale-while-revalidate=86400'

/**
 * The script as one text, which runs by itself. Its parts are modules for the type checker and the reader; a page with
 * one `<script src>` needs them in one file, and with `document.currentScript`, which modules do not have.
 */
export function joinScript(): string {
  const parts = PARTS.map((name) =>
    readFileSync(new URL(`embed/${name}`, import.meta.url), 'utf8')
      .replace(/^import\s[^;]*?from '\.\/[\w.]+'\n/gm, '')
      .replace(/^export /gm, ''),
  )
  return `(() => {\n'use strict'\n${parts.join('')}})()\n`
}

/** The script that shows a widget on other people's pages, and the service's own page of one, for frames. */
export function createEmbedRoutes(deps: ApiDeps) {
  const script = Buffer.from(joinScript())
  const zipped = Buffer.from(gzipSync(script, { level: 9 }))
  const tag = `"${createHash('sha256').update(script).digest('base64url').slice(0, 22)}"`
  return new Hono<AppEnv>()
    .get('/widget.js', (c) => {
      c.header('Content-Type', 'text/javascript; charset=utf-8')
      c.header('Cache-Control', CACHING)
      c.header('ETag', tag)
      c.header('Vary', 'Accept-Encoding')
      c.header('Cross-Origin-Resource-Policy', 'cross-origin')
      // For pages that name the hash of the script, which browsers check with CORS only.
      c.header('Access-Control-Allow-Origin', '*')
      c.header('Access-Control-Allow-Credentials', undefined)
      if (hasState(c, tag)) return c.body(null, 304)
      if (!/\bgzip\b/.test(c.req.header('accept-encoding') ?? '')) return c.body(script)
      c.header('Content-Encoding', 'gzip')
      return c.body(zipped)
    })
    .use('/widget/:key', openWidget(deps))
    .get(
      '/widget/:key',
      accept({
        id: 'showWidgetPage',
        tag: 'Widgets',
        summary: "Show a widget's own page, for a frame",
        description: "Only pages of the widget's origins may show it in a frame.",
        role: 'public',
        guard: (c) => {
          if (!c.get('widget')) throw missing('widget')
        },
        params: ByKey,
        responses: { 200: { description: 'The page', type: 'text/html' } },
      }),
      async (c) => {
        const widget = readOpenWidget(c)
        const { allowedOrigins, key, theme } = widget
        c.header('X-Frame-Options', undefined)
        c.header('Content-Security-Policy', writePolicy(allowedOrigins))
        const page = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${theme.title}</title>
</head>
<body>
<script src="/widget.js" data-key="${key}" data-page="${await makePageToken(deps, widget)}"></script>
</body>
</html>`
        return c.html(page)
      },
    )
}

/** The styles are made by the script, as sheets of their own, for which no policy is needed. */
function writePolicy(origins: string[]): string {
  return [
    "default-src 'none'; script-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'",
    `frame-ancestors ${origins.join(' ') || "'none'"}`,
    "require-trusted-types-for 'script'; trusted-types 'none'",
  ].join('; ')
}
