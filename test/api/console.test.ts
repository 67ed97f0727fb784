import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { edges } from '../graphs.ts'
import { type Running, startRunning } from '../running.ts'
import { PASSWORD } from '../service.ts'

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium'
const FLAGS = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
]
const XSS = '<img src=x onerror="alert(1)"><script>alert(2)</script>"\'><svg onload=alert(3)>'

const missing = !existsSync(CHROMIUM)
if (missing && !process.env.CI)
  console.warn(`no browser at ${CHROMIUM}: the console is not tested (CHROMIUM names one)`)

let host: Running
let origin: string

beforeAll(async () => {
  host = await startRunning()
  origin = await host.listen()
})
afterAll(() => host?.stop())

describe('the files', () => {
  test('are served with their types, a strict policy and tags; a known tag is 304 with the same headers', async () => {
    const page = await host.request('/')
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('cache-control')).toBe('no-cache')
    const html = await page.text()
    expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script>|https?:/)
    const named = [...html.matchAll(/(?:src|href)="(console\/[^"]+)"/g)].map(([, path]) => `/${path}`)
    expect(named.length).toBeGreaterThan(3)
    for (const path of ['/', ...named, '/console/graph.js']) {
      const file = await host.request(path)
      expect([path, file.status]).toEqual([path, 200])
      const policy = file.headers.get('content-security-policy')
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("require-trusted-types-for 'script'")
      expect(policy).not.toContain('unsafe')
      expect(file.headers.get('x-content-type-options')).toBe('nosniff')
      const tag = file.headers.get('etag')!
      const again = await host.request(path, { headers: { 'if-none-match': `"old", W/${tag}` } })
      expect([again.status, await again.text()]).toEqual([304, ''])
      for (const name of ['etag', 'content-security-policy', 'cache-control']) {
        expect(again.headers.get(name)).toBe(file.headers.get(name))
      }
    }
    const types = await Promise.all(
      ['main.js', 'base.css', 'icon.svg'].map((name) => host.request(`/console/${name}`)),
    )
    expect(types.map((file) => file.headers.get('content-type'))).toEqual([
      'text/javascript; charset=utf-8',
      'text/css; charset=utf-8',
      'image/svg+xml',
    ])
  })

  test('nothing else in the folder or outside it is served', async () => {
    for (const name of ['jsconfig.json', 'nothing.js', '..%2fapp.ts', '%2e%2e%2fconsole.ts', '__proto__']) {
      expect([name, (await host.request(`/console/${name}`)).status]).toEqual([name, 404])
    }
    expect((await host.request('/console/main.js', { method: 'POST' })).status).toBe(405)
  })

  test('are not counted by the rate limits', async () => {
    const left = async (path: string) =>
      Number((await fetch(origin + path)).headers.get('x-ratelimit-remaining'))
    // The minute may turn between two counted answers: then it is done again.
    await expect
      .poll(async () => {
        const before = await left('/api/nothing')
        for (const path of ['/', '/console/main.js', '/console/base.css']) await left(path)
        return before - (await left('/api/nothing'))
      })
      .toBe(1)
  })
})

