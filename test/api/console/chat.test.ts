import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()

/** An active agent on the demo model, with a tool. */
async function makeAgent(name: string): Promise<string> {
  const demo = { teamId: host.teamId, name: `Demo of ${name}`, type: 'DEMO', data: {} }
  const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', demo)
  const { id } = await host.ask<{ id: string }>('POST', '/api/workflows', {
    teamId: host.teamId,
    name,
    nodes: [
      { id: 'chat', type: 'CHAT_TRIGGER', config: {} },
      {
        id: 'agent',
        type: 'AI_AGENT',
        name: 'Answer',
        config: { credentialId, model: 'demo', instructions: 'Help.' },
      },
    ],
    edges: edges('chat -> agent'),
  })
  await host.ask('PUT', `/api/workflows/${id}`, { active: true })
  return id
}

describe.skipIf(missing)('chats with agents', () => {
  const browser = useBrowser(() => origin, host.user.email)
  const { signIn, heading } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  const choose = async (name: string) => {
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByLabel('Agent', { exact: true }).fill(name)
    await page.locator(`datalist option[value="${name}"]`).waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Open the chat' }).click()
  }

  test('a chat is opened, a message is replied to as it comes, with the steps behind it, and the chat is deleted', async () => {
    await makeAgent('Parcel desk')
    await signIn('#/chat')
    await heading('Chat')
    await choose('Parcel desk')
    await page.waitForURL(/#\/chat\/[\w-]+$/)
    const text = 'Where is my <b>parcel</b>?'
    // What is refused is not lost.
    const box = page.getByLabel('Message', { exact: true })
    await page.route('**/messages?resets=1', (route) => route.fulfill({ status: 409 }))
    await box.fill(text)
    await page.keyboard.press('Enter')
    await page.getByText('The service responded with 409').waitFor()
    await expect.poll(() => box.inputValue()).toBe(text)
    await page.getByRole('button', { name: 'Send' }).waitFor()
    await page.unroute('**/messages?resets=1')
    await page.keyboard.press('Enter')
    await page.locator('.message.user').getByText(text).waitFor()
    await page
      .locator('.message.assistant footer')
      .getByText(/tokens$/)
      .waitFor()
    expect(await page.locator('.message b').count()).toBe(0)
    expect(await page.locator('.message').count()).toBe(2)
    await page.getByText('Steps', { exact: true }).click()
    await page.getByRole('table', { name: 'Steps' }).getByText('Answer').first().waitFor()
    await expectAccessible(page)
    await page.setViewportSize({ width: 390, height: 844 })
    expect(
      await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
    ).toBe(0)
    await page.reload()
    await page.locator('.message.user').getByText(text).waitFor()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the chat' }).click()
    await page.getByText('No chats yet').waitFor()
  })

  test('only workflows that one can chat with are offered, and one click begins a chat', {
    tags: 'long',
  }, async () => {
    const plain = { nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }], edges: [] }
    await host.ask('POST', '/api/workflows', { ...plain, teamId: host.teamId, name: 'Plain' })
    await makeAgent('Porter')
    await signIn('#/chat')
    const agents = page.getByRole('region', { name: 'Agents' })
    await agents.getByRole('button', { name: /^Porter/ }).waitFor()
    expect(await agents.getByText('Plain').count()).toBe(0)
    await expectAccessible(page)
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByLabel('Agent', { exact: true }).fill('Plain')
    await page.getByRole('button', { name: 'Open the chat' }).click()
    expect(page.url()).toMatch(/#\/chat$/)
    await page.keyboard.press('Escape')
    await agents.getByRole('button', { name: /^Porter/ }).click()
    await page.waitForURL(/#\/chat\/[\w-]+$/)
  })
})
