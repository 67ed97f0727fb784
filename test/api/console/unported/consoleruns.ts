import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectClearLabels, missing, useBrowser } from '../../support/browser.ts'
import { createChatting } from '../../support/chats/chatting.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startWorld } from '../../support/servers/world.ts'

const XSS = '<img src=x onerror="alert(1)">"\'><svg onload=alert(3)>'
const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

/** A form with one field of each kind. */
const FORM = {
  title: 'Payment',
  properties: {
    account: { type: 'string', enum: ['main', 'savings'], title: 'Account' },
    amount: { type: 'number', minimum: 1, title: 'Amount', default: 12 },
    urgent: { type: 'boolean', title: 'Urgent' },
    tags: { type: 'array', enum: ['a', 'b'], title: 'Tags' },
    note: { type: 'string', format: 'multiline', title: 'Note', description: XSS },
    on: { type: 'string', format: 'date', title: 'On' },
    left: { type: 'string', title: 'Left' },
  },
  required: ['account'],
}

const host = await keep(startRunning())
const origin = await host.listen()

describe.skipIf(missing)('the pages of executions and workflows', () => {
  const browser = useBrowser(() => origin)
  const { signIn, heading } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('while a node retries, its record says when the next attempt comes; what was sent can be opened', async () => {
    const world = await startWorld({
      '/busy': ({ response, count }) => response.writeHead(count === 1 ? 503 : 200).end(XSS),
    })
    try {
      const call = {
        ...{ id: 'call', type: 'HTTP_REQUEST', retry: { maxAttempts: 2, initialIntervalMs: 6_000 } },
        config: { url: `${world.url}/busy`, method: 'POST', body: { word: 'outgoing' } },
      }
      const run = await host.execute(
        await host.create({ nodes: [start, call], edges: edges('start -> call') }),
      )
      await signIn(`#/executions/${run}`)
      await page
        .getByText(/^Attempt 1 failed, the next one comes at .*: POST .* responded with 503/)
        .waitFor()
      await page.locator('tr[data-node=call] [data-status=SUCCESS]').waitFor({ timeout: 30_000 })
      await page.locator('tr[data-node=call] .disclose').click()
      await page.getByRole('button', { name: 'HTTP requests' }).click()
      await page.getByText(`Attempt 1: POST ${world.url}/busy, 503 Service Unavailable`).click()
      await page.getByText(`Attempt 2: POST ${world.url}/busy, 200 OK`).waitFor()
      expect(await page.locator('.requests pre[aria-label=Request]').first().textContent()).toContain(
        '"word": "outgoing"',
      )
      expect(
        JSON.parse((await page.locator('.requests pre[aria-label=Response]').first().textContent())!).body,
      ).toBe(XSS)
    } finally {
      await world.stop()
    }
  })

  test('a loop is a box around its body, records show their iterations, many records are paged', async () => {
    const id = await host.create({
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: '{{ $input.list }}', onItemError: 'collect' } },
        { id: 'odd', parentId: 'each', type: 'IF_ELSE', config: { condition: '$item % 2 = 1' } },
        { id: 'stop', parentId: 'each', type: 'STOP_AND_ERROR', config: { message: 'odd' } },
        { id: 'inner', parentId: 'each', type: 'REPEAT', config: { until: '$index = 1' } },
        { id: 'deep', parentId: 'inner', type: 'SET', config: { values: { n: '{{ $index }}' } } },
      ],
      edges: edges('start -> each', 'odd:true -> stop', 'odd:false -> inner'),
    })
    const run = await host.execute(id, { list: [0, 1, 2] })
    await host.ended(run)
    await signIn(`#/executions/${run}`)
    await page.locator('.graph .node.failed[data-node=stop]').waitFor()
    const box = (node: string) => page.locator(`.graph [data-node=${node}] .box`).boundingBox()
    const [each, inner, deep, stop] = await Promise.all(['each', 'inner', 'deep', 'stop'].map(box))
    for (const [outer, within] of [
      [each, inner],
      [inner, deep],
      [each, stop],
    ]) {
      expect(outer!.x).toBeLessThan(within!.x)
      expect(outer!.y).toBeLessThan(within!.y)
      expect(outer!.x + outer!.width).toBeGreaterThan(within!.x + within!.width)
      expect(outer!.y + outer!.height).toBeGreaterThan(within!.y + within!.height)
    }
    await expectClearLabels(page, ['true', 'false'])
    const names = await page.locator('.records .name').allTextContents()
    expect(names).toEqual([
      ...['Manual trigger 1', 'For each 1', 'If else 1 #0', 'Repeat 1 #0', 'Set 1 #0.0', 'Set 1 #0.1'],
      ...['If else 1 #1', 'Stop and error 1 #1', 'If else 1 #2', 'Repeat 1 #2', 'Set 1 #2.0', 'Set 1 #2.1'],
    ])
    // Clicking a node in the graph opens its record; if it has many, the failed one.
    await page.locator('.graph [data-node=stop]').click()
    expect(await page.locator('tr[data-node=stop] .disclose').getAttribute('aria-expanded')).toBe('true')
    // On a phone, the error message is as wide as its card.
    await page.setViewportSize({ width: 390, height: 844 })
    const reason = await page.locator('tr[data-node=stop] .failure.line').boundingBox()
    expect(reason!.width).toBeGreaterThan(250)
    await page.setViewportSize({ width: 1280, height: 860 })

    const many = await host.create({
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: '{{ $input.list }}', concurrency: 64 } },
        { id: 'body', parentId: 'each', type: 'NO_OP', config: {} },
      ],
      edges: edges('start -> each'),
    })
    const long = await host.execute(many, { list: Array.from({ length: 1_010 }, (_, at) => at) })
    await host.ended(long)
    await page.goto(`${origin}/#/executions/${long}`)
    await page.getByText('1,000 of 1,012 records shown').waitFor()
    expect(await page.locator('.records .disclose').count()).toBe(1_000)
    await page.getByRole('button', { name: 'Show all by pages' }).click()
    await page.getByText('1–100 of 1,012 records').waitFor()
    expect(await page.getByRole('button', { name: 'Previous' }).isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText('101–200 of 1,012 records').waitFor()
    expect(await page.locator('.records .disclose').count()).toBe(100)
    await page.getByRole('button', { name: 'Overview' }).click()
    await page.getByText('1,000 of 1,012 records shown').waitFor()
  })

  test('an agent shows its steps, and asks on its page before it calls a tool', async () => {
    const credentialId = await createChatting(host).credential()
    const agent = {
      id: 'agent',
      type: 'AI_AGENT',
      config: {
        ...{ credentialId, model: 'demo', instructions: 'Help', prompt: 'use the tool pay with {"sum": 7}' },
        tools: [
          {
            ...{ type: 'CODE', name: 'pay', description: 'Pays', parameters: { type: 'object' } },
            ...{ code: 'return { paid: $args.sum }', approval: true },
          },
        ],
      },
    }
    const run = await host.execute(
      await host.create({ nodes: [start, agent], edges: edges('start -> agent') }),
    )
    await signIn(`#/executions/${run}`)
    const asked = page.locator('section.asked')
    await asked.getByText('The agent wants to call pay').waitFor()
    await asked.getByRole('button', { name: /^Approve:/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
    const rows = page.locator('tr[data-node=agent]')
    await expect.poll(() => rows.locator('[data-status=SUCCESS]').count()).toBe(4)
    expect(await rows.locator('.disclose .quiet').allTextContents()).toEqual([
      'AI_AGENT',
      'Step 1: the model',
      'Step 2: the tool pay',
      'Step 3: the model',
    ])
    await expect.poll(() => asked.count()).toBe(0)
  })

  test('what was said in a chat is private on the pages of others, node by node', async () => {
    const chats = createChatting(host)
    const id = await chats.open(await chats.simpleAgent())
    await chats.say(id, 'say a secret')
    const { messages } = await chats.read(id)
    await signIn(`#/executions/${messages[0].executionId}`, (await host.signUp('OPERATOR')).email)
    await page.locator('tr[data-node=llm] .disclose').click()
    await page.getByText('Its input and output are private').waitFor()
    await page.getByText('A private chat: its owner and ADMINs').waitFor()
    expect(await page.locator('main').textContent()).not.toMatch(/a secret|No output/)
  })

  test('approvals are decided with a form, on two pages, and errors are shown', async () => {
    const id = await host.create({
      nodes: [
        start,
        { id: 'pay', type: 'APPROVAL', config: { message: `${XSS} {{ $input.n }}`, form: FORM } },
        { id: 'each', type: 'FOR_EACH', config: { items: [0, 1, 2], concurrency: 3 } },
        {
          id: 'item',
          parentId: 'each',
          type: 'APPROVAL',
          config: { message: 'Item {{ $item }}', approvers: ['ADMIN'] },
        },
        { id: 'paid', type: 'NO_OP', config: {} },
        { id: 'refused', type: 'NO_OP', config: {} },
      ],
      edges: edges('start -> pay', 'pay:approved -> paid', 'pay:rejected -> refused', 'start -> each'),
    })
    const run = await host.execute(id, { n: 7 })
    await expect.poll(async () => (await openOnes(run)).length).toBe(4)
    await signIn('#/approvals')
    await page.locator('.bar .count', { hasText: '4' }).waitFor()
    // The part on the page #/approvals is ported: it approves `pay` with the form, and `Item 0` is decided by somebody else.

    await page.goto(`${origin}/#/executions/${run}`)
    const asked = page.locator('.asked')
    await asked.filter({ hasText: 'Item 1' }).getByRole('button', { name: 'Approve' }).click()
    await dialog.getByRole('button', { name: 'Approve' }).click()
    await asked.filter({ hasText: 'Item 2' }).getByRole('button', { name: 'Reject' }).click()
    await dialog.getByRole('button', { name: 'Reject' }).click()
    await page.locator('.facts [data-status=SUCCESS]').waitFor()
    expect(await asked.count()).toBe(0)
    await page.locator('tr[data-node=pay] .marks').getByText('approved').waitFor()
    await expectClearLabels(page, ['approved', 'rejected'])
    const { nodeExecutions } = await host.read(run)
    const pay = nodeExecutions.find(({ nodeId }) => nodeId === 'pay')
    expect(pay!.outputData).toMatchObject({
      decision: 'approved',
      comment: XSS,
      form: {
        ...{ account: 'savings', amount: 20.5, urgent: true, tags: ['b'] },
        ...{ note: 'two\nlines', on: '2026-03-04' },
      },
    })

    const other = await host.execute(id, { n: 8 })
    await expect.poll(async () => (await openOnes(other)).length).toBe(4)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn('#/approvals', (await host.signUp('OPERATOR')).email)
    await row('Item 1').getByText('Others decide').waitFor()
    expect(await page.getByRole('button', { name: /^Approve:/ }).count()).toBe(1)
    await page.locator('.bar .count', { hasText: '1' }).waitFor()
    await host.ask('POST', `/api/executions/${other}/cancel`)
  })

  test('an execution is drawn with the graph of its version, even if there is a newer one', async () => {
    const id = await host.create({
      nodes: [start, { id: 'old', type: 'NO_OP' }],
      edges: edges('start -> old'),
    })
    const run = await host.execute(id)
    expect((await host.ended(run)).errorMessage).toBeNull()
    await host.ask('PUT', `/api/workflows/${id}`, {
      nodes: [start, { id: 'new', type: 'NO_OP' }],
      edges: edges('start -> new'),
    })
    await signIn(`#/executions/${run}`)
    await page.getByText('This execution follows version 1').waitFor()
    await page.locator('.graph .node.success[data-node=old]').waitFor()
    expect(await page.locator('.graph [data-node=new]').count()).toBe(0)
  })

  test('versions are restored, schedules show their times, workflows are exported and imported', async () => {
    const nightly = {
      id: 'nightly',
      type: 'SCHEDULE_TRIGGER',
      config: { cron: '0 0 1 1 *', timezone: 'UTC' },
    }
    const id = await host.create({
      nodes: [nightly, { id: 'old', type: 'NO_OP' }],
      edges: edges('nightly -> old'),
    })
    const name = `Nightly ${randomUUID()} ${XSS}`
    await host.ask('PUT', `/api/workflows/${id}`, { name, nodes: [nightly, start], edges: [], active: true })
    await signIn(`#/workflows/${id}`)
    const year = new Date().getUTCFullYear() + 1
    await page.locator(`[aria-label=Schedules] time[datetime^="${year}-01-01T00:00:00"]`).waitFor()

    const leaving = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Export' }).click()
    const file = await leaving
    expect(file.suggestedFilename()).toMatch(/^Nightly .*\.json$/)
    const document = JSON.parse(await readFile((await file.path())!, 'utf8'))
    expect(document).toMatchObject({ format: 'perdure.workflow', name })

    await page.getByRole('link', { name: '2, see all' }).click()
    await page.getByRole('link', { name: 'Version 1' }).click()
    await heading('Version 1')
    await page.locator('.graph [data-node=old]').waitFor()
    await page.getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('link', { name: '3, see all' }).waitFor()
    await page.locator('.graph [data-node=old]').waitFor()

    await page.goto(`${origin}/#/workflows`)
    await heading('Workflows')
    await bring('{"nodes": 7}')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('alert').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    const back = `Brought back ${randomUUID()}`
    await bring(JSON.stringify({ ...document, name: back }))
    await dialog.getByRole('heading', { name: `Imported: ${back}` }).waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('link', { name: back }).waitFor()
    const node = {
      parameters: {},
      id: '1',
      name: XSS,
      type: 'n8n-nodes-base.slack',
      typeVersion: 2,
      position: [0, 0],
    }
    const imported = `From n8n ${randomUUID()}`
    await bring(JSON.stringify({ name: imported, nodes: [node], connections: {} }))
    await dialog.getByRole('listitem').filter({ hasText: XSS }).first().waitFor()
    await dialog.getByText('Nodes brought in: 1. This is not as it was:').waitFor()
    await dialog.getByRole('button', { name: 'Open the workflow' }).click()
    await heading(imported)
  })

  async function bring(text: string): Promise<void> {
    await page.getByRole('button', { name: 'Import' }).click()
    const dialog = page.getByRole('dialog')
    const buffer = Buffer.from(text)
    await dialog.getByLabel('File').setInputFiles({ name: 'w.json', mimeType: 'application/json', buffer })
    await dialog.getByRole('button', { name: 'Import' }).click()
  }

  async function openOnes(executionId: string) {
    type Page = { content: { id: string; message: string | null }[] }
    const path = `/api/approvals?teamId=${host.teamId}&executionId=${executionId}`
    return (await host.ask<Page>('GET', path)).content
  }
})
