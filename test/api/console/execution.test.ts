import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, expectClearLabels, missing, useBrowser } from '../../support/browser.ts'
import { createChatting } from '../../support/chat/chatting.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { startWorld } from '../../support/servers/world.ts'

const XSS = '<img src=x onerror="alert(1)">"\'><svg onload=alert(3)>'
const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

const host = await keep(shareRunning())
const origin = await host.listen()

describe.skipIf(missing)('the page of an execution', () => {
  const browser = useBrowser(() => origin, host.user.email)
  const { signIn } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })
  const step = (node: string) => page.locator(`.step[data-node=${node}]`)
  const detail = () => page.getByRole('complementary', { name: /^Record of/ })
  const tab = (name: string | RegExp) => page.getByRole('tab', { name }).click()

  test('a retrying node is watched live, and what it really sent can be opened', {
    tags: 'long',
  }, async () => {
    const world = await startWorld({
      '/busy': ({ response, count }) => response.writeHead(count === 1 ? 503 : 200).end(XSS),
    })
    try {
      const call = {
        ...{ id: 'call', type: 'HTTP_REQUEST', retry: { maxAttempts: 2, initialIntervalMs: 15_000 } },
        config: { url: `${world.url}/busy`, method: 'POST', body: { word: 'outgoing' } },
      }
      const run = await host.execute(
        await host.create({ nodes: [start, call], edges: edges('start -> call') }),
      )
      await signIn(`#/executions/${run}?view=steps&node=call`)
      const failing = /^Attempt 1 failed, the next one comes at .*: POST .* responded with 503/
      await detail().getByText(failing).waitFor()
      const attempts = detail().getByRole('region', { name: 'Attempts' }).locator('li')
      await attempts.filter({ hasText: /^Attempt 1FailedHttp503/ }).waitFor()
      await attempts.filter({ hasText: /Attempt 2\s*comes .*\(in \d+ s\)/ }).waitFor()
      const line = page.getByRole('region', { name: 'Waits for' })
      await line.getByText('Waits for attempt 2 of Http request 1').waitFor()
      await tab('Timeline')
      await page.locator('.line-row[data-node=call] .gantt-next').waitFor()
      await page.locator('.line-row[data-node=call] .attempt-bar.failed').waitFor()
      await tab(/^Steps/)
      // Nobody reloads anything: the same page shows the end.
      await step('call').locator('[data-status=SUCCESS]').waitFor({ timeout: 30_000 })
      await page.locator('.page-header [data-status=SUCCESS]').waitFor()
      await step('call').getByText('2 attempts').waitFor()
      const sent = page.locator('.requests')
      await sent.getByText(`POST ${world.url}/busy, 503 Service Unavailable`).click()
      await sent.getByText(`POST ${world.url}/busy, 200 OK`).waitFor()
      await sent.locator('[aria-label=Request]').first().getByText('"outgoing"').waitFor()
      await sent.locator('[aria-label=Response]').first().getByText(JSON.stringify(XSS)).waitFor()
      expect(await page.locator('img[src="x"], img[onerror], svg[onload]').count()).toBe(0)
      await expectAccessible(page)
      await tab('Timeline')
      await page.locator('.line-row[data-node=call] .attempt-bar.success').waitFor()
      expect(await attempts.count()).toBe(2)
      expect(await line.count()).toBe(0)
      await page.getByRole('button', { name: 'Zoom in' }).click()
      await page.getByRole('button', { name: 'Fit' }).waitFor()
      await expectAccessible(page)
    } finally {
      await world.stop()
    }
  })

  test('a loop is a box in the graph; its iterations are folded, picked, and shown where they failed', {
    tags: 'long',
  }, async () => {
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
    await page.getByRole('button', { name: 'For each 1, FOR_EACH: Success, 3 of 3, 1 failed' }).waitFor()
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
    await expectAccessible(page)

    // A click on a node of the graph opens its record: of many, the one that failed.
    await page.locator('.graph [data-node=stop]').click()
    await detail().getByRole('heading', { name: 'Stop and error 1 #1' }).waitFor()
    await page.keyboard.press('3')
    const names = () => page.locator('.steps .name').allTextContents()
    await expect
      .poll(names)
      .toEqual([
        ...['Manual trigger 1', 'For each 1', 'Iteration 0', 'Iteration 1'],
        ...['If else 1 #1', 'Stop and error 1 #1', 'Iteration 2'],
      ])
    await page.getByRole('checkbox', { name: 'Failed only (1)' }).last().check()
    await expect
      .poll(names)
      .toEqual([...['Manual trigger 1', 'For each 1', 'Iteration 1', 'If else 1 #1', 'Stop and error 1 #1']])
    await page.getByRole('checkbox', { name: 'Failed only (1)' }).last().uncheck()
    await page.getByRole('button', { name: 'Next iteration' }).first().click()
    await expect
      .poll(names)
      .toEqual([...['Manual trigger 1', 'For each 1', 'Iteration 0', 'If else 1 #0', 'Repeat 1 #0']])
    await page.getByRole('button', { name: 'Open Repeat 1' }).click()
    await page.getByRole('button', { name: 'Open Iteration 1' }).click()
    await page.locator('.steps').getByText('Set 1 #0.1').waitFor()

    // The keys go from record to record, to another view, and close the record.
    await page.getByRole('button', { name: /Repeat 1 #0/ }).click()
    await detail().getByRole('heading', { name: 'Repeat 1 #0' }).waitFor()
    await page.keyboard.press('ArrowUp')
    await detail().getByRole('heading', { name: 'If else 1 #0' }).waitFor()
    await page.keyboard.press('2')
    await page.waitForURL(/view=timeline&node=odd&at=0/)
    await page.keyboard.press('Escape')
    await expect.poll(() => detail().count()).toBe(0)
    // All that was chosen stands in the address.
    await page.goto(`${origin}/#/executions/${run}?view=steps&failed=1&node=stop&at=1`)
    await detail().getByText('odd', { exact: true }).waitFor()
    await page.setViewportSize({ width: 390, height: 844 })
    await expectAccessible(page)
    await detail().getByRole('button', { name: 'Close the record' }).click()
    await expectAccessible(page)
    const wide = await page.evaluate(() => document.documentElement.scrollWidth)
    expect(wide).toBeLessThanOrEqual(390)
  })

  test('a loop of hundreds of items is no long page, and all of its records can be reached', {
    tags: 'long',
  }, async () => {
    const many = await host.create({
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: '{{ $input.list }}', concurrency: 64 } },
        { id: 'body', parentId: 'each', type: 'SET', config: { values: { twice: '{{ $item * 2 }}' } } },
      ],
      edges: edges('start -> each'),
    })
    const long = await host.execute(many, { list: Array.from({ length: 1_010 }, (_, at) => at) })
    await host.ended(long)
    await signIn(`#/executions/${long}?view=steps`)
    await page.getByRole('tab', { name: 'Steps (1,012)' }).waitFor()
    await page.locator('.steps').getByText('FOR_EACH: 1010 of 1010').waitFor()
    await page.getByRole('button', { name: 'Open For each 1' }).click()
    await page.locator('.step[data-iteration="0"]').waitFor()
    const [elements, height] = await page.evaluate(() => [
      document.querySelectorAll('*').length,
      document.documentElement.scrollHeight,
    ])
    expect(elements).toBeLessThan(2_000)
    expect(height).toBeLessThan(2_400)
    // The execution shows 1,000 records; the others are told by the stream, and read when they are looked at.
    for (const number of [0, 7, 1_009]) {
      await page.getByRole('spinbutton', { name: 'Iteration' }).fill(String(number))
      await step('body').locator('.step-open').click()
      await detail()
        .getByRole('heading', { name: `Set 1 #${number}` })
        .waitFor()
      const output = detail().getByRole('region', { name: 'Output' })
      await output.getByText(String(number * 2), { exact: true }).waitFor()
    }
  })

  test('an agent shows its turns and tasks, and asks on its page before it calls a tool', {
    tags: 'long',
  }, async () => {
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
    await signIn(`#/executions/${run}?view=steps`)
    const waiting = page.getByRole('region', { name: 'Waits for' })
    await waiting.getByText('The agent wants to call pay').waitFor()
    await expectAccessible(page)
    await waiting.getByRole('button', { name: /^Approve:/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
    const rows = step('agent')
    await expect.poll(() => rows.locator('[data-status=SUCCESS]').count(), { timeout: 30_000 }).toBe(4)
    expect(await rows.locator('.step-name > .quiet').allTextContents()).toEqual([
      'AI_AGENT: 3 steps',
      'Turn 1 of the model',
      'Step 2: the tool pay',
      'Turn 3 of the model',
    ])
    await expect.poll(() => waiting.count()).toBe(0)
    await rows.first().locator('.step-open').click()
    const steps = page.getByRole('region', { name: 'Steps of the agent' })
    await steps
      .getByText(/tokens, /)
      .first()
      .waitFor()
    await steps.getByText('The tool pay').click()
    await page.waitForURL(/node=agent&step=2/)
    await detail().getByText('paid:').waitFor()
  })

  test('what was said in a chat is private on the pages of others, node by node', {
    tags: 'long',
  }, async () => {
    const chats = createChatting(host)
    const id = await chats.open(await chats.simpleAgent())
    await chats.say(id, 'say a secret')
    const { messages } = await chats.read(id)
    const { email } = await host.signUp('OPERATOR')
    await signIn(`#/executions/${messages[0].executionId}?view=steps&node=llm`, email)
    await page.getByText('Its input and output are private').waitFor()
    await page.getByText('A private chat: its owner and ADMINs').waitFor()
    expect(await page.locator('main').textContent()).not.toMatch(/a secret|No output/)
  })

  test('approvals are decided and events are sent where the execution waits for them', {
    tags: 'long',
  }, async () => {
    const id = await host.create({
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: [0, 1], concurrency: 2 } },
        { id: 'item', parentId: 'each', type: 'APPROVAL', config: { message: `${XSS} {{ $item }}` } },
        { id: 'paid', type: 'WAIT_FOR_EVENT', config: { name: 'paid' } },
        { id: 'after', type: 'NO_OP', config: {} },
      ],
      edges: edges('start -> each', 'start -> paid', 'paid -> after'),
    })
    const run = await host.execute(id)
    await signIn(`#/executions/${run}?node=paid`)
    const asked = page.locator('.waiting li.asked')
    await expect.poll(() => asked.count()).toBe(2)
    const dialog = page.getByRole('dialog')
    await asked
      .filter({ hasText: `${XSS} 0` })
      .getByRole('button', { name: 'Approve' })
      .click()
    await dialog.getByRole('button', { name: 'Approve' }).click()
    await expect.poll(() => asked.count()).toBe(1)
    // The engine says how many items there are, before all of them have begun or ended.
    await page.getByRole('button', { name: 'For each 1, FOR_EACH: Running, 1 of 2' }).waitFor()
    await asked.first().getByRole('button', { name: 'Reject' }).click()
    await dialog.getByRole('button', { name: 'Reject' }).click()
    await expect.poll(() => asked.count()).toBe(0)
    await detail().getByText('/resume/').waitFor()
    await expectAccessible(page)
    await detail().getByRole('button', { name: 'Send event paid' }).click()
    await dialog.getByLabel('Data').fill('{"sum": 1200}')
    await dialog.getByRole('button', { name: 'Send event' }).click()
    await page.locator('.page-header [data-status=SUCCESS]').waitFor()
    const { nodeExecutions } = await host.read(run)
    expect(nodeExecutions.find(({ nodeId }) => nodeId === 'paid')!.outputData).toEqual({ sum: 1200 })
    await detail().getByText('1200').first().waitFor()
  })

  test('an execution is cancelled, retried from what failed, executed again with other input, and saved', {
    tags: 'long',
  }, async () => {
    const id = await host.create({
      nodes: [
        start,
        { id: 'first', type: 'SET', config: { values: { n: '{{ $input.n }}' } } },
        { id: 'hold', type: 'WAIT_FOR_EVENT', config: { name: 'never', timeoutMs: 3_600_000 } },
      ],
      edges: edges('start -> first', 'first -> hold'),
    })
    const run = await host.execute(id, { n: 7 })
    await signIn(`#/executions/${run}?node=first`)
    await page
      .locator('.graph .node.running[data-node=hold]')
      .getByText(/^until /)
      .waitFor()
    await page
      .locator('.waiting')
      .getByText(/until .*\(in (59 min|1 h)/)
      .waitFor()
    await page.getByRole('button', { name: 'Cancel execution' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel execution' }).click()
    await page.locator('.page-header [data-status=CANCELLED]').waitFor()
    // What was chosen is still chosen.
    await detail().getByRole('heading', { name: 'Set 1' }).waitFor()

    await page.getByRole('button', { name: 'Retry from failed nodes' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click()
    await page.waitForURL((url) => !url.hash.includes(run) && url.hash.includes('/executions/'))
    await page.locator('.facts').getByText('Retry of').waitFor()
    await page.locator('.graph .node[data-node=first]').click()
    await detail().getByText('Taken over', { exact: true }).waitFor()
    const retry = new URL(page.url()).hash.split('/').at(-1)!.split('?')[0]!
    await host.ask('POST', `/api/executions/${retry}/cancel`)
    await page.locator('.page-header [data-status=CANCELLED]').waitFor()

    const leaving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Save as JSON' }).click()
    expect((await leaving).suggestedFilename()).toBe(`execution-${retry}.json`)

    await detail().getByRole('button', { name: 'Execute with this output pinned' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Output of Set 1').fill('{"n": 99}')
    await dialog.getByRole('button', { name: 'Execute' }).click()
    await page.waitForURL((url) => !url.hash.includes(retry) && url.hash.includes('/executions/'))
    const pinned = new URL(page.url()).hash.split('/').at(-1)!.split('?')[0]!
    await page.locator('.graph .node.running[data-node=hold]').waitFor()
    const { nodeExecutions } = await host.read(pinned)
    const first = nodeExecutions.find(({ nodeId }) => nodeId === 'first')
    expect(first).toMatchObject({ pinned: true, outputData: { n: 99 } })
    await host.ask('POST', `/api/executions/${pinned}/cancel`)

    await page.goto(`${origin}/#/executions/${run}?node=first`)
    await detail().getByRole('button', { name: 'Execute this node alone' }).click()
    await dialog.getByLabel('Input').fill('{"n": 5}')
    await dialog.getByRole('button', { name: 'Execute the node' }).click()
    await page.locator('.facts').getByText('Only node').waitFor()
    await page.locator('.page-header [data-status=SUCCESS]').waitFor()

    // What an OPERATOR may not do is not offered: nodes alone, pinned outputs, and to take up what has them.
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn(`#/executions/${run}?node=first`, (await host.signUp('OPERATOR')).email)
    await detail().getByText('Output').first().waitFor()
    await page.getByRole('button', { name: 'Execute again' }).waitFor()
    expect(
      await detail()
        .getByRole('button', { name: /^Execute/ })
        .count(),
    ).toBe(0)
    await page.goto(`${origin}/#/executions/${pinned}`)
    await page.locator('.page-header [data-status=CANCELLED]').waitFor()
    await page.locator('.graph .node.cancelled[data-node=hold]').waitFor()
    expect(await page.getByRole('button', { name: /^(Retry|Execute again)/ }).count()).toBe(0)
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
})
