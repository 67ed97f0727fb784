import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { TEMPLATES } from '../../../api/console/workflows/templates/templates.ts'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const XSS = '<img src=x onerror="alert(1)">"\'><svg onload=alert(3)>'
const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const PHONE = { width: 390, height: 844 }

const host = await keep(shareRunning())
const origin = await host.listen()

test('every template is saved without a warning', async () => {
  const demo = { teamId: host.teamId, name: `Demo ${randomUUID()}`, type: 'DEMO', data: {} }
  const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', demo)
  for (const { id, make } of TEMPLATES) {
    const json = {
      ...make({ base: origin, credentialId }),
      teamId: host.teamId,
      name: `${id} ${randomUUID()}`,
    }
    const { status, body } = await host.call('POST', '/api/workflows', host.admin, json)
    expect([id, status, body.warnings]).toEqual([id, 201, undefined])
  }
})

describe.skipIf(missing)('the pages of workflows', () => {
  const browser = useBrowser(() => origin, host.user.email)
  const { signIn, heading } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })
  const dialog = () => page.getByRole('dialog')
  const go = async (hash: string, title: string | RegExp) => {
    await page.goto(`${origin}/${hash}`)
    await heading(title)
  }

  test('a newcomer comes from no team to a first execution that has succeeded', async () => {
    const newcomer = await host.signUp()
    const before = Date.now()
    await signIn('', newcomer.email)
    await page.getByLabel('Name').fill('Newcomers')
    await page.getByRole('button', { name: 'Create team' }).click()
    await heading('Welcome to Newcomers')
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Approval' }).click()
    const id = await openedExecution()
    // What it waits for is for the newcomer to decide.
    await page.getByRole('link', { name: /^Approvals/ }).click()
    await page.getByRole('button', { name: /^Approve/ }).click()
    await dialog().getByRole('button', { name: 'Approve' }).click()
    await page.getByText('Nothing to decide').waitFor()
    const ended = await endedAs(newcomer.cookie, id)
    expect([ended.status, ended.outputData]).toEqual(['SUCCESS', { paid: true, amount: 420 }])
    expect(Date.now() - before).toBeLessThan(120_000)
    await page.getByRole('link', { name: 'Home' }).click()
    await heading('Home')
    await page.locator(`a[href="#/executions/${id}"]`).waitFor()
  })

  test('each template makes a workflow that runs as it stands, also a second time', {
    tags: 'long',
  }, async () => {
    const team = await host.otherTeam()
    await signIn('', team.email)
    await heading(/^Welcome to Team /)
    for (const name of ['Webhook to HTTP', 'Scheduled report', 'Loop over a list', 'Chat agent']) {
      await go('#/start', 'New workflow')
      await page.getByRole('button', { name }).click()
      expect([name, (await endedAs(team.cookie, await openedExecution())).status]).toEqual([name, 'SUCCESS'])
    }
    await go('#/start', 'New workflow')
    await page.getByRole('button', { name: 'Loop over a list' }).click()
    const again = await endedAs(team.cookie, await openedExecution())
    expect([again.workflowName, again.outputData]).toEqual(['Send parcels 2', { sent: 7, failed: 1 }])
  })

  test('home counts what ended, and leads into the filtered list', { tags: 'long' }, async () => {
    const name = `Fails ${randomUUID()}`
    const stop = { id: 'stop', type: 'STOP_AND_ERROR', config: { message: 'no' } }
    const workflowId = await create(name, [start, stop], edges('start -> stop'))
    await host.ended(await host.execute(workflowId))
    await signIn('#/')
    await heading('Home')
    const failing = page.getByRole('table', { name: 'Failing workflows' })
    await failing.getByRole('link', { name }).waitFor()
    await page.locator('.chart svg').first().waitFor()
    await expectAccessible(page)
    await page.getByLabel('Period').selectOption('week')
    await page.waitForURL(/period=week/)
    await failing.getByRole('row').filter({ hasText: name }).getByText('1 of 1').click()
    await page.waitForURL(new RegExp(`status=FAILED&workflowId=${workflowId}&from=`))
    await page.getByText('no', { exact: true }).waitFor()
    await page.setViewportSize(PHONE)
    await go('#/', 'Home')
    await failing.waitFor()
    await expectAccessible(page)
    await expectNoSideways()
  })

  test('the list is searched and filtered, and several workflows are changed at once', {
    tags: 'long',
  }, async () => {
    const mark = randomUUID()
    const ids = [await create(`One ${mark}`, [start]), await create(`Two ${mark}`, [start])]
    await create(`Idle ${randomUUID()}`, [start])
    await signIn('#/workflows')
    await heading('Workflows')
    await page.getByLabel('Search').last().fill(mark)
    await page.waitForURL(/search=/)
    await expect.poll(() => page.locator('tbody tr').count()).toBe(2)
    await expectAccessible(page)
    await page.getByLabel('Choose all 2 on this page').check()
    await page.getByRole('button', { name: 'Activate', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Activate' }).click()
    await page.getByText('2 workflows activated').waitFor()
    for (const id of ids) expect((await read(id)).active).toBe(true)
    await page.getByRole('switch', { name: `Two ${mark} is active` }).click()
    await page.getByText(`Two ${mark} is inactive now`).waitFor()
    await page.getByLabel('State').selectOption('true')
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    await page.getByLabel('State').selectOption('')
    await page.getByLabel(`Choose Two ${mark}`).check()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await dialog().getByText('It cannot be undone').waitFor()
    await dialog().getByRole('button', { name: 'Delete' }).click()
    await page.getByText('1 workflow deleted').waitFor()
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    await page.setViewportSize(PHONE)
    await expectAccessible(page)
    await expectNoSideways()
    await page.getByLabel('Search').last().fill(`none ${mark}`)
    await page.getByText('Nothing found').waitFor()
  })

  test('a workflow is executed with data, set, called, exported and deleted from its page', async () => {
    const name = `${XSS} ${randomUUID()}`
    const hook = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'orders' } }
    const nightly = {
      id: 'nightly',
      type: 'SCHEDULE_TRIGGER',
      config: { cron: '0 0 1 1 *', timezone: 'UTC' },
    }
    const greet = { id: 'greet', type: 'SET', name: XSS, config: { values: { got: '{{ $input }}' } } }
    const lines = edges('start -> greet', 'hook -> greet', 'nightly -> greet')
    const id = await create(name, [start, hook, nightly, greet], lines, XSS)
    await signIn(`#/workflows/${id}`)
    await heading(name)
    expect(await page.locator('img[src="x"], img[onerror], svg[onload], body script').count()).toBe(0)
    await page.locator('.graph [data-node=greet] .act').click()
    await page.getByLabel('Node greet').first().waitFor()
    await page.getByText('Answers once the workflow is active').waitFor()
    await page.getByRole('switch').click()
    const year = new Date().getUTCFullYear() + 1
    await page.getByRole('switch', { checked: true }).waitFor()
    await page.reload()
    await page.locator(`[aria-label=Schedules] time[datetime^="${year}-01-01T00:00:00"]`).waitFor()
    await expectAccessible(page)

    await page.getByRole('button', { name: 'Execute' }).click()
    const data = dialog().getByLabel('Data')
    await data.fill('{"amount": }')
    await dialog().getByRole('button', { name: 'Execute' }).click()
    await dialog().getByText('This is not JSON').waitFor()
    await data.fill('[1]')
    await dialog().getByRole('button', { name: 'Execute' }).click()
    await dialog().getByText('must be an object').waitFor()
    await expectAccessible(page)
    await data.fill('{"amount": 120}')
    await dialog().getByRole('button', { name: 'Execute' }).click()
    const run = await host.ended(await openedExecution())
    expect([run.trigger, run.outputData]).toEqual(['MANUAL', { got: { amount: 120 } }])

    await go(`#/workflows/${id}`, name)
    expect(await page.getByText(`curl -sS -X POST ${origin}/hooks/${id}/orders`).count()).toBe(1)
    await page.getByRole('button', { name: 'Send a call now' }).click()
    await page.getByLabel('Body').fill('{"n": 7}')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    const link = page.getByRole('link', { name: 'Open the execution' })
    const called = await host.ended((await link.getAttribute('href'))!.split('/').pop()!)
    expect(called.outputData).toMatchObject({ got: { body: { n: 7 } } })

    await page.getByRole('button', { name: 'Settings' }).click()
    await dialog().getByLabel('Time limit in seconds').fill('90')
    await dialog().getByLabel('Time zone').fill('Nowhere/City')
    await dialog().getByLabel('At most').fill('3')
    await dialog().getByLabel('The outputs of their nodes').uncheck()
    await dialog().getByRole('button', { name: 'Save' }).click()
    await dialog().getByText('must be a time zone').waitFor()
    await expectAccessible(page)
    await dialog().getByLabel('Time zone').fill('Europe/Berlin')
    await dialog().getByRole('button', { name: 'Save' }).click()
    await page.getByText('Settings saved').waitFor()
    expect((await read(id)).settings).toMatchObject({
      timeoutMs: 90_000,
      timezone: 'Europe/Berlin',
      concurrency: { limit: 3, key: null, policy: 'queue' },
      saveData: { inputs: true, outputs: false },
    })

    const leaving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const document = JSON.parse(await readFile((await (await leaving).path())!, 'utf8'))
    expect(document).toMatchObject({ format: 'perdure.workflow', name })
    await dialog().getByText('no secret: none is written into the graph').waitFor()
    await dialog().getByRole('button', { name: 'Close' }).click()
    await page.setViewportSize(PHONE)
    await expectAccessible(page)
    await expectNoSideways()
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Delete workflow' }).click()
    await dialog().getByRole('button', { name: 'Delete' }).click()
    await heading('Workflows')
    expect((await host.request(`/api/workflows/${id}`, { as: host.admin })).status).toBe(404)
  })

  test('two versions are compared on the drawing and field by field, and one is restored', {
    tags: 'long',
  }, async () => {
    const call = { id: 'call', type: 'HTTP_REQUEST', config: { url: 'https://old.example.com' } }
    const id = await create(
      `Versions ${randomUUID()}`,
      [start, call, { id: 'old', type: 'NO_OP' }],
      edges('start -> call', 'call -> old'),
    )
    const changed = { ...call, config: { url: 'https://new.example.com' } }
    await host.ask('PUT', `/api/workflows/${id}`, {
      nodes: [start, changed, { id: 'fresh', type: 'NO_OP', name: XSS }],
      edges: edges('start -> call', 'call -> fresh'),
    })
    await signIn(`#/workflows/${id}/versions`)
    await heading('Version 2, published')
    await page.getByRole('link', { name: 'what it changed' }).click()
    await heading('Version 1 to 2')
    await page.locator('.graph .good[data-node=fresh]').waitFor()
    expect(await page.locator('.graph .bad.dashed[data-node=old]').count()).toBe(1)
    expect(await page.locator('.graph .warn[data-node=call]').count()).toBe(1)
    expect(await page.locator('.graph .edge.good').count()).toBe(1)
    expect(await page.locator('.graph .edge.bad').count()).toBe(1)
    const fields = page.getByRole('region', { name: 'Changed: ' })
    await fields.getByText('config.url').waitFor()
    expect(await fields.locator('.old').textContent()).toContain('https://old.example.com')
    expect(await fields.locator('.new').textContent()).toContain('https://new.example.com')
    await expectAccessible(page)
    await page.setViewportSize(PHONE)
    await expectAccessible(page)
    await expectNoSideways()
    await page.getByRole('button', { name: 'Publish version 1' }).click()
    await dialog().getByRole('button', { name: 'Publish' }).click()
    await page.getByRole('heading', { level: 1, name: 'Version 3, published' }).waitFor()
    await page.locator('.graph [data-node=old]').waitFor()
    expect((await read(id)).nodes.map((node) => node.id)).toEqual(['start', 'call', 'old'])
  })

  test('an n8n workflow is looked at first, then imported, and its problems stay on its page', {
    tags: 'long',
  }, async () => {
    const node = (name: string, type: string, more: object = {}) => ({
      ...{ id: randomUUID(), name, type: `n8n-nodes-base.${type}`, typeVersion: 1, position: [0, 0] },
      parameters: {},
      ...more,
    })
    const document = {
      name: `From n8n ${randomUUID()}`,
      nodes: [
        node('By hand', 'manualTrigger'),
        node('Wait a bit', 'noOp'),
        node(XSS, 'thereIsNoSuchNode'),
        node('Ask', 'httpRequest', {
          parameters: { url: 'https://shop.test', authentication: 'headerAuth' },
          credentials: { httpHeaderAuth: { id: 'abc', name: XSS } },
        }),
        node('Note', 'stickyNote', { parameters: { content: 'Ask Ada' } }),
      ],
      connections: {
        'By hand': { main: [[{ node: 'Wait a bit', type: 'main', index: 0 }]] },
        'Wait a bit': { main: [[{ node: XSS, type: 'main', index: 0 }]] },
        [XSS]: { main: [[{ node: 'Ask', type: 'main', index: 0 }]] },
      },
    }
    const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', {
      ...{ teamId: host.teamId, name: `Shop ${randomUUID()}`, type: 'HTTP_HEADER' },
      data: { name: 'X-Key', value: 'canary' },
    })
    await signIn('#/workflows/import')
    await heading('Import a workflow')
    await page.getByLabel('Or paste the document').fill('{"nodes": 7}')
    await page.getByRole('button', { name: 'See what becomes of it' }).click()
    await page.getByRole('alert').waitFor()
    const buffer = Buffer.from(JSON.stringify(document))
    await page.getByLabel('File').setInputFiles({ name: 'n8n.json', mimeType: 'application/json', buffer })
    const report = page.getByRole('region', { name: 'Report of the import' })
    await report.getByText('4 nodes').waitFor()
    await report.getByText('1 stops').waitFor()
    await report.getByText('Replace these nodes: they stop the execution.').waitFor()
    await report.getByText(XSS, { exact: true }).first().waitFor()
    expect(await page.locator('.graph .node.bad').count()).toBe(1)
    expect(await page.locator('img[src="x"], img[onerror], svg[onload]').count()).toBe(0)
    await expectAccessible(page)
    await page.setViewportSize(PHONE)
    await expectAccessible(page)
    await expectNoSideways()
    const needed = page.getByRole('region', { name: 'Credentials of n8n' })
    await report.getByText('Choose a credential of the type HTTP_HEADER').waitFor()
    await needed.getByLabel(`Credential for ${XSS}`).selectOption(credentialId)
    await report.getByText('Choose a credential of the type HTTP_HEADER').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await heading(document.name)
    const made = await read(new URL(page.url()).hash.split('/').at(-1)!)
    expect(JSON.stringify(made.nodes)).toContain(`"credentialId":"${credentialId}"`)
    await page.getByRole('button', { name: 'What to do' }).click()
    await report.getByText('Replace these nodes').waitFor()
    expect(await page.locator('.graph .node.bad').count()).toBe(1)
    await expectAccessible(page)
  })

  test('members are not offered what they may not do', { tags: 'long' }, async () => {
    const id = await create(`Seen ${randomUUID()}`, [start])
    await signIn(`#/workflows/${id}`, (await host.signUp('OPERATOR')).email)
    await page.getByRole('button', { name: 'Execute' }).waitFor()
    expect(await page.getByRole('button', { name: /Settings|More|Delete/ }).count()).toBe(0)
    expect(await page.getByRole('switch').count()).toBe(0)
    expect(await page.getByRole('link', { name: 'Edit' }).count()).toBe(0)
    await page.getByRole('link', { name: 'Workflows' }).last().click()
    await heading('Workflows')
    await page.getByRole('row').nth(1).waitFor()
    expect(await page.getByRole('link', { name: /New workflow|Import/ }).count()).toBe(0)
    expect(await page.getByRole('checkbox').count()).toBe(0)
  })

  async function create(name: string, nodes: unknown[], lines: unknown[] = [], description = '') {
    const json = { teamId: host.teamId, name, description, nodes, edges: lines }
    return (await host.ask<{ id: string }>('POST', '/api/workflows', json)).id
  }

  type Detail = { active: boolean; settings: object; nodes: { id: string }[] }
  const read = (id: string) => host.ask<Detail>('GET', `/api/workflows/${id}`)

  /** An execution of another team, once it has ended. */
  async function endedAs(as: string, id: string) {
    const response = await host.request(`/api/executions/${id}?waitMs=30000`, { as })
    return (await response.json()) as { status: string; outputData: unknown; workflowName: string }
  }

  async function openedExecution(): Promise<string> {
    await page.waitForURL(/#\/executions\/[0-9a-f-]{36}$/)
    return page.url().split('/').pop()!
  }

  async function expectNoSideways(): Promise<void> {
    const wider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
    expect(wider).toBe(false)
  }
})
