import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

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

const host = await keep(shareRunning())
const origin = await host.listen()

describe.skipIf(missing)('the lists of executions and approvals', () => {
  const browser = useBrowser(() => origin, host.user.email)
  const { signIn } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('executions are filtered by what stands in the address, and what users write is text', {
    tags: 'long',
  }, async () => {
    const name = `${XSS} ${randomUUID()}`
    const stop = { id: 'stop', type: 'STOP_AND_ERROR', name: XSS, config: { message: XSS } }
    const json = { teamId: host.teamId, name, nodes: [start, stop], edges: edges('start -> stop') }
    const { id: workflowId } = await host.ask<{ id: string }>('POST', '/api/workflows', json)
    const id = await host.execute(workflowId)
    await host.ended(id)
    await signIn('#/executions')
    const link = page.locator(`a[href="#/executions/${id}"]`)
    await link.waitFor()
    await page.getByText(name).first().waitFor()
    expect(await page.locator('img[src="x"], img[onerror], svg[onload], body script').count()).toBe(0)
    await expectAccessible(page)
    await page.getByLabel('Status').selectOption('SUCCESS')
    await page.getByText('Nothing found').waitFor()
    await page.getByRole('link', { name: 'Clear' }).click()
    await page.getByLabel('Workflow', { exact: true }).fill(name)
    await page.waitForURL(new RegExp(`workflowId=${workflowId}`))
    await link.waitFor()
    await page.reload()
    await link.waitFor()
    expect(await page.getByLabel('Workflow', { exact: true }).inputValue()).toBe(name)

    // Two filters are changed faster than the page can load: the second must not bring back the first.
    await page.getByLabel('Status').selectOption('SUCCESS')
    await page.getByText('Nothing found').waitFor()
    await page.locator('.filters').evaluate((filters) => {
      filters.querySelector<HTMLAnchorElement>('a')!.click()
    })
    await page.getByLabel('Status').selectOption('FAILED')
    await page.waitForURL(/#\/executions\?status=FAILED$/)
    await link.waitFor()
    await page.getByLabel('From').fill('2999-01-01T00:00')
    await page.keyboard.press('Enter')
    await page.waitForURL(/from=2999|from=2998/)
    await page.getByText('Nothing found').waitFor()
  })

  test('executions are found by their input, also from the palette, and deleted together', {
    tags: 'long',
  }, async () => {
    const id = await host.create({ nodes: [start], edges: [] })
    const needle = `needle-${randomUUID()}`
    const runs = [await host.execute(id, { needle }), await host.execute(id, { needle })]
    for (const run of runs) await host.ended(run)
    await signIn('#/executions')
    const links = page.locator('tbody .id')
    await page.getByRole('searchbox', { name: 'Search' }).fill(needle.toUpperCase())
    await page.waitForURL(/search=NEEDLE/)
    await expect.poll(() => links.count()).toBe(2)
    await page.reload()
    await expect.poll(() => links.count()).toBe(2)
    // Who started it stands beside how.
    const { firstName, lastName } = await host.ask<{ firstName: string; lastName: string }>(
      'GET',
      '/api/auth/me',
    )
    expect(await page.locator('tbody tr').first().textContent()).toContain(`Manual${firstName} ${lastName}`)
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill(needle)
    await page.getByRole('option', { name: runs[1]!.slice(-12) }).click()
    await page.waitForURL(new RegExp(runs[1]!))
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Delete execution' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete execution' }).click()
    await page.waitForURL(/#\/executions$/)
    const third = await host.execute(id, { needle })
    await host.ended(third)
    // As long as the answer is not there, the rows are those of another search: nothing can be done with them.
    const answer = Promise.withResolvers<void>()
    await page.route(/search=needle/, async (route) => {
      await answer.promise
      await route.continue()
    })
    await page.getByRole('searchbox', { name: 'Search' }).fill(needle)
    await page.waitForURL(/search=needle/)
    await page.locator('.rows[aria-busy=true] tbody tr').first().waitFor()
    expect(await page.locator('.rows').evaluate((rows) => (rows as HTMLElement).inert)).toBe(true)
    answer.resolve()
    await page.locator('.rows[aria-busy=false]').waitFor({ state: 'attached' })
    await expect.poll(() => links.count()).toBe(2)
    await page.getByText('Choose all 2 on this page').click()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Delete 2' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('Nothing found').waitFor()
    for (const run of [...runs, third])
      expect((await host.request(`/api/executions/${run}`, { as: host.admin })).status).toBe(404)
  })

  test('several are retried only after a question, in the current version, and are marked then', {
    tags: 'long',
  }, async () => {
    const graph = (end: string) => ({
      nodes: [
        start,
        { id: 'say', type: 'SET', config: { values: { n: end } } },
        { id: 'end', type: end, config: end === 'NO_OP' ? {} : { message: 'broke' } },
      ],
      edges: edges('start -> say', 'say -> end'),
    })
    const id = await host.create(graph('STOP_AND_ERROR'))
    const runs = [await host.execute(id), await host.execute(id)]
    for (const run of runs) expect((await host.ended(run)).status).toBe('FAILED')
    await host.ask('PUT', `/api/workflows/${id}`, graph('NO_OP'))
    await signIn(`#/executions?workflowId=${id}`)
    await page.getByText('Choose all 2 on this page').click()
    await page.getByRole('button', { name: 'Retry 2' }).click()
    const dialog = page.getByRole('dialog', { name: 'Retry 2 executions?' })
    await expect.poll(() => dialog.getByRole('listitem').count()).toBe(2)
    for (const run of runs) await dialog.getByText(run.slice(-12)).waitFor()
    const graphOf = page.getByRole('dialog').getByLabel('Graph')
    expect(await graphOf.inputValue()).toBe('current')
    await expectAccessible(page)
    // Nothing has happened yet.
    const list = async () =>
      (
        await host.ask<{ content: { id: string; retriedBy: string | null }[] }>(
          'GET',
          `/api/executions/team/${host.teamId}?workflowId=${id}`,
        )
      ).content
    expect(await list()).toHaveLength(2)
    await dialog.getByRole('button', { name: 'Retry 2 executions' }).click()
    await page.getByText('2 executions retried').waitFor()
    const retried = (await list()).flatMap(({ retriedBy }) => retriedBy ?? [])
    for (const one of retried)
      expect(await host.ended(one)).toMatchObject({ status: 'SUCCESS', workflowVersion: 2 })
    await expect.poll(() => page.getByRole('link', { name: 'Retried' }).count()).toBe(2)
    await page.getByText('Choose all 4 on this page').click()
    expect(await page.getByRole('button', { name: /^Retry/ }).count()).toBe(0)
    await expectAccessible(page)

    // One of them, and a node alone: the repaired graph comes first too.
    await page.goto(`${origin}/#/executions/${runs[0]}?node=say`)
    await page.getByRole('button', { name: 'Retry from failed nodes' }).click()
    expect(await graphOf.inputValue()).toBe('current')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Execute this node alone' }).click()
    expect(await graphOf.inputValue()).toBe('current')
    await page.getByRole('dialog').getByRole('button', { name: 'Execute the node' }).click()
    await page.waitForURL((url) => url.hash.includes('/executions/') && !url.hash.includes(runs[0]!))
    const alone = new URL(page.url()).hash.split('/').at(-1)!.split('?')[0]!
    expect(await host.ended(alone)).toMatchObject({ workflowVersion: 2, outputData: { n: 'NO_OP' } })
    await page.goto(`${origin}/#/`)
    await page
      .getByRole('link', { name: /^Median duration/ })
      .getByText(/^about /)
      .waitFor()
  })

  test('approvals are decided with a form, and a decision that came too late is told', async () => {
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
      ],
      edges: edges('start -> pay', 'start -> each'),
    })
    const run = await host.execute(id, { n: 7 })
    await expect.poll(async () => (await openOnes(run)).length).toBe(4)
    await signIn('#/approvals')
    const count = (text: string) => page.locator('.bar .count', { hasText: text }).waitFor()
    await count('4')
    const row = (text: string) => page.getByRole('row').filter({ hasText: text })
    const rows = () => page.locator('tbody tr').count()
    expect(await row('Item 2').textContent()).toContain('Approval 2 #2')
    await expectAccessible(page)
    await row(XSS).getByRole('button', { name: 'Approve' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Account').selectOption('savings')
    await dialog.getByLabel('Amount').fill('0.5')
    await dialog.getByLabel('Urgent').check()
    await dialog.getByLabel('b', { exact: true }).check()
    await dialog.getByLabel('Note').fill('two\nlines')
    await dialog.getByLabel('On').fill('2026-03-04')
    await dialog.getByLabel('Comment').fill(XSS)
    await expectAccessible(page)
    // The browser checks what it can, as the API would.
    await dialog.getByRole('button', { name: 'Approve' }).click()
    expect(
      await dialog.getByLabel('Amount').evaluate((field: HTMLInputElement) => field.validity.rangeUnderflow),
    ).toBe(true)
    await dialog.getByLabel('Amount').fill('20.5')
    await dialog.getByRole('button', { name: 'Approve' }).click()
    await expect.poll(rows).toBe(3)
    await count('3')

    // Somebody else decides first: the dialog says so, and the page behind it is updated.
    const [late] = (await openOnes(run)).filter(({ message }) => message === 'Item 0')
    await row('Item 0').getByRole('button', { name: 'Reject' }).click()
    await host.ask('POST', `/api/approvals/${late!.id}`, { decision: 'approved' })
    await dialog.getByRole('button', { name: 'Reject' }).click()
    await dialog.getByRole('alert').getByText('decided already: APPROVED').waitFor()
    await expect.poll(rows).toBe(2)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await row('Item 1').getByRole('button', { name: 'Reject' }).click()
    await dialog.getByRole('button', { name: 'Reject' }).click()
    await expect.poll(rows).toBe(1)
    await page.getByLabel('Status').selectOption('APPROVED')
    await row(XSS).getByText(`approved, “${XSS}”`).waitFor()
    // The record follows the decision when the run has seen it.
    const readPay = async () => (await host.read(run)).nodeExecutions.find(({ nodeId }) => nodeId === 'pay')
    await expect
      .poll(async () => (await readPay())?.outputData)
      .toMatchObject({
        decision: 'approved',
        comment: XSS,
        form: {
          ...{ account: 'savings', amount: 20.5, urgent: true, tags: ['b'] },
          ...{ note: 'two\nlines', on: '2026-03-04' },
        },
      })
    await host.ask('POST', `/api/executions/${run}/cancel`)

    const other = await host.execute(id, { n: 8 })
    await expect.poll(async () => (await openOnes(other)).length).toBe(4)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn('#/approvals', (await host.signUp('OPERATOR')).email)
    await row('Item 1').getByText('Others decide').waitFor()
    expect(await page.getByRole('button', { name: /^Approve:/ }).count()).toBe(1)
    await count('1')
    await page.setViewportSize({ width: 390, height: 844 })
    await expectAccessible(page)
    await host.ask('POST', `/api/executions/${other}/cancel`)
  })

  async function openOnes(executionId: string) {
    type Found = { content: { id: string; message: string | null }[] }
    const path = `/api/approvals?teamId=${host.teamId}&executionId=${executionId}`
    return (await host.ask<Found>('GET', path)).content
  }
})