describe.skipIf(missing && !process.env.CI)('in a browser', { timeout: 60_000 }, () => {
  let browser: Browser
  let context: BrowserContext
  let page: Page
  let faults: string[]

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS })
  })
  afterAll(() => browser?.close())

  beforeEach(async () => {
    context = await browser.newContext({ viewport: { width: 1280, height: 860 } })
    page = await context.newPage()
    page.setDefaultTimeout(20_000)
    faults = []
    page.on('console', (message) => {
      // The browser itself notes every 4xx; what the page does with it is tested.
      const refused = /^Failed to load resource: the server responded with a status of 4\d\d/.test(
        message.text(),
      )
      if (['error', 'warning'].includes(message.type()) && !refused) faults.push(`console: ${message.text()}`)
    })
    page.on('pageerror', (error) => faults.push(`error: ${error.message}`))
    page.on('dialog', (dialog) => {
      faults.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    context.on('request', (request) => {
      if (new URL(request.url()).origin !== origin) faults.push(`request: ${request.url()}`)
    })
  })

  afterEach(async () => {
    await context?.close()
    expect(faults).toEqual([])
  })

  async function signIn(hash = '', email = 'admin@example.com') {
    await page.goto(`${origin}/${hash}`)
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
  }

  const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()

  test('signs in and out; a wrong password is told', async () => {
    await page.goto(origin)
    await page.getByLabel('E-mail').fill('admin@example.com')
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await heading('Workflows')
    await page.reload()
    await heading('Workflows')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await heading('Sign in to Perdure')
    await page.reload()
    await heading('Sign in to Perdure')
  })

  test('from an example to the output of a node, with a new version and an activation between', async () => {
    await signIn('#/workflows/new')
    await page.getByLabel('New from example').selectOption({ label: 'Choose a branch' })
    await page.getByLabel('Name').fill('Orders of the test')
    await page.getByRole('button', { name: 'Create' }).click()
    await heading('Orders of the test')
    expect(await page.locator('.graph [data-node]').count()).toBe(5)

    await page.getByRole('button', { name: 'Activate' }).click()
    await page.getByRole('button', { name: 'Deactivate' }).waitFor()

    await page.getByRole('link', { name: 'Edit' }).click()
    const graph = page.getByLabel('Graph', { exact: true })
    const text = await graph.inputValue()
    await graph.fill(text.replace('"decision": "review"', '"decision": "look twice"'))
    await page.getByRole('button', { name: 'Save' }).click()
    await heading('Orders of the test')

    await page.getByRole('button', { name: 'Execute' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Data').fill('{"amount": }')
    await dialog.getByRole('button', { name: 'Execute' }).click()
    await dialog.getByText('This is no JSON').waitFor()
    await dialog.getByLabel('Data').fill('[1]')
    await dialog.getByRole('button', { name: 'Execute' }).click()
    await dialog.locator('.problems').getByText('must be an object').waitFor()
    await dialog.getByLabel('Data').fill('{"amount": 120}')
    await dialog.getByRole('button', { name: 'Execute' }).click()
    await page.locator('.facts [data-status=SUCCESS]').waitFor({ timeout: 20_000 })

    await page.locator('tr[data-node=review] button').click()
    await page.getByLabel('Output').filter({ hasText: 'look twice' }).first().waitFor()
    expect(await page.locator('.graph .node.success').count()).toBe(4)
    expect(await page.locator('.graph .node.idle').getAttribute('data-node')).toBe('accept')
    const id = page.url().split('/').pop()!
    const run = await host.read(id)
    expect([run.workflowVersion, run.trigger, run.outputData?.decision]).toEqual([2, 'MANUAL', 'look twice'])

    await page.getByRole('link', { name: 'Executions' }).first().click()
    await page.getByLabel('Status').selectOption('FAILED')
    await page.getByText('Nothing found').waitFor()
    await page.getByRole('link', { name: 'Clear' }).click()
    await page.getByLabel('Workflow', { exact: true }).fill('Orders of the test')
    await page.waitForURL(/workflowId=/)
    await page.locator(`a[href="#/executions/${id}"]`).waitFor()
  })

  test('every problem of a graph is told by its path, and another editor is not overwritten', async () => {
    const name = 'Edited twice'
    const id = await createNamed(name, [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }])
    await signIn(`#/workflows/${id}/edit`)
    const bad = [
      { id: 'a', type: 'SET', config: { values: '{{ broken(' } },
      { id: 'a', type: 'NOTHING' },
    ]
    await page
      .getByLabel('Graph', { exact: true })
      .fill(JSON.stringify({ nodes: bad, edges: [{ source: 'a', target: 'b' }] }))
    await page.getByRole('button', { name: 'Save' }).click()
    const answer = await host.request(`/api/workflows/${id}`, {
      method: 'PUT',
      as: host.admin,
      json: { nodes: bad, edges: [{ source: 'a', target: 'b' }] },
    })
    const { errors } = (await answer.json()) as { errors: { path: string; message: string }[] }
    expect(errors.length).toBeGreaterThan(2)
    const shown = page.locator('.problems li')
    await shown.first().waitFor()
    expect(await shown.allTextContents()).toEqual(errors.map(({ path, message }) => `${path} ${message}`))

    await host.ask('PUT', `/api/workflows/${id}`, { description: 'by somebody else' })
    await page.getByLabel('Graph', { exact: true }).fill('{"nodes": [], "edges": []}')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('alert').filter({ hasText: 'changed since' }).waitFor()
    expect(await host.ask('GET', `/api/workflows/${id}`)).toMatchObject({
      description: 'by somebody else',
      version: 1,
    })
  })

  test('follows a run while it runs, and cancels it', async () => {
    const id = await createNamed(
      'Long wait',
      [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'wait', type: 'WAIT', config: { durationMs: 600_000 } },
      ],
      edges('start -> wait'),
    )
    const run = await host.execute(id)
    await signIn(`#/executions/${run}`)
    await page.locator('.facts [data-status=RUNNING]').waitFor()
    await page.locator('.graph .node.running').waitFor()
    // It is told of news, and asks nothing while there are none: polling would ask each second.
    const asked: string[] = []
    page.on('request', (request) => void asked.push(request.url()))
    const quiet = async () => {
      asked.length = 0
      await page.waitForTimeout(1_500)
      return asked.filter((url) => url.endsWith(run)).length
    }
    await expect.poll(quiet, { timeout: 15_000 }).toBe(0)
    await page.getByRole('button', { name: 'Cancel run' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel run' }).click()
    await page.locator('.facts [data-status=CANCELLED]').waitFor({ timeout: 20_000 })
    await page.locator('.graph .node.cancelled').waitFor()
    expect(await page.getByRole('button', { name: 'Cancel run' }).count()).toBe(0)
    expect((await host.read(run)).status).toBe('CANCELLED')
  })

  test('a run is drawn by the version it followed, also when a newer one stands', async () => {
    const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
    const id = await createNamed('Redrawn', [start, { id: 'old', type: 'NO_OP' }], edges('start -> old'))
    const run = await host.execute(id)
    expect((await host.ended(run)).errorMessage).toBeNull()
    await host.ask('PUT', `/api/workflows/${id}`, {
      nodes: [start, { id: 'new', type: 'NO_OP' }],
      edges: edges('start -> new'),
    })
    await signIn(`#/executions/${run}`)
    await page.getByText('This run follows version 1').waitFor()
    await page.locator('.graph .node.success[data-node=old]').waitFor()
    expect(await page.locator('.graph [data-node=new]').count()).toBe(0)
  })

  test('shows a token once, and revokes it', async () => {
    await signIn('#/tokens')
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name').fill(XSS.slice(0, 60))
    await page.getByLabel('Role').selectOption('Viewer')
    await page.getByRole('button', { name: 'Create' }).click()
    const token = (await page.locator('.secret').textContent())!
    expect((await host.request(`/api/workflows?teamId=${host.teamId}`, { as: token })).status).toBe(200)
    await page.reload()
    await heading('SDK tokens')
    expect(await page.getByText(token).count()).toBe(0)
    await page.getByRole('button', { name: /^Revoke/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('No tokens').waitFor()
    expect((await host.request(`/api/workflows?teamId=${host.teamId}`, { as: token })).status).toBe(401)
  })

  test('what users write stays text wherever it is shown', async () => {
    const name = XSS
    const id = await createNamed(
      name,
      [
        { id: 'start', type: 'MANUAL_TRIGGER', name: XSS, config: {} },
        { id: 'set', type: 'SET', name: XSS, config: { values: { [XSS]: XSS, input: '{{ $input }}' } } },
        { id: 'stop', type: 'STOP_AND_ERROR', name: XSS, config: { message: XSS } },
      ],
      edges('start -> set', 'set -> stop'),
      XSS,
    )
    const run = await host.execute(id, { [XSS]: XSS })
    await host.ended(run)
    await signIn('#/workflows')
    const places = [
      '#/workflows',
      `#/workflows/${id}`,
      `#/workflows/${id}/edit`,
      '#/executions',
      `#/executions/${run}`,
    ]
    for (const place of [
      ...places,
      `#/workflows?search=${encodeURIComponent(XSS)}`,
      `#/executions?workflowId=${id}`,
    ]) {
      await page.goto(`${origin}/${place}`)
      await page.reload()
      await page.locator('h1').waitFor()
      if (place.endsWith(run)) {
        for (const button of await page.locator('.disclose').all()) await button.click()
        await page.locator('.graph .node').first().click()
      }
      expect(await page.locator('body').textContent()).toContain(
        place.endsWith('edit') ? 'Edit workflow' : XSS,
      )
      // The console's own pictures come from its files; nothing else may have been made.
      expect(await page.locator('img[src="x"], img[onerror], svg[onload], body script').count()).toBe(0)
    }
  })

  test('a member who may not is shown no buttons for it; another team has its own list', async () => {
    const user = await host.signUp('OPERATOR')
    const other = await host.otherTeam()
    await host.store.db
      .insertInto('members')
      .values({ teamId: other.teamId, userId: user.id, role: 'BUILDER' })
      .execute()
    const id = await createNamed('Only in Default', [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }])
    await signIn(`#/workflows/${id}`, user.email)
    await page.getByRole('button', { name: 'Execute' }).waitFor()
    expect(await page.getByRole('button', { name: /ctivate|Delete/ }).count()).toBe(0)
    expect(await page.getByRole('link', { name: /Edit|SDK tokens/ }).count()).toBe(0)
    await page.getByLabel('Team').selectOption(other.teamId)
    await page.getByText('No workflows yet').waitFor()
    await page.getByRole('link', { name: 'New workflow' }).waitFor()
  })

  async function createNamed(
    name: string,
    nodes: unknown[],
    lines: unknown[] = [],
    description = '',
  ): Promise<string> {
    const json = { teamId: host.teamId, name, description, nodes, edges: lines }
    return (await host.ask<{ id: string }>('POST', '/api/workflows', json)).id
  }
})
