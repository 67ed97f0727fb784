import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Hono } from 'hono'
import type { RouterRoute } from 'hono/types'
import * as v from 'valibot'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { createGuideRoutes } from './guide.ts'
import { type ApiDocument, describeApi } from './openapi.ts'
import { renderPage } from './page.ts'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
const { version } = JSON.parse(read('../../package.json')) as { version: string }
const STYLE = read('docs.css')
const SCRIPT = read('docs.js')

const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const POLICY = [
  "default-src 'none'",
  "img-src 'self'",
  `style-src ${hash(STYLE)}`,
  `script-src ${hash(SCRIPT)}`,
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/** The OpenAPI document, a page that shows it without loading anything else, and the guide. */
export function createDocsRoutes(deps: ApiDeps, routes: () => RouterRoute[]) {
  let document: ApiDocument | undefined
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
        summary: 'Read this OpenAPI document',
        role: 'public',
        responses: {
          200: {
            description: 'The document, in OpenAPI 3.1',
            schema: v.looseObject({ openapi: v.literal('3.1.0') }),
          },
        },
      }),
      (c) => c.json(describe()),
    )
    .get(
      '/api/docs',
      accept({
        id: 'readDocs',
        tag: 'Operation',
        summary: 'Read this document as a web page',
        role: 'public',
        responses: { 200: { description: 'The page', type: 'text/html' } },
      }),
      (c) => {
        page ??= renderPage(describe(), { style: STYLE, script: SCRIPT, address: deps.publicUrl })
        c.header('Content-Security-Policy', POLICY)
        return c.html(page)
      },
    )
    .route('/', createGuideRoutes())
}
