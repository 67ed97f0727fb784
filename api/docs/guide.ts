import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { Hono } from 'hono'
import { html, raw } from 'hono/html'
import * as v from 'valibot'
import { Fault } from '../../db/fault.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { type Rendered, renderMarkdown } from './markdown.ts'

const FOLDER = new URL('./guide/', import.meta.url)
const BASE = '/api/docs/guide'

/** The chapters in reading order. Each is the file guide/<name>.md. */
export const GUIDE_CONTENTS: { title: string; chapters: string[] }[] = [
  {
    title: 'Building workflows',
    chapters: [
      'first-workflow',
      'expressions',
      'nodes',
      'credentials',
      'connectors',
      'items',
      'loops-and-waits',
      'triggers',
      'agents',
      'chat',
      'widgets',
      'forms',
      'mcp',
      'files',
      'tables',
      'guardrails',
      'versions',
    ],
  },
  {
    title: 'Working with executions',
    chapters: [
      'recovery',
      'export-and-import',
      'usage',
      'monitoring',
      'telemetry',
      'evaluation',
      'api',
      'people',
      'audit',
      'audit-proof',
    ],
  },
  {
    title: 'Running Perdure',
    chapters: [
      'operating',
      'upgrading',
      'scaling',
      'configuration',
      'security',
      'promises',
      'how-it-works',
      'how-runs-work',
      'how-fairness-works',
      'how-chats-work',
    ],
  },
]

const STYLE = ['docs.css', 'guide.css'].map((name) => read(new URL(name, import.meta.url))).join('')

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "img-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

type Chapter = Rendered & { name: string; markdown: string }

const OneChapter = v.object({
  chapter: v.pipe(
    v.string(),
    v.description('The name of the chapter. With .md at its end, the response is Markdown'),
    v.examples(['first-workflow']),
  ),
})
const OneImage = v.object({ image: v.pipe(v.string(), v.examples(['execution.png'])) })

let guide: ReturnType<typeof renderGuide> | undefined

/** Renders all chapters to HTML, and reads all images. */
function renderGuide() {
  const chapters = GUIDE_CONTENTS.flatMap((part) => part.chapters).map(readChapter)
  const images = readdirSync(new URL('images/', FOLDER)).map(
    (name) => [name, Buffer.from(readFileSync(new URL(`images/${name}`, FOLDER)))] as const,
  )
  return {
    chapters,
    images: new Map(images),
    pages: new Map(chapters.map((chapter, at) => [chapter.name, renderChapter(chapters, at)])),
    contents: renderContents(chapters),
  }
}

/** The guide for users: Markdown files of the repository, rendered when the first service of this process starts. */
export function createGuideRoutes() {
  guide ??= renderGuide()
  const { chapters, images, pages, contents } = guide
  const find = (name: string) => {
    const chapter = chapters.find((chapter) => chapter.name === name)
    if (!chapter) throw new Fault('NOT_FOUND', 'The guide has no such chapter')
    return chapter
  }
  return new Hono<AppEnv>()
    .get(
      BASE,
      accept({
        id: 'listChapters',
        tag: 'Operation',
        summary: 'Read the contents of the guide',
        role: 'public',
        responses: { 200: { description: 'The list of chapters, as a web page', type: 'text/html' } },
      }),
      (c) => c.html(contents, 200, { 'Content-Security-Policy': POLICY }),
    )
    .get(
      `${BASE}/:chapter`,
      accept({
        id: 'readChapter',
        tag: 'Operation',
        summary: 'Read a chapter of the guide',
        role: 'public',
        params: OneChapter,
        responses: {
          200: {
            description: 'The chapter, as a web page or as Markdown',
            type: 'text/html',
            texts: ['text/markdown'],
          },
        },
      }),
      (c) => {
        const { chapter } = c.req.valid('param')
        if (chapter.endsWith('.md')) {
          const { markdown } = find(chapter.slice(0, -'.md'.length))
          return c.body(markdown, 200, { 'Content-Type': 'text/markdown; charset=utf-8' })
        }
        const { name } = find(chapter)
        return c.html(pages.get(name)!, 200, { 'Content-Security-Policy': POLICY })
      },
    )
    .get(
      `${BASE}/images/:image`,
      accept({
        id: 'readImage',
        tag: 'Operation',
        summary: 'Read an image of the guide',
        role: 'public',
        params: OneImage,
        responses: { 200: { description: 'The image', type: 'image/png' } },
      }),
      (c) => {
        const image = images.get(c.req.valid('param').image)
        if (!image) throw new Fault('NOT_FOUND', 'The guide has no such image')
        return c.body(image, 200, { 'Content-Type': 'image/png' })
      },
    )
}

