import { randomUUID } from 'node:crypto'
import type { Page, Route } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import type { ExecutionBody } from '../../support/client.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const set = (id: string, text: string) => ({ id, name: id, type: 'SET', config: { values: { text } } })
const host = await keep(shareRunning())
const origin = await host.listen()

type Run = ExecutionBody & { draft: boolean; until: string | null }
type Stored = { version: number; draftVersion: number | null; active: boolean; name: string }

describe.skipIf(missing)('drafts in the editor', () => {
  const browser = useBrowser(() => origin, host.user.email)
  const { signIn, heading } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })
  const node = (id: string) => page.getByTestId(`rf__node-${id}`)
  const dialog = () => page.getByRole('dialog')
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const state = (text: string) => page.getByRole('status').getByText(text, { exact: true }).waitFor()
  const read = (id: string) => host.ask<Stored>('GET', `/api/workflows/${id}`)
  const publish = (id: string, text: string) =>
    host.ask('PUT', `/api/workflows/${id}`, {
      nodes: [start, set('greet', text)],
      edges: edges('start -> greet'),
    })
  const choose = async (item: string) => {
    await button('More').click()
    await page.getByRole('menuitem', { name: item }).click()
  }

  /** The execution whose page was opened, once it has ended. */
  async function openedRun(): Promise<Run> {
    await page.waitForURL(/#\/executions\/[0-9a-f-]{36}$/)
    return (await host.ended(page.url().split('/').pop()!)) as Run
  }

  async function removeNode(id: string, on = page) {
    await on.getByTestId(`rf__node-${id}`).click()
    await on.keyboard.press('Delete')
    await on.getByTestId(`rf__node-${id}`).waitFor({ state: 'detached' })
  }

  /** A workflow that is live, with a node more than what `publish` makes of it. */
  async function createLive() {
    const nodes = [start, set('greet', 'Hello'), { id: 'last', type: 'NO_OP', config: {} }]
    const id = await host.create({ nodes, edges: edges('start -> greet', 'greet -> last') })
    await host.ask('PUT', `/api/workflows/${id}`, { active: true })
    return id
  }

  test('what is saved goes live when it is published, with what changes and a note', async () => {
    const id = await createLive()
    await signIn(`#/workflows/${id}/edit`)
    await state('Live: version 1')
    await removeNode('last')
    await state('Unsaved changes')
    await page.keyboard.press('Control+s')
    await state('Draft, not live')
    await state('Live is version 1')
    expect(await read(id)).toMatchObject({ version: 1, draftVersion: 2 })
    await expectAccessible(page)
    // A name has no versions.
    const name = `Renamed ${randomUUID()}`
    await page.getByLabel('Name of the workflow').fill(name)
    await page.keyboard.press('Control+s')
    await page.getByText('Saved; it counts at once').waitFor()
    expect(await read(id)).toMatchObject({ name, version: 1, draftVersion: 2 })
    // What is executed here is what one sees; elsewhere it is what is live.
    await button('Execute').click()
    await dialog().getByText('This tries the draft, version 2. Live is version 1.').waitFor()
    await dialog().getByRole('button', { name: 'Execute' }).click()
    expect(await openedRun()).toMatchObject({ workflowVersion: 2, draft: true })
    await page.getByText('A test: it tried version 2').waitFor()
    // What is still loading fades in.
    await page.getByRole('region', { name: /^Graph of/ }).waitFor()
    await expectAccessible(page)
    await page.goto(`${origin}/#/workflows/${id}`)
    await page.getByText('There is a draft that is not: version 2').waitFor()
    await page.getByRole('table', { name: 'Executions' }).getByText('Test').waitFor()
    await button('Execute').click()
    await dialog().getByRole('button', { name: 'Execute' }).click()
    expect(await openedRun()).toMatchObject({ workflowVersion: 1, draft: false })

    // Production moves on, and once more while one is asked.
    await publish(id, 'Good day')
    await page.goto(`${origin}/#/workflows/${id}/edit`)
    await page.getByText('Version 3 was published after this draft').waitFor()
    await expectAccessible(page)
    await button('Publish').click()
    await dialog().getByText('Version 3 was published after this draft').waitFor()
    await dialog().getByRole('region', { name: 'Changed: greet' }).waitFor()
    await expectAccessible(page)
    await publish(id, 'Good night')
    await dialog().getByLabel('Note').fill('Greets shortly')
    await dialog().getByRole('button', { name: 'Publish' }).click()
    await dialog().getByText('changed elsewhere meanwhile').waitFor()
    await dialog().getByText('Good night').waitFor()
    expect((await read(id)).version).toBe(4)
    await dialog().getByRole('button', { name: 'Publish' }).click()
    await state('Live: version 5')
    expect(await read(id)).toMatchObject({ version: 5, draftVersion: null, active: true })
    // Roll-back is to publish an older one.
    await page.goto(`${origin}/#/workflows/${id}/versions`)
    await heading('Version 5, live')
    await page.getByText('Greets shortly').waitFor()
    await button('Publish version 4').click()
    await dialog().getByText('Live is version 5').waitFor()
    await dialog().getByRole('button', { name: 'Publish' }).click()
    await heading('Version 6, live')
  })

  test('what two tabs do to one draft is said, and what cannot be published is marked on its nodes', {
    tags: 'long',
  }, async () => {
    const id = await createLive()
    await host.ask('PUT', `/api/workflows/${id}`, { active: false })
    await signIn(`#/workflows/${id}/edit`)
    await node('last').waitFor()
    const other = await page.context().newPage()
    await other.goto(`${origin}/#/workflows/${id}/edit`)
    await removeNode('last', other)
    await other.keyboard.press('Control+s')
    await other.getByText('Saved as a draft').waitFor()
    await other.close()
    // As when one comes back to the tab.
    await page.evaluate(() => dispatchEvent(new Event('visibilitychange')))
    await page.getByText('The draft was saved elsewhere meanwhile: it is version 2 now.').waitFor()
    await button('Load it').click()
    await node('last').waitFor({ state: 'detached' })
    await page.keyboard.press('Control+z')
    await node('last').waitFor()
    await state('Unsaved changes')
    await page.keyboard.press('Control+Shift+z')

    await removeNode('start')
    // Beside a draft, the switch asks which version is to be live.
    const active = page.getByRole('switch', { name: 'Active' })
    await active.click()
    // The page reads the draft again; until it has, the switch still shows what was.
    const late = (route: Route) => void setTimeout(() => void route.continue(), 2_000)
    await page.route('**/api/workflows/*?version=draft', late, { times: 1 })
    await dialog().getByRole('button', { name: 'Switch on version 1' }).click()
    await state('Draft, not live')
    await state('Live is version 1')
    expect(await node('start').count()).toBe(0)
    await active.click()
    await state('Published is version 1, inactive')
    await active.click()
    await dialog().getByRole('button', { name: 'Publish and switch on' }).click()
    await page.getByRole('region', { name: 'Problems' }).getByText('Not published').waitFor()
    expect(await read(id)).toMatchObject({ version: 1, active: false })
    await choose('Discard the draft')
    await dialog().getByRole('button', { name: 'Discard the draft' }).click()
    await node('last').waitFor()
    await state('Version 1')
    expect(await read(id)).toMatchObject({ version: 1, draftVersion: null })
    await active.click()
    await state('Live: version 1')

    // Those who may not build see what is live, and are offered nothing of this.
    await host.ask('PUT', `/api/workflows/${id}`, { nodes: [start], edges: [], draft: true })
    await button('Sign out').click()
    await signIn(`#/workflows/${id}/edit`, (await host.signUp('OPERATOR')).email)
    await node('last').waitFor()
    await state('Live: version 1')
    expect(await page.getByRole('button', { name: /^(Save|Publish)/ }).count()).toBe(0)
    await page.goto(`${origin}/#/workflows/${id}/versions`)
    await heading('Version 1, live')
    expect(await page.getByRole('button', { name: /Publish/ }).count()).toBe(0)
  })

  test('a new workflow whose first execution is refused is saved once', { tags: 'long' }, async () => {
    await signIn('#/workflows/new')
    await node('start').waitFor()
    await page.getByLabel('Name of the workflow').fill(`Once ${randomUUID()}`)
    await button('Execute').click()
    await dialog().getByLabel('Data').fill('[1]')
    await dialog().getByRole('button', { name: 'Save and execute' }).click()
    await dialog().getByText('must be an object').waitFor()
    await dialog().getByLabel('Data').fill('{}')
    await dialog().getByRole('button', { name: 'Save and execute' }).click()
    expect(await openedRun()).toMatchObject({ status: 'SUCCESS', workflowVersion: 1, draft: false })
  })

  test('the last real call is tried again, and then only up to a node', { tags: 'long' }, async () => {
    const id = await host.create({
      nodes: [
        { id: 'hook', name: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'orders' } },
        { id: 'big', name: 'big', type: 'IF_ELSE', config: { condition: '$input.body.total > 100' } },
        set('yes', 'big'),
        set('no', 'small'),
      ],
      edges: edges('hook -> big', 'big:true -> yes', 'big:false -> no'),
    })
    await host.ask('PUT', `/api/workflows/${id}`, { active: true })
    const called = await fetch(`${origin}/hooks/${id}/orders?from=shop`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"total": 120}',
    })
    const { executionId } = (await called.json()) as { executionId: string }
    await host.ended(executionId)
    await signIn(`#/workflows/${id}/edit`)
    await node('yes').waitFor()
    await button('Execute').click()
    await button('Fill in the last real call').click()
    // It is kept, and taken out again when it was lost.
    await dialog().getByLabel('Name of the example').fill('Large order')
    await button('Save as example').click()
    await dialog().getByRole('option', { name: 'Large order', selected: true }).waitFor({ state: 'attached' })
    await dialog().getByLabel('Request').fill('{}')
    await dialog().getByLabel('Saved examples').selectOption('None')
    await dialog().getByLabel('Saved examples').selectOption('Large order')
    await dialog().getByLabel('Request').getByText('shop').waitFor()
    await dialog().locator('summary').click()
    await dialog().getByLabel('Pin what a node put out').selectOption('yes')
    await expectAccessible(page)
    await dialog().getByRole('button', { name: 'Execute' }).click()
    const again = await openedRun()
    expect(again).toMatchObject({ trigger: 'MANUAL', outputData: { text: 'big' }, draft: false })
    expect(again.inputData).toMatchObject({ body: { total: 120 }, query: { from: 'shop' }, method: 'POST' })

    await page.goto(`${origin}/#/workflows/${id}/edit`)
    await node('yes').dblclick()
    await page.getByLabel('Name', { exact: true }).fill('Yes indeed')
    await button('Execute to here').click()
    await dialog().getByText('Go on from the last execution').waitFor()
    await expectAccessible(page)
    await dialog().getByRole('button', { name: 'Save and execute' }).click()
    const part = await openedRun()
    expect(part).toMatchObject({ until: 'yes', workflowVersion: 2, draft: true, outputData: { text: 'big' } })
    expect(part.inputData).toEqual(again.inputData)
    const { nodeExecutions } = await host.ask<{ nodeExecutions: { nodeId: string; takenFrom?: string }[] }>(
      'GET',
      `/api/executions/${part.id}`,
    )
    expect(nodeExecutions.find(({ nodeId }) => nodeId === 'big')).toMatchObject({ takenFrom: again.id })
    // By the keyboard, and with another input.
    await page.goto(`${origin}/#/workflows/${id}/edit`)
    await node('no').click()
    await page.keyboard.press('e')
    await dialog().getByRole('checkbox').uncheck()
    await dialog().getByLabel('Saved examples').selectOption('Large order')
    await button('Delete it').click()
    await page
      .getByRole('dialog', { name: 'Delete the example' })
      .getByRole('button', { name: 'Delete' })
      .click()
    await dialog().getByLabel('Saved examples').waitFor({ state: 'detached' })
    await dialog().getByLabel('Request').fill('{"body": {"total": 5}}')
    await dialog().getByRole('button', { name: 'Execute' }).click()
    expect(await openedRun()).toMatchObject({ until: 'no', outputData: { text: 'small' } })
  })

  test('a test call executes the draft while the editor listens, and its execution is opened', async () => {
    const hook = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } }
    const id = await host.create({ nodes: [hook], edges: [] })
    await signIn(`#/workflows/${id}/edit`)
    await node('hook').waitFor()
    let closed = 0
    page.on('request', (request) => {
      if (request.method() === 'DELETE' && request.url().endsWith('/listening')) closed++
    })
    await button('Listen').click()
    await state('Listening for a call')
    await expectAccessible(page)
    const shown = await page.getByText('/hooks-test/').textContent()
    const address = shown!.match(/http\S+/)![0]
    const send = () => fetch(address, { method: 'POST', body: '{"total":120}' })
    expect(closed).toBe(0)
    await button('Stop listening').click()
    await expect.poll(async () => (await send()).status).toBe(404)
    expect(closed).toBe(1)
    await button('Listen').click()
    await state('Listening for a call')
    expect((await send()).status).toBe(202)
    expect(await openedRun()).toMatchObject({ draft: true, trigger: 'WEBHOOK', workflowVersion: 1 })
  })
})
