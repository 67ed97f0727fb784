import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { GUIDE_CONTENTS } from '../../../api/docs/guide.ts'
import { translateSchema } from '../../../api/docs/jsonschema.ts'
import { nameAnchor } from '../../../api/docs/markdown.ts'
import { ACCOUNT_ACTS, ACTS } from '../../../db/acts.ts'
import { CREDENTIAL_TYPE_NAMES, credentialKind } from '../../../db/credentials/types.ts'
import { FAILURE_TYPES } from '../../../workflows/nodes/failures.ts'
import { NODES } from '../../../workflows/nodes/nodes.ts'
import type { NodeType } from '../../../workflows/nodes/nodetype.ts'
import { type Running, startRunning } from '../../support/running.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const FOLDER = 'api/docs/guide'
const NAMES = GUIDE_CONTENTS.flatMap(({ chapters }) => chapters)

/** A fenced block. `info` is the info string of its fence: `sh run`, `json answer`. */
type Block = { at: string; info: string; text: string }
type Text = { path: string; markdown: string; prose: string; blocks: Block[] }

const texts = ['README.md', ...NAMES.map((name) => `${FOLDER}/${name}.md`)].map(readText)
const readme = texts[0]!

function readText(path: string): Text {
  const markdown = readFileSync(join(ROOT, path), 'utf8')
  const blocks: Block[] = []
  let prose = ''
  let open: Block | undefined
  for (const [i, line] of markdown.split('\n').entries()) {
    if (!line.startsWith('```')) {
      if (open) open.text += `${line}\n`
      else prose += `${line}\n`
      continue
    }
    if (open) blocks.push(open)
    open = open ? undefined : { at: `${path}:${i + 1}`, info: line.slice(3).trim(), text: '' }
  }
  return { path, markdown, prose, blocks }
}

const shell = texts.flatMap(({ blocks }) => blocks.filter(({ info }) => /^(sh|bash|shell)\b/.test(info)))
const runnable = texts.filter(({ blocks }) => blocks.some(({ info }) => info === 'sh run'))

/**
 * The block with which the README and the first chapter let a reader set the variables of all other blocks.
 */
const isSetup = ({ info, text }: Block) => info === 'sh' && text.startsWith('API=')
const setup = readme.blocks.find(isSetup)!.text