function readChapter(name: string): Chapter {
  const markdown = read(new URL(`${name}.md`, FOLDER))
  return { name, markdown, ...renderMarkdown(markdown, BASE) }
}

function renderContents(chapters: Chapter[]): string {
  const parts = GUIDE_CONTENTS.map(
    ({ title, chapters: names }) =>
      html`<section><h2>${title}</h2><dl>${names.map((name) => {
        const { title, lead } = chapters.find((chapter) => chapter.name === name)!
        const promise = lead.replace(/^After this chapter y/, 'Y')
        return html`<dt><a href="${BASE}/${name}">${title}</a></dt><dd>${promise}</dd>`
      })}</dl></section>`,
  )
  const main = html`<h1>The guide</h1>
<p>How to build workflows with Perdure, and how to run it. The page of <a href="/api/docs">the API</a> has
every field of every route.</p>
${parts}`
  return renderGuidePage('Guide', main, chapters)
}

function renderChapter(chapters: Chapter[], at: number): string {
  const chapter = chapters[at]!
  const [before, after] = [chapters[at - 1], chapters[at + 1]]
  const main = html`${raw(chapter.html)}
<footer>
  ${before ? html`<a rel="prev" href="${BASE}/${before.name}"><small>Previous</small> ${before.title}</a>` : html`<span></span>`}
  ${after ? html`<a rel="next" href="${BASE}/${after.name}"><small>Next</small> ${after.title}</a>` : html`<span></span>`}
</footer>
<p class="source"><a href="${BASE}/${chapter.name}.md">This chapter as Markdown</a></p>`
  return renderGuidePage(chapter.title, main, chapters, chapter)
}

function renderGuidePage(
  title: string,
  main: ReturnType<typeof html>,
  chapters: Chapter[],
  current?: Chapter,
): string {
  const link = (name: string) => {
    const { title, sections } = chapters.find((chapter) => chapter.name === name)!
    if (name !== current?.name) return html`<li><a href="${BASE}/${name}">${title}</a></li>`
    return html`<li><a href="${BASE}/${name}" aria-current="page">${title}</a>
      <ul>${sections.map(({ id, text }) => html`<li><a href="#${id}">${text}</a></li>`)}</ul></li>`
  }
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Perdure guide</title>
<link rel="icon" href="/console/icon.svg" type="image/svg+xml">
<style>${raw(STYLE)}</style>
</head>
<body class="guide">
<nav id="contents" aria-label="Guide">
  <h1><a href="${BASE}">Perdure <small>Guide</small></a></h1>
  <ul class="places"><li><a href="/">Console</a></li><li><a href="/api/docs">API</a></li></ul>
  ${GUIDE_CONTENTS.map(
    ({ title, chapters: names }) =>
      html`<section><h2>${title}</h2><ul>${names.map((name) => link(name))}</ul></section>`,
  )}
</nav>
<main>
<p class="jump"><a href="#contents">All chapters</a></p>
${main}
</main>
</body>
</html>`
  return String(page)
}

function read(url: URL): string {
  return readFileSync(url, 'utf8')
}
