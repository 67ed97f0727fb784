import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()

describe.skipIf(missing)('notification channels', () => {
  const browser = useBrowser(() => origin, host.user.email)
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('a webhook is made, tested in vain, given another secret, turned off, and deleted', async () => {
    const path = `/api/monitoring/teams/${host.teamId}/channels`
    await browser.signIn('#/monitoring?tab=channels')
    await page.getByText('No channels').waitFor()
    await page.getByRole('button', { name: 'New channel' }).click()
    await page.getByLabel('Name').fill('On call')
    await page.getByLabel('Type').selectOption('WEBHOOK')
    await page.getByLabel('URL').fill('nowhere')
    await page.getByRole('button', { name: 'Save the channel' }).click()
    await page.locator('.wrong').waitFor()
    await expectAccessible(page)
    // Nothing listens on the port for discarding.
    await page.getByLabel('URL').fill('http://127.0.0.1:9/alerts')
    await page.getByRole('button', { name: 'Save the channel' }).click()
    const secret = await page.getByText(/^whsec_/).textContent()
    await page.getByRole('button', { name: 'I have copied it' }).click()
    await page.getByRole('button', { name: 'Test On call' }).click()
    await page.getByText('Not taken').waitFor()
    await page.setViewportSize({ width: 390, height: 844 })
    await expectAccessible(page)
    const over = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    )
    expect(over).toBe(0)

    await page.getByRole('button', { name: 'More about On call' }).click()
    await page.getByRole('menuitem', { name: 'New secret' }).click()
    await page.getByRole('button', { name: 'Make a new secret' }).click()
    expect(await page.getByText(/^whsec_/).textContent()).not.toBe(secret)
    await page.getByRole('button', { name: 'I have copied it' }).click()
    await page.getByRole('switch', { name: 'Tell On call' }).click()
    await page.getByText('On call is not told any more').waitFor()
    expect(await host.ask('GET', path)).toMatchObject([{ name: 'On call', enabled: false }])
    await page.getByRole('button', { name: 'More about On call' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the channel' }).click()
    await page.getByText('No channels').waitFor()
    expect(await host.ask('GET', path)).toEqual([])
  })
})
