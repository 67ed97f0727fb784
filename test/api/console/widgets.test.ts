import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { createChatting } from '../../support/chat/chatting.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()
const { simpleAgent } = createChatting(host)

type Widget = { key: string; enabled: boolean; theme: object; allowedOrigins: string[] }

describe.skipIf(missing)('the widgets of a team', () => {
  const browser = useBrowser(() => origin, host.user.email)
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('a widget is made, its snippet shown, its key changed, and deleted', async () => {
    const workflowId = await simpleAgent()
    const { name } = await host.ask<{ name: string }>('GET', `/api/workflows/${workflowId}`)
    const list = () => host.ask<Widget[]>('GET', `/api/widgets?teamId=${host.teamId}`)
    await browser.signIn('#/widgets')
    await page.getByText('No widgets').waitFor()
    await page.getByRole('button', { name: 'New widget' }).click()
    await page.getByLabel('Name').fill('Help desk')
    await page.getByLabel('Workflow', { exact: true }).fill(name)
    await page.getByLabel('Workflow', { exact: true }).press('Tab')
    await page.getByLabel('Pages that may show it').fill('nowhere')
    await page.getByRole('button', { name: 'Save the widget' }).click()
    await page.getByText('must be an origin').waitFor()
    await expectAccessible(page)
    await page.getByLabel('Pages that may show it').fill('https://www.example.com')
    await page.getByLabel('Title').fill('Ask us')
    await page.getByLabel('Position').selectOption('bottom-left')
    await page.getByRole('button', { name: 'Save the widget' }).click()
    await page.getByRole('heading', { name: 'Embed Help desk' }).waitFor()
    const [made] = await list()
    expect(made).toMatchObject({
      ...{ allowedOrigins: ['https://www.example.com'], enabled: true },
      theme: { title: 'Ask us', position: 'bottom-left' },
    })
    await page.getByText(`<script src="${origin}/widget.js" data-key="${made!.key}"></script>`).waitFor()
    await page.getByText(`<iframe src="${origin}/widget/${made!.key}"`).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Close' }).click()
    await page.setViewportSize({ width: 390, height: 844 })
    const over = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    )
    expect(over).toBe(0)
    await expectAccessible(page)
    const more = page.getByRole('button', { name: 'More about Help desk' })
    await more.click()
    await page.getByRole('menuitem', { name: 'New key' }).click()
    await page.getByRole('button', { name: 'Make a new key' }).click()
    await page.getByRole('heading', { name: 'Embed Help desk' }).waitFor()
    expect((await list())[0]!.key).not.toBe(made!.key)
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('switch', { name: 'Enable Help desk' }).click()
    await page.getByText('Visitors cannot use Help desk any more').waitFor()
    expect(await list()).toMatchObject([{ enabled: false }])
    await more.click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the widget' }).click()
    await page.getByText('No widgets').waitFor()
    expect(await list()).toEqual([])
  })
})
