import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()

describe.skipIf(missing)('scheduled reports', () => {
  const browser = useBrowser(() => origin, host.user.email)
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('a report is made, sent at once, turned off, and deleted', async () => {
    const path = `/api/monitoring/teams/${host.teamId}/scheduled-reports`
    await browser.signIn('#/monitoring?tab=reports')
    await page.getByText('No reports').waitFor()
    await page.getByRole('button', { name: 'New report' }).click()
    await page.getByLabel('Name').fill('Weekly figures')
    await page.getByLabel('Schedule').fill('0 7 * *')
    await page.getByLabel('Recipients').fill('ada@example.com\ngrace@example.com')
    await page.getByRole('button', { name: 'Save the report' }).click()
    await page.getByText('must have five fields').first().waitFor()
    await expectAccessible(page)
    await page.getByLabel('Schedule').fill('0 7 * * MON')
    await page.getByRole('button', { name: 'Save the report' }).click()
    await page.getByText('to ada@example.com, grace@example.com').waitFor()
    await page.getByRole('button', { name: 'More about Weekly figures' }).click()
    await page.getByRole('menuitem', { name: 'Send now' }).click()
    await page.getByText('Weekly figures is sent soon').waitFor()
    await page.getByRole('button', { name: 'Mails of Weekly figures' }).click()
    await page.getByRole('dialog').getByText('asked for').waitFor()
    await page.setViewportSize({ width: 390, height: 844 })
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Close' }).click()
    const over = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    )
    expect(over).toBe(0)
    await page.getByRole('switch', { name: 'Send Weekly figures' }).click()
    await page.getByText('Weekly figures is not sent any more').waitFor()
    expect(await host.ask('GET', path)).toMatchObject([
      { enabled: false, recipients: ['ada@example.com', 'grace@example.com'], schedule: '0 7 * * MON' },
    ])
    await page.getByRole('button', { name: 'More about Weekly figures' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the report' }).click()
    await page.getByText('No reports').waitFor()
    expect(await host.ask('GET', path)).toEqual([])
  })
})
