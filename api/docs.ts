import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Hono } from 'hono'
import type { RouterRoute } from 'hono/types'
import * as v from 'valibot'
import { accept } from './accept.ts'
import type { ApiDeps, AppEnv } from './app.ts'
import { type Document, describeApi } from './openapi.ts'
import { renderPage } from './page.ts'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
const { version } = JSON.parse(read('../package.json')) as { version: string }
const STYLE = read('docs.css')
const SCRIPT = read('docs.js')

const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const POLICY = [
  "default-src 'none'",
  `style-src ${hash(STYLE)}`,
  `script-src ${hash(SCRIPT)}`,
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/** The API about itself: its document, and a page that shows it without anything from outside. */
export function createDocsRoutes(deps: ApiDeps, routes: () => RouterRoute[]) {
  let document: Document | undefined
  let page: string | undefined
  const describe = () => {
    document ??= describeApi(routes(), version)
    return document
  }
  return new Hono<AppEnv>()
    .get(
      '/api/openapi.json',
      accept({
        id: 'readOpenApi',
        tag: 'Operation',
        summary: 'This document',
        role: 'public',
        responses: {
          200: { description: 'OpenAPI 3.1', schema: v.looseObject({ openapi: v.literal('3.1.0') }) },
        },
      }),
      (c) => c.json(describe()),
    )
    .get(
      '/api/docs',
      accept({
        id: 'readDocs',
        tag: 'Operation',
        summary: 'This document as a page',
        role: 'public',
        responses: { 200: { description: 'HTML', type: 'text/html' } },
      }),
      (c) => {
        page ??= renderPage(describe(), { style: STYLE, script: SCRIPT, address: deps.publicUrl })
        c.header('Content-Security-Policy', POLICY)
        return c.html(page)
      },
    )
}
