import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { hashEmailToken } from '../../../db/people/mails.ts'
import { missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { PASSWORD } from '../../support/service.ts'

const XSS = '<img src=x onerror="alert(1)"><script>alert(2)</script>"\'><svg onload=alert(3)>'

const host = await keep(startRunning())
const origin = await host.listen()

describe.skipIf(missing)('in a browser', () => {
  const browser = useBrowser(() => origin)
  const { signIn, heading } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('users create a workflow from an example, activate, edit and execute it', async () => {
    await signIn('#/workflows/new')
    await page.getByLabel('New from example').selectOption({ label: 'Choose a branch' })
    const name = `Orders ${randomUUID()}`
    await page.getByLabel('Name').fill(name)
    await page.getByRole('button', { name: 'Create' }).click()
    await heading(name)
    expect(await page.locator('.graph [data-node]').count()).toBe(5)

    await page.getByRole('button', { name: 'Activate' }).click()
    await page.getByRole('button', { name: 'Deactivate' }).waitFor()

    await page.getByRole('link', { name: 'Edit' }).click()
    const graph = page.getByLabel('Graph', { exact: true })
    const text = await graph.inputValue()
    const drawn = JSON.parse(text.replace('"decision": "review"', '"decision": "look twice"'))
    drawn.nodes[0].config.methd = 'PUT'
    await graph.fill(JSON.stringify(drawn))
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('nodes[0].config.methd: the key "methd" is unknown here and was left out').waitFor()
    await heading(name)

    await page.getByRole('button', { name: 'Execute' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Data').fill('{"amount": }')
    await dialog.getByRole('button', { name: 'Execute' }).click()
    await dialog.getByText('This is not JSON').waitFor()
    await dialog.getByLabel('Data').fill('[1]')
    await dialog.getByRole('button', { name: 'Execute' }).click()
    await dialog.locator('.problems').getByText('must be an object').waitFor()
    await dialog.getByLabel('Data').fill('{"amount": 120}')
    await dialog.getByRole('button', { name: 'Execute' }).click()
    await page.locator('.facts [data-status=SUCCESS]').waitFor()

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
    await page.getByLabel('Workflow', { exact: true }).fill(name)
    await page.waitForURL(/workflowId=/)
    await page.locator(`a[href="#/executions/${id}"]`).waitFor()

    // Two filters are changed faster than the page can load: the second must not bring back the first.
    await page.getByLabel('Status').selectOption('FAILED')
    await page.getByText('Nothing found').waitFor()
    await page.locator('.filters').evaluate((filters) => {
      const status = filters.querySelector('#status')
      filters.querySelector('a').click()
      status.value = 'SUCCESS'
      status.dispatchEvent(new Event('change'))
    })
    await page.waitForURL(/#\/executions\?status=SUCCESS$/)
    await page.locator(`a[href="#/executions/${id}"]`).waitFor()
  })

  test('every problem of a graph is shown with its path, and no other edit is overwritten', async () => {
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

  test('the page of an execution shows changes as they happen, and cancels it', async () => {
    const id = await createNamed(
      `Long wait ${randomUUID()}`,
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
    // The page listens to events and makes no requests while there are none. Polling would make one each
    // second.
    const asked: string[] = []
    page.on('request', (request) => void asked.push(request.url()))
    const quiet = async () => {
      asked.length = 0
      await page.waitForTimeout(1_500)
      return asked.filter((url) => url.endsWith(run)).length
    }
    await expect.poll(quiet).toBe(0)
    await page.getByRole('button', { name: 'Cancel execution' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel execution' }).click()
    await page.locator('.facts [data-status=CANCELLED]').waitFor()
    await page.locator('.graph .node.cancelled').waitFor()
    await page.getByRole('button', { name: 'Cancel execution' }).waitFor({ state: 'detached' })
    expect((await host.read(run)).status).toBe('CANCELLED')
  })

  test('executions are retried and rerun where possible, and related executions are linked', async () => {
    const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
    const child = await host.create({ nodes: [{ ...start, type: 'SUB_WORKFLOW_TRIGGER' }], edges: [] })
    const graph = (message: string) => ({
      nodes: [
        start,
        { id: 'sub', type: 'SUB_WORKFLOW', config: { workflowId: child } },
        { id: 'stop', type: 'STOP_AND_ERROR', config: { message } },
      ],
      edges: edges('start -> sub', 'sub -> stop'),
    })
    const id = await host.create(graph('old'))
    const run = await host.execute(id)
    await host.ended(run)
    await host.ask('PUT', `/api/workflows/${id}`, graph('new'))
    await signIn(`#/executions/${run}`)
    await page.getByRole('button', { name: 'Retry from failed nodes' }).click()
    await page.getByRole('dialog').getByLabel('Graph').selectOption('current')
    await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click()
    await page.locator('tr[data-node=sub]').getByText('Taken over').waitFor()
    await page.locator('.facts [data-status=FAILED]').waitFor()
    await page.locator('p.failure').getByText('new').waitFor()
    await page.getByRole('link', { name: run.slice(-12) }).click()
    await page.getByText('Taken up by').waitFor()
    await page.locator('tr[data-node=sub] .marks a').click()
    await page.getByText('Started by').waitFor()
    await page.getByRole('link', { name: run.slice(-12) }).waitFor()
    // A successful execution has no failed node to retry from.
    expect(await page.getByRole('button', { name: 'Retry from failed nodes' }).isVisible()).toBe(false)

    await page.goto(`${origin}/#/executions/${run}`)
    await heading(`Execution ${run.slice(-12)}`)
    await page.getByRole('button', { name: 'Execute again' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Execute again' }).click()
    await page.getByText('Again from').waitFor()
    const again = await host.ended(page.url().split('/').pop()!)
    expect([again.errorMessage, again.workflowVersion]).toEqual(['old', 1])

    const path = `/api/workflows/${id}/execute`
    const data = { teamId: host.teamId, data: {}, pinned: { sub: { output: { pinned: true } } } }
    const { executionId } = await host.ask<{ executionId: string }>('POST', path, data)
    await host.ended(executionId)
    const operator = await host.signUp('OPERATOR')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn(`#/executions/${executionId}`, operator.email)
    await page.locator('tr[data-node=sub]').getByText('Pinned').waitFor()
    // Only a BUILDER may repeat an execution with pinned outputs.
    expect(await page.getByRole('button', { name: /Retry|Execute again/ }).count()).toBe(0)
  })

  test('a new token is shown once, and can be revoked', async () => {
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

  test('what users write is shown as text everywhere, never as HTML', async () => {
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
      // The console's own images come from its files. The text must not have created any element.
      expect(await page.locator('img[src="x"], img[onerror], svg[onload], body script').count()).toBe(0)
    }
  })

  test('members see no buttons for what they may not do, and each team has its own list', async () => {
    const user = await host.signUp('OPERATOR')
    const other = await host.otherTeam()
    await host.store.db
      .insertInto('members')
      .values({ teamId: other.teamId, userId: user.id, role: 'BUILDER' })
      .execute()
    const id = await createNamed(`Only in Default ${randomUUID()}`, [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
    ])
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