describe('the Markdown files', () => {
  test('the table of actions in the chapter of the audit names every act, and no other', () => {
    const { markdown } = texts.find(({ path }) => path.endsWith('/audit.md'))!
    const section = markdown.split('## What is recorded')[1]!.split('\n## ')[0]!
    const rows = section.split('\n').filter((line) => line.startsWith('| `'))
    const named = rows.flatMap((line) =>
      [...line.split('|')[1]!.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name),
    )
    expect(named.sort()).toEqual([...new Set([...Object.keys(ACTS), ...Object.keys(ACCOUNT_ACTS)])].sort())
  })

  test('the table of contents lists every chapter', async () => {
    const files = (await readdir(join(ROOT, FOLDER))).filter((name) => name.endsWith('.md'))
    expect(files.sort()).toEqual(NAMES.map((name) => `${name}.md`).sort())
  })

  test('every chapter has one title, and begins with what a reader can do after it', () => {
    for (const { path, markdown, prose } of texts.slice(1)) {
      const titles = [...prose.matchAll(/^# .+$/gm)]
      expect([path, titles.length]).toEqual([path, 1])
      expect([path, markdown]).toEqual([
        path,
        expect.stringMatching(/^# .+\n\nAfter this chapter you (can|know) .+/),
      ])
    }
  })

  test('a block that calls curl is marked as run, so that it is run here, or as example', () => {
    const marks = shell.filter(({ text }) => /\bcurl\b/.test(text)).map(({ at, info }) => ({ at, info }))
    expect(marks.length).toBeGreaterThan(20)
    expect(marks.filter(({ info }) => info !== 'sh run' && info !== 'sh example')).toEqual([])
    const known = /^(sh( run| example)?|json( answer)?|ts|python|text|)$/
    const infos = texts.flatMap(({ blocks }) => blocks.map(({ at, info }) => ({ at, info })))
    expect(infos.filter(({ info }) => !known.test(info))).toEqual([])
  })

  test.each(shell)('$at is valid shell syntax', async ({ text }) => {
    expect(await bash(['-n'], text)).toMatchObject({ code: 0, err: '' })
  })

  test('every block of JSON parses', () => {
    for (const { at, info, text } of texts.flatMap(({ blocks }) => blocks)) {
      if (info.startsWith('json')) expect(() => JSON.parse(text), at).not.toThrow()
    }
  })

  test('every link within the repository leads to a file, and every anchor to a heading of it', () => {
    const headings = new Map(
      texts.map(({ path, prose }) => {
        const found = [...prose.matchAll(/^##+ (.+)$/gm)]
        const ids = found.map(([, heading]) => nameAnchor(heading!))
        expect([path, ids]).toEqual([path, [...new Set(ids)]])
        return [path, ids]
      }),
    )
    const broken = texts.flatMap(({ path, prose }) =>
      [...prose.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link]) => {
        if (/^https?:/.test(link!)) return []
        const [file = '', anchor] = link!.split('#')
        const to = file === '' ? path : join(dirname(path), file)
        const there = headings.has(to) || isFile(to)
        return there && (!anchor || headings.get(to)?.includes(anchor)) ? [] : [`${path}: ${link}`]
      }),
    )
    expect(broken).toEqual([])
  })

  test('the chapter on nodes names every type with all its settings', () => {
    const { prose } = texts.find(({ path }) => path.endsWith('/nodes.md'))!
    const sections = new Map(
      prose.split(/^###? /m).map((section) => [section.slice(0, section.indexOf('\n')), section]),
    )
    for (const [type, { config }] of Object.entries<NodeType>(NODES)) {
      const { properties = {} } = translateSchema(config) as { properties?: object }
      const section = sections.get(type) ?? ''
      const missing = Object.keys(properties).filter((key) => !section.includes(`\`${key}\``))
      expect(section, `nodes.md has no section "### ${type}"`).not.toBe('')
      expect(missing, `the section "### ${type}" of nodes.md must name these in backticks`).toEqual([])
    }
  })

  test('the chapter on credentials names every type with all its keys', () => {
    const { prose } = texts.find(({ path }) => path.endsWith('/credentials.md'))!
    const rows = prose.split('\n').filter((line) => line.startsWith('| `'))
    for (const type of CREDENTIAL_TYPE_NAMES) {
      const row = rows.find((line) => line.split('|')[1]!.includes(`\`${type}\``)) ?? ''
      const missing = Object.keys(credentialKind(type).data.entries).filter(
        (key) => !row.includes(`\`${key}\``),
      )
      expect([type, missing]).toEqual([type, []])
    }
  })

  test('the chapter on nodes names only failure types that exist', () => {
    const { prose } = texts.find(({ path }) => path.endsWith('/nodes.md'))!
    const line = prose.split('\n').find((text) => text.startsWith('The `type` of an error'))!
    const named = [...line.matchAll(/`([A-Z]\w+)`/g)].map(([, type]) => type!)
    expect(named.length).toBeGreaterThan(15)
    const known: readonly string[] = FAILURE_TYPES
    expect(named.filter((type) => !known.includes(type) && !/^Http\d{3}$/.test(type))).toEqual([])
  })

  test('the chapter on configuration names every setting', () => {
    const { prose } = texts.find(({ path }) => path.endsWith('/configuration.md'))!
    const source = readFileSync(join(ROOT, 'worker/environment.ts'), 'utf8')
    const names = [...source.matchAll(/^ {2}([A-Z][A-Z_]+): /gm)].map(([, name]) => name!)
    expect(names.length).toBeGreaterThan(30)
    expect(names.filter((name) => !prose.includes(`\`${name}\``))).toEqual([])
  })

  test("the README's table names every node type", () => {
    const { prose } = texts.find(({ path }) => path === 'README.md')!
    const table = prose.split('\n').filter((line) => line.startsWith('|'))
    const named = new Set(table.flatMap((line) => line.split('|')[1]!.match(/[A-Z_]{2,}/g) ?? []))
    expect(Object.keys(NODES).filter((type) => !named.has(type))).toEqual([])
  })

  test('the README is at most 130 lines long and links to every chapter', () => {
    expect(readme.markdown.split('\n').length).toBeLessThanOrEqual(130)
    for (const name of NAMES) expect(readme.markdown).toContain(`(${FOLDER}/${name}.md)`)
    const others = texts.slice(1).flatMap(({ blocks }) => blocks.filter(isSetup))
    expect(others.map(({ text }) => text)).toEqual([setup])
  })
})

describe('on a running service', () => {
  let host: Running
  let address: string
  let folder: string
  beforeAll(async () => {
    host = await startRunning()
    address = await host.listen()
    // The folder as `npm start` leaves it.
    folder = mkdtempSync(join(tmpdir(), 'perdure-guide-'))
    const example = await host.create({ nodes: [{ id: 'start', type: 'MANUAL_TRIGGER' }], edges: [] })
    mkdirSync(join(folder, '.perdure'))
    writeFileSync(join(folder, '.perdure/token'), await host.token('BUILDER'))
    writeFileSync(
      join(folder, '.perdure/example.json'),
      `${JSON.stringify({ workflowId: example, teamId: host.teamId })}\n`,
    )
  })
  afterAll(async () => {
    await host?.stop()
    if (folder) rmSync(folder, { recursive: true })
  })

  test.each(runnable)(
    'the commands of $path work unchanged, and print the responses that it shows',
    async ({ blocks }) => {
      const mark = `--- ${crypto.randomUUID()} ---`
      const runs = blocks.flatMap((block, at) =>
        block.info === 'sh run' ? [{ block, next: blocks[at + 1] }] : [],
      )
      const lines = runs.map(({ block }) => `${block.text}\nprintf '%s\\n' '${mark}'\n`)
      const begin = setup.replace('http://127.0.0.1:3000', address)
      expect(begin).toContain(address)
      const { code, out, err } = await bash([], `set -euo pipefail\n${begin}\n${lines.join('')}`, folder)
      const outputs = out.split(`${mark}\n`)
      const reached = runs[outputs.length - 1]?.block.at
      expect({ code, err, reached, out: outputs.at(-1) }).toEqual({
        code: 0,
        err: '',
        reached: undefined,
        out: '',
      })
      for (const [i, { block, next }] of runs.entries()) {
        if (next?.info === 'json answer')
          compare(JSON.parse(next.text), findJson(outputs[i]!, block.at), next.at)
      }
    },
  )

  test('the service serves the contents of the guide, and every chapter as a page and as Markdown', async () => {
    const contents = await (await host.request('/api/docs/guide')).text()
    for (const [i, name] of NAMES.entries()) {
      const path = `/api/docs/guide/${name}`
      expect(contents).toContain(`href="${path}"`)
      const response = await host.request(path)
      expect([name, response.status, response.headers.get('content-type')]).toEqual([
        name,
        200,
        'text/html; charset=UTF-8',
      ])
      const policy = response.headers.get('content-security-policy')
      expect(policy).toContain("default-src 'none'")
      expect(policy).not.toContain('unsafe')
      const page = await response.text()
      const next = NAMES[i + 1]
      if (next) expect(page).toContain(`rel="next" href="/api/docs/guide/${next}"`)
      const markdown = await host.request(`${path}.md`)
      expect(markdown.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
      expect(await markdown.text()).toBe(readFileSync(join(ROOT, FOLDER, `${name}.md`), 'utf8'))
    }
  })

  test('a page loads nothing from other origins, and every link on it works', async () => {
    const seen = new Set<string>()
    for (const path of ['/api/docs/guide', ...NAMES.map((name) => `/api/docs/guide/${name}`)]) {
      const page = await (await host.request(path)).text()
      expect(page).not.toMatch(
        /<script|<link(?! rel="icon" href="\/console\/icon\.svg")|<[^>]+\s(?:style|on\w+)=/,
      )
      expect(/<style>([\s\S]*?)<\/style>/.exec(page)![1]).not.toMatch(/@import|url\(/)
      const ids = new Set([...page.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id))
      for (const [, name, to] of page.matchAll(/\b(src|href)="([^"]+)"/g)) {
        if (to!.startsWith('#')) expect([path, to, ids.has(to!.slice(1))]).toEqual([path, to, true])
        else if (name === 'src' || !/^https?:/.test(to!)) seen.add(to!)
      }
    }
    for (const to of seen) expect([to, (await host.request(to)).status]).toEqual([to, 200])
    const policy = (await host.request('/api/docs/guide')).headers.get('content-security-policy')
    expect(policy).toContain("img-src 'self'")
  })

  test('unknown chapters and images are 404 with the usual body, and the guide does not count against a rate limit', async () => {
    const paths = ['nothing', 'nothing.md', '.md', 'images/nothing.png', 'images/..%2fapi.md', '..%2fdocs.ts']
    for (const path of paths) {
      const { status, body } = await host.call('GET', `/api/docs/guide/${path}`)
      expect([path, status, body.error]).toEqual([path, 404, 'Not Found'])
    }
    const left = async () =>
      Number((await host.request('/api/docs/guide/nodes')).headers.get('x-ratelimit-remaining'))
    expect(await left()).toBe(await left())
  })

  test('the page of the API and the console link to the guide', async () => {
    expect(await (await host.request('/api/docs')).text()).toContain('href="/api/docs/guide"')
    const page = await (await host.request('/')).text()
    const scripts = [...page.matchAll(/src="\.(\/console\/[^"]+\.js)"/g)].map(([, path]) => path!)
    const texts = await Promise.all(scripts.map(async (path) => (await host.request(path)).text()))
    expect(texts.join('')).toContain('/api/docs/guide')
  })
})

function bash(args: string[], script: string, cwd = ROOT) {
  const child = spawn('bash', [...args, '-c', script], {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (part) => (out += part))
  child.stderr.on('data', (part) => (err += part))
  return new Promise<{ code: number | null; out: string; err: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, out, err })),
  )
}

function isFile(path: string): boolean {
  try {
    return readFileSync(join(ROOT, path)).length > 0
  } catch {
    return false
  }
}

/** The JSON object or array at the end of an output. */
function findJson(output: string, at: string): unknown {
  for (const { index } of output.matchAll(/[{[]/g)) {
    try {
      return JSON.parse(output.slice(index))
    } catch {
      // Not the beginning of the JSON, or more output follows it.
    }
  }
  throw new Error(`${at} printed no JSON: ${output}`)
}

const CHANGES = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^\d{4}-\d\d-\d\dT\d\d:\d\d/

/**
 * Expects that the real response has everything that the guide shows. Values must be equal, except for ids,
 * times and durations. A shown string that ends in … matches every string with that beginning.
 */
function compare(shown: unknown, real: unknown, at: string): void {
  if (Array.isArray(shown)) {
    expect(Array.isArray(real), `${at} is an array`).toBe(true)
    for (const [i, item] of shown.entries()) compare(item, (real as unknown[])[i], `${at}[${i}]`)
  } else if (typeof shown === 'object' && shown !== null) {
    expect(Object.keys(Object(real)), at).toEqual(expect.arrayContaining(Object.keys(shown)))
    for (const [key, value] of Object.entries(shown)) {
      const held = (real as Record<string, unknown>)[key]
      if (key.endsWith('Ms')) expect(typeof held, `${at}.${key}`).toBe(typeof value)
      else compare(value, held, `${at}.${key}`)
    }
  } else if (typeof shown === 'string' && CHANGES.test(shown)) expect(String(real), at).toMatch(CHANGES)
  // An accepted execution may still be PENDING: on a busy machine Temporal starts it a little later.
  else if (shown === 'RUNNING') expect(String(real), at).toMatch(/^(RUNNING|PENDING)$/)
  else if (typeof shown === 'string' && shown.endsWith('…'))
    expect(String(real).startsWith(shown.slice(0, -1)), `${at}: ${real}`).toBe(true)
  else expect(real, at).toEqual(shown)
}
