import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { hashEmailToken } from '../../../db/people/mails.ts'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { keep } from '../../support/keep.ts'
import { PASSWORD, startService } from '../../support/service.ts'

const host = await keep(startService())
const origin = await host.listen()

/** What the home of a team without executions begins with. */
const HOME = /^Welcome to /

describe.skipIf(missing)('the frame around the pages', () => {
  const browser = useBrowser(() => origin)
  const { signIn, heading } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('users sign in and out, and see if the password is wrong', async () => {
    await page.goto(origin)
    await page.getByLabel('E-mail').fill('admin@example.com')
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    await expectAccessible(page)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await heading(HOME)
    await page.reload()
    await heading(HOME)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await heading('Sign in to Perdure')
    await page.reload()
    await heading('Sign in to Perdure')
  })

  test('users confirm their e-mail by a click in the page of the link, not by opening it', {
    tags: 'long',
  }, async () => {
    const ada = await host.signUp()
    const token = randomUUID()
    const { db } = host.store
    await db.updateTable('users').set({ emailConfirmedAt: null }).where('id', '=', ada.id).execute()
    const expiresAt = new Date(Date.now() + 60_000)
    const mailed = { tokenHash: hashEmailToken(token), userId: ada.id, email: ada.email, expiresAt }
    await db.insertInto('emailTokens').values(mailed).execute()
    await page.goto(`${origin}/#/confirm?token=${token}`)
    await page.getByLabel('E-mail').fill(ada.email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByText(`Is ${ada.email} your e-mail?`).waitFor()
    await page.getByRole('link', { name: 'Confirm your e-mail' }).click()
    await page.getByText('is not confirmed yet').waitFor()
    await page.getByRole('button', { name: 'Send the link again' }).click()
    await page.getByRole('alert').getByText('This service sends no mail').waitFor()
    await page.goBack()
    await page.getByRole('button', { name: 'Confirm', exact: true }).click()
    await page.getByText(`${ada.email} is confirmed.`).waitFor()
    expect(await page.getByRole('link', { name: 'Confirm your e-mail' }).count()).toBe(0)
    expect(page.url()).toBe(`${origin}/#/confirm`)
  })

  test('a session that ends keeps the page, and asks to sign in again', { tags: 'long' }, async () => {
    const user = await host.signUp('OPERATOR')
    await signIn('#/approvals?status=REJECTED', user.email)
    await heading('Approvals')
    await host.store.db.deleteFrom('sessions').where('userId', '=', user.id).execute()
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    expect(await dialog.getByLabel('E-mail').inputValue()).toBe(user.email)
    await dialog.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await heading('Approvals')
    expect(page.url()).toBe(`${origin}/#/approvals?status=REJECTED`)
  })

  test('who loses a role is not offered what it allowed, and a refused act says so', async () => {
    const user = await host.signUp('BUILDER')
    await signIn('#/variables', user.email)
    const create = page.getByRole('button', { name: 'New variable' }).first()
    await create.click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Key').fill('region')
    const { db } = host.store
    await db.updateTable('members').set({ role: 'OPERATOR' }).where('userId', '=', user.id).execute()
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByRole('alert').getByText('BUILDER').waitFor()
    await create.waitFor({ state: 'detached' })
    expect(await dialog.getByLabel('Key').inputValue()).toBe('region')
    // A long value does not widen the page.
    const value = 'wide '.repeat(200)
    await host.call('POST', '/api/variables', host.admin, { teamId: host.teamId, key: 'long_one', value })
    await page.reload()
    // A browser's clock that is a day fast makes nothing older.
    await page.clock.setSystemTime(Date.now() + 86_400_000)
    await page.getByText('long_one').waitFor()
    await page.getByRole('link', { name: 'Approvals' }).click()
    await page.getByRole('link', { name: 'Variables' }).click()
    await page
      .getByRole('row', { name: /long_one/ })
      .getByText(/just now|\dm ago/)
      .waitFor()
    expect(await create.count()).toBe(0)
    await page.setViewportSize({ width: 390, height: 800 })
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
  })

  test('another user in another tab ends the session of this one', async () => {
    const [ada, bob] = [await host.signUp('OPERATOR'), await host.signUp('OPERATOR')]
    await signIn('#/approvals', ada.email)
    const [name, value] = bob.cookie.split('=') as [string, string]
    await page.context().addCookies([{ name, value, url: origin }])
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))")
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.reload()
    await heading('Approvals')
  })

  test('a page comes to itself after the service was away, also where nothing may be kept', {
    tags: 'long',
  }, async () => {
    await page.addInitScript(
      "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no') } })",
    )
    await signIn('#/audit')
    await heading('Audit')
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    await page.getByText('The chain is intact').waitFor()
    await page.route('**/api/widgets*', (route) =>
      route.fulfill({ status: 429, headers: { 'retry-after': '1' } }),
    )
    await page.evaluate("location.hash = '/widgets'")
    await page.getByText('The service responded with 429').waitFor()
    await page.unroute('**/api/widgets*')
    await page.getByText('The service responded with 429').waitFor({ state: 'detached' })
    await page.getByRole('heading', { name: 'No widgets' }).waitFor()
  })

  test('who is in no team creates one', { tags: 'long' }, async () => {
    const user = await host.signUp()
    await host.store.db.deleteFrom('members').where('userId', '=', user.id).execute()
    await signIn('', user.email)
    await heading('Create a team')
    const name = `Research ${randomUUID().slice(0, 8)}`
    await page.getByLabel('Name').fill(name)
    await page.getByRole('button', { name: 'Create team' }).click()
    await heading(HOME)
    expect(await page.getByLabel('Team').locator('option:checked').textContent()).toBe(name)
  })

  test('the keyboard goes everywhere: the palette, keys of pages, the list of keys, the skip link', {
    tags: 'long',
  }, async () => {
    const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
    const name = `Palette ${randomUUID()}`
    const json = { teamId: host.teamId, name, nodes: [start], edges: [] }
    const made = await host.call('POST', '/api/workflows', host.admin, json)
    expect(made.status).toBe(201)
    await signIn()
    await heading(HOME)
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toMatch(HOME)
    await page.keyboard.press('g')
    await page.keyboard.press('a')
    await heading('Approvals')
    expect(await page.title()).toBe('Approvals · Perdure')
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Approvals')
    await page.keyboard.press('?')
    const help = page.getByRole('dialog', { name: 'Keyboard' })
    await help.getByText('Go to Approvals').waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Escape')
    await help.waitFor({ state: 'detached' })

    await page.keyboard.press('Control+k')
    const field = page.getByRole('combobox', { name: 'Search pages, workflows and commands' })
    await field.waitFor()
    await field.fill('executions: failed')
    await page.getByText('Nothing found').waitFor()
    await field.fill(name)
    await page.getByRole('option', { name }).waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.hash !== '#/approvals')
    expect(await page.evaluate(() => performance.getEntriesByType('navigation').length)).toBe(1)

    await page.goto(`${origin}/#/executions`)
    await heading('Executions')
    await page.keyboard.press('Control+k')
    await field.fill('executions: failed')
    await page.getByRole('option', { name: 'Show executions: Failed' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(/#\/executions\?status=FAILED$/)
    await page.reload()
    await heading('Executions')
    await page.evaluate(() => (document.activeElement as HTMLElement).blur())
    await page.keyboard.press('Tab')
    await page.getByRole('link', { name: 'Skip to the page' }).press('Enter')
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main')
  })

  test('the theme is chosen and kept, and on a phone the menu is a drawer', { tags: 'long' }, async () => {
    await signIn()
    await heading(HOME)
    await page.getByRole('button', { name: 'Theme' }).click()
    await page.getByRole('menuitem', { name: 'Dark' }).click()
    const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
    await expect.poll(ground).toBe('rgb(15, 17, 21)')
    await expectAccessible(page)
    await page.reload()
    await heading(HOME)
    expect(await ground()).toBe('rgb(15, 17, 21)')
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('button', { name: 'Menu' }).click()
    const drawer = page.getByRole('dialog', { name: 'Menu' })
    await drawer.getByRole('link', { name: 'Approvals' }).click()
    await heading('Approvals')
    await drawer.waitFor({ state: 'detached' })
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    await expectAccessible(page)
  })
})
