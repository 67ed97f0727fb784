import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()

type Table = { id: string; name: string; columns: { name: string; type: string }[] }
type Rows = { content: Record<string, unknown>[] }

describe.skipIf(missing)('the data tables of a team', () => {
  const browser = useBrowser(() => origin, host.user.email)
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  const button = (name: string | RegExp) =>
    page.getByRole('button', { name, exact: typeof name === 'string' })
  const notice = (text: string) => page.locator('.notice').getByText(text).waitFor()
  const readNames = () => page.locator('tbody tr td:first-child').allTextContents()
  const expectNames = (names: string[]) => expect.poll(readNames).toEqual(names)
  const list = async () =>
    (await host.ask<{ content: Table[] }>('GET', `/api/tables?teamId=${host.teamId}`)).content
  const rowsOf = async (id: string) => (await host.ask<Rows>('GET', `/api/tables/${id}/rows`)).content
  const expectNarrow = async () => {
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
    await expectAccessible(page)
    await page.setViewportSize({ width: 1280, height: 860 })
  }

  test('a table is made and filled, its rows are found, changed, deleted, and come and go as CSV', {
    tags: 'long',
  }, async () => {
    await browser.signIn('#/tables')
    await page.getByText('No tables').waitFor()
    await expectAccessible(page)
    await page.getByRole('main').getByRole('button', { name: 'New table' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('customers')
    await dialog.getByLabel('Column 1', { exact: true }).fill('id')
    await button('Create the table').click()
    await dialog.getByText('must be another name than').waitFor()
    await dialog.getByLabel('Column 1', { exact: true }).fill('email')
    await dialog.getByLabel('Required').check()
    await dialog.getByLabel('Unique').check()
    for (const [place, name, type] of [
      ['2', 'orders', 'number'],
      ['3', 'since', 'date'],
      ['4', 'more', 'json'],
    ] as const) {
      await button('Add a column').click()
      await dialog.getByLabel(`Column ${place}`, { exact: true }).fill(name)
      await dialog.getByLabel(`Type of column ${place}`).selectOption(type)
    }
    await expectAccessible(page)
    await button('Create the table').click()
    await browser.heading('customers')
    const [table] = await list()
    expect(table!.columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
      ...['email text', 'orders number', 'since date', 'more json'],
    ])

    await page.getByText('Workflows add rows').waitFor()
    await button('Add a row').first().click()
    await dialog.getByLabel('orders').fill('many')
    await dialog.getByLabel('since').fill('2026-02-30')
    await button('Add the row').click()
    await dialog.getByText('must be a number, not this text').waitFor()
    await dialog.getByText('must be a date in ISO 8601').waitFor()
    await dialog.getByText('is required', { exact: true }).waitFor()
    expect(await dialog.getByLabel('orders').getAttribute('aria-invalid')).toBe('true')
    await expectAccessible(page)
    await dialog.getByLabel('email').fill('ada@example.com')
    await dialog.getByLabel('orders').fill('9007199254740993')
    await dialog.getByLabel('since').fill('2026-01-31')
    await button('Add the row').click()
    await notice('Row added')
    await expectNames(['ada@example.com'])
    await page.getByRole('cell', { name: '2026-01-31', exact: true }).waitFor()
    await page.getByRole('cell', { name: '9007199254740993', exact: true }).waitFor()

    await button('Upload CSV').click()
    const csv = (text: string) => ({ name: 'rows.csv', mimeType: 'text/csv', buffer: Buffer.from(text) })
    await dialog.getByLabel('CSV file').setInputFiles(csv('email,orders\nbob@example.com,none\n'))
    await button('Upload').click()
    await dialog.getByText('line 2.orders').waitFor()
    await expectAccessible(page)
    const good = 'email,orders,more\nada@example.com,3,"[1]"\nbob@example.com,5,\neve@example.com,,\n'
    await dialog.getByLabel('CSV file').setInputFiles(csv(good))
    await dialog.getByLabel('email').check()
    await button('Upload').click()
    await notice('2 rows added, 1 changed')
    await expectNames(['ada@example.com', 'bob@example.com', 'eve@example.com'])

    await page.getByRole('columnheader', { name: 'orders' }).getByRole('button').click()
    await expectNames(['bob@example.com', 'ada@example.com', 'eve@example.com'])
    await button('Add a condition').click()
    await page.getByLabel('Column 1').selectOption('orders')
    await page.getByLabel('Operator 1').selectOption('gte')
    await page.getByLabel('Value 1').fill('some')
    await button('Apply').click()
    await page.locator('.table-conditions .wrong').getByText('must be a number').waitFor()
    await page.getByLabel('Value 1').fill('3')
    await button('Add a condition').click()
    await page.getByLabel('Operator 2').selectOption('startsWith')
    await page.getByLabel('Value 2').fill('ad')
    await button('Apply').click()
    await expectNames(['ada@example.com'])
    await expectNarrow()
    const waiting = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download CSV' }).click()
    const lines = (await readFile(await (await waiting).path(), 'utf8')).trim().split(/\r?\n/)
    expect(lines[0]).toBe('id,email,orders,since,more,createdAt,updatedAt')
    expect(lines).toHaveLength(2)
    expect(lines[1]).toContain('ada@example.com,3,2026-01-31T00:00:00.000Z,[1],')

    await button('Edit ada@example.com').click()
    await dialog.getByLabel('orders').fill('4')
    await button('Save the row').click()
    await notice('Row saved')
    expect((await rowsOf(table!.id))[0]).toMatchObject({
      ...{ email: 'ada@example.com', orders: 4, since: '2026-01-31T00:00:00.000Z', more: [1] },
    })
    await button('Delete ada@example.com').click()
    await button('Delete the row').click()
    await page.getByText('None fulfils these conditions.').waitFor()
    await button('Clear').click()
    await expectNames(['bob@example.com', 'eve@example.com'])

    await button('Edit the table').click()
    await dialog.getByLabel('Column 2', { exact: true }).fill('count')
    await button('Remove column 4').click()
    await dialog.getByText('All rows lose their values of').waitFor()
    await dialog.getByRole('button', { name: 'Delete the values and save' }).click()
    await notice('Table saved')
    await page.getByRole('columnheader', { name: 'count' }).waitFor()
    expect((await rowsOf(table!.id))[0]).toMatchObject({ email: 'bob@example.com', count: 5 })
  })

  test('a table in use is deleted by an ADMIN who insists; others are offered what they may', {
    tags: 'long',
  }, async () => {
    for (const { id } of await list()) await host.ask('DELETE', `/api/tables/${id}`)
    const columns = [{ name: 'word', type: 'text' }]
    const { id } = await host.ask<Table>('POST', '/api/tables', {
      teamId: host.teamId,
      name: 'words',
      columns,
    })
    await host.ask('POST', `/api/tables/${id}/rows`, { rows: [{ word: 'first' }] })
    const workflowId = await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'count', type: 'DATA_TABLE', config: { table: 'words', operation: 'count' } },
      ],
      edges: edges('start -> count'),
    })
    const { name } = await host.ask<{ name: string }>('GET', `/api/workflows/${workflowId}`)
    await host.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
    const operator = await host.signUp('OPERATOR')
    await browser.signIn(`#/tables/${id}`, operator.email)
    await button('Edit first').waitFor()
    await button('Upload CSV').waitFor()
    expect(await button('Edit the table').count()).toBe(0)
    await page.goto(`${origin}/#/tables`)
    await browser.heading('Tables')
    await page.getByRole('link', { name: 'words' }).waitFor()
    expect(await button(/New table|Edit|Delete/).count()).toBe(0)
    await button('Sign out').click()
    await browser.signIn('#/tables')
    await button('Delete words').click()
    await button('Delete the table').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(`"${name}"`).waitFor()
    await expectAccessible(page)
    await dialog.getByLabel('Although active workflows use it').check()
    await button('Delete the table').click()
    await page.getByText('No tables').waitFor()
    expect(await list()).toEqual([])
  })
})
