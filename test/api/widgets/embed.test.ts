import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { joinScript } from '../../../api/widgets/embed.ts'
import { expectAccessible, FLAGS, missing } from '../../support/browser.ts'
import { createChatting } from '../../support/chat/chatting.ts'
import { createVisiting } from '../../support/chat/visiting.ts'
import { keep } from '../../support/keep.ts'
import { CHROMIUM } from '../../support/programs.ts'
import { shareRunning } from '../../support/running.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import { serveText } from '../../support/servers/pages.ts'

const host = await keep(shareRunning())
const { agent, credential } = createChatting(host)
const { addWidget, pathOf, visit } = createVisiting(host)
const base = await host.listen()

describe('the script', () => {
  test('is one small text that any page may load and keep for a while', async () => {
    const text = joinScript()
    expect(text).not.toMatch(/^(import|export) /m)
    expect(() => new Function(text)).not.toThrow()
    expect(gzipSync(text).length).toBeLessThan(30_000)
    // Nothing in it makes markup of a text.
    expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\b/)
    const response = await fetch(`${base}/widget.js`, { headers: { 'accept-encoding': 'gzip' } })
    expect(await response.text()).toBe(text)
    const headers = Object.fromEntries(response.headers)
    expect(headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'content-encoding': 'gzip',
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
      'cache-control': expect.stringContaining('max-age=300'),
      'x-content-type-options': 'nosniff',
    })
    const again = await fetch(`${base}/widget.js`, { headers: { 'if-none-match': headers.etag! } })
    expect([again.status, again.headers.get('cross-origin-resource-policy')]).toEqual([304, 'cross-origin'])
  })
})

describe('the page for frames', () => {
  test('may be framed by exactly the origins of the widget, and runs nothing but the script', async () => {
    const { key, id } = await addWidget({
      allowedOrigins: ['https://a.example.com', 'http://b.example.com:8080'],
      theme: { title: '<b>"Hi"</b>' },
    })
    const response = await host.request(`/widget/${key}`)
    expect(response.headers.get('x-frame-options')).toBeNull()
    const policy = response.headers.get('content-security-policy')!
    expect(policy).toContain('frame-ancestors https://a.example.com http://b.example.com:8080;')
    expect(policy).toContain("script-src 'self';")
    expect(policy).not.toContain('unsafe')
    const page = await response.text()
    expect(page).toContain('<title>&lt;b&gt;&quot;Hi&quot;&lt;/b&gt;</title>')
    await host.ask('PUT', `/api/widgets/${id}`, { allowedOrigins: [] })
    const closed = await host.request(`/widget/${key}`)
    expect(closed.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    const none = await host.request('/widget/wk_none')
    expect([none.status, none.headers.get('x-frame-options')]).toEqual([404, 'DENY'])
  })

  test("has a token that lets the service's own origin in, and no other", async () => {
    const { key } = await addWidget()
    const other = await addWidget()
    const page = await (await host.request(`/widget/${key}`)).text()
    const token = /data-page="([^"]+)"/.exec(page)![1]!
    const own = 'http://127.0.0.1:3000'
    const open = (origin: string | null, header: Record<string, string>, at = key) =>
      visit('POST', pathOf(at, '/sessions'), { origin, json: {}, headers: header })
    expect((await open(own, {})).status).toBe(403)
    expect((await open('https://evil.example.com', { 'x-widget-page': token })).status).toBe(403)
    expect((await open(own, { 'x-widget-page': token }, other.key)).status).toBe(403)
    expect((await open(own, { 'x-widget-page': `${token}x` })).status).toBe(403)
    const opened = await open(own, { 'x-widget-page': token })
    expect(opened.status).toBe(201)
    const { token: visitor } = (await opened.json()) as { token: string }
    // Who came by the page goes on there: browsers send no origin with what it reads.
    expect((await visit('GET', pathOf(key, '/messages'), { origin: null, token: visitor })).status).toBe(200)
    const elsewhere = await visit('GET', pathOf(key, '/messages'), {
      origin: 'https://evil.example.com',
      token: visitor,
    })
    expect(elsewhere.status).toBe(403)
    const byScript = (await (await visit('POST', pathOf(key, '/sessions'), { json: {} })).json()) as {
      token: string
    }
    const bare = await visit('GET', pathOf(key, '/messages'), { origin: null, token: byScript.token })
    expect(bare.status).toBe(403)
  })
})

/** The tree of the widget on a page, for what runs there. */
const ROOT = "document.querySelector('perdure-widget').shadowRoot"

describe.skipIf(missing)('in Chromium', () => {
  let browser: Awaited<ReturnType<typeof chromium.launch>>
  let key = ''
  let widgetId = ''
  const shop = { body: '' }
  const thief = { body: '' }
  const shopSite = keep(serveText(() => shop.body))
  const thiefSite = keep(serveText(() => thief.body))

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS })
    const model = await startOpenAi(({ body }) => {
      const asked = JSON.stringify(body.messages)
      return asked.includes('markup')
        ? {
            text: [
              '<img src=x onerror="document.title=1"> **bold** ',
              'and [a](javascript:alert(1)) [b](https://example.com/)',
            ],
          }
        : asked.includes('slowly')
          ? { text: ['Once ', 'upon ', 'a ', 'time.'], paceMs: 700 }
          : { text: ['Your parcel ', 'is on ', 'its way.'], paceMs: 20 }
    })
    const config = {
      credentialId: await credential('OPENAI_COMPATIBLE', { apiKey: 'sk-x', baseUrl: model.url }),
      ...{ model: 'm', prompt: '{{ $trigger.message }}' },
    }
    const workflowId = await agent([{ id: 'llm', type: 'LLM', config }], ['chat -> llm'])
    const widget = await addWidget({
      workflowId,
      allowedOrigins: [(await shopSite).url],
      theme: { title: 'Help desk', welcomeText: 'Hello *you*' },
      collectEmail: true,
    })
    key = widget.key
    widgetId = widget.id
    const snippet = `<script src="${base}/widget.js" data-key="${key}"></script>`
    const page = `<!doctype html><title>A shop</title><style>* { color: red !important; font-size: 40px !important } body * { display: none }</style><h1>Shop</h1>`
    shop.body = `${page}${snippet}`
    thief.body = `${page}${snippet}<iframe src="${base}/widget/${key}"></iframe>`
  })
  afterAll(() => browser?.close())

  /** Opens a page, and collects what its console says. */
  async function visitPage(url: string, size = { width: 1000, height: 800 }) {
    const context = await browser.newContext({ viewport: size })
    const page = await context.newPage()
    const said: string[] = []
    page.on('console', (message) => said.push(`${message.type()}: ${message.text()}`))
    page.on('pageerror', (error) => said.push(`error: ${error.message}`))
    await page.goto(url)
    return { page, said, close: () => context.close() }
  }

  async function chat(page: Page | ReturnType<Page['frameLocator']>) {
    await page.getByLabel('Your e-mail address').fill('ada@example.com')
    await page.getByRole('button', { name: 'Start chat' }).click()
    const input = page.getByRole('textbox', { name: 'Your message' })
    await input.fill('Where is my parcel?')
    await input.press('Enter')
    await page.getByRole('log').getByText('Your parcel is on its way.').waitFor()
    // The last word comes before the reply is saved.
    await expect.poll(() => page.getByRole('button', { name: 'Send' }).isEnabled()).toBe(true)
  }

  test('a page of an allowed origin shows it, by keyboard alone, and remembers what was said', async () => {
    const { page, said, close } = await visitPage((await shopSite).url)
    const launcher = page.getByRole('button', { name: 'Open chat: Help desk' })
    await launcher.waitFor()
    expect(await launcher.getAttribute('aria-expanded')).toBe('false')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Help desk' })
    await dialog.waitFor()
    await page.keyboard.type('ada@example.com')
    await page.keyboard.press('Enter')
    await page.getByRole('textbox', { name: 'Your message' }).waitFor()
    await page.keyboard.type('Where is my parcel?')
    await page.keyboard.press('Enter')
    await page.getByRole('log').getByText('Your parcel is on its way.').waitFor()
    // The whole reply is told to those who cannot see it.
    await expect.poll(() => page.getByRole('status').textContent()).toBe('Your parcel is on its way.')
    // The page's own styles do not reach it.
    expect(await page.evaluate(`getComputedStyle(${ROOT}.querySelector('.panel')).color`)).toBe(
      'rgb(27, 31, 36)',
    )
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await expectAccessible(page, 'perdure-widget')
    }
    await page.keyboard.press('Escape')
    expect(await dialog.isVisible()).toBe(false)
    expect(await page.evaluate(`${ROOT}.activeElement.className`)).toBe('launcher')
    await page.reload()
    await launcher.click()
    await page.getByRole('log').getByText('Your parcel is on its way.').waitFor()
    expect(said).toEqual([])
    await close()
  })

  test('what a model says is a text, whatever it looks like', async () => {
    const { page, said, close } = await visitPage((await shopSite).url)
    await page.getByRole('button', { name: /Open chat/ }).click()
    await chat(page)
    const input = page.getByRole('textbox', { name: 'Your message' })
    await input.fill('Send markup')
    await input.press('Enter')
    const reply = page.getByRole('log').locator('.said').last()
    await expect.poll(() => reply.textContent()).toContain('[a](javascript:alert(1)) b')
    expect(await reply.textContent()).toContain('<img src=x onerror="document.title=1">')
    expect(await reply.locator('img').count()).toBe(0)
    expect(await reply.locator('strong').textContent()).toBe('bold')
    const links = await reply
      .locator('a')
      .evaluateAll((all) => all.map((a) => [a.getAttribute('href'), a.getAttribute('rel')]))
    expect(links).toEqual([['https://example.com/', 'noopener noreferrer nofollow']])
    expect(said).toEqual([])
    await close()
  })

  test('a message whose reply was lost on the way is not posted twice', { tags: 'long' }, async () => {
    const { page, close } = await visitPage((await shopSite).url)
    const sent: (string | undefined)[] = []
    await page.route('**/messages?resets=1', async (route) => {
      sent.push(route.request().headers()['idempotency-key'])
      if (sent.length > 2) return route.continue()
      // A proxy says so while the service is started anew.
      if (sent.length === 1)
        return route.fulfill({ status: 503, headers: { 'access-control-allow-origin': '*' } })
      // The service gets it, and replies.
      await route.fetch()
      await route.abort('connectionreset')
    })
    await page.getByRole('button', { name: /Open chat/ }).click()
    await chat(page)
    expect(sent).toHaveLength(3)
    expect(new Set(sent).size).toBe(1)
    await page.reload()
    await page.getByRole('button', { name: /Open chat/ }).click()
    await page.getByRole('log').getByText('Your parcel is on its way.').waitFor()
    expect(await page.getByRole('log').locator('.mine').count()).toBe(1)
    await close()
  })

  test('a page that is loaded anew in mid-reply goes on with it, and a refused text is given back', {
    tags: 'long',
  }, async () => {
    const { page, close } = await visitPage((await shopSite).url)
    // A clock that is a day fast ends no session.
    await page.clock.setSystemTime(Date.now() + 86_400_000)
    await page.getByRole('button', { name: /Open chat/ }).click()
    await chat(page)
    const input = page.getByRole('textbox', { name: 'Your message' })
    await input.fill('Tell it slowly')
    await input.press('Enter')
    await page.getByRole('log').getByText('Once').waitFor()
    await page.reload()
    await page.clock.setSystemTime(Date.now() + 86_400_000)
    await page.getByRole('button', { name: /Open chat/ }).click()
    await page.getByRole('log').getByText('Once upon a time.').waitFor()
    expect(await page.getByRole('log').locator('.mine').allTextContents()).toEqual([
      'Where is my parcel?',
      'Tell it slowly',
    ])
    await expect.poll(() => page.getByRole('button', { name: 'Send' }).isEnabled()).toBe(true)
    const headers = { 'access-control-allow-origin': '*', 'retry-after': '60' }
    await page.route('**/messages?resets=1', (route) => route.fulfill({ status: 429, headers }))
    await input.fill('And then?')
    await input.press('Enter')
    await page.getByRole('log').getByText('Please try again in a minute.').waitFor()
    expect(await input.inputValue()).toBe('And then?')
    expect(await page.getByRole('log').locator('.mine').count()).toBe(2)
    await close()
  })

  test('a widget that is closed meanwhile says so', async () => {
    const { page, close } = await visitPage((await shopSite).url)
    await page.getByRole('button', { name: /Open chat/ }).click()
    await chat(page)
    await host.ask('PUT', `/api/widgets/${widgetId}`, { enabled: false })
    const input = page.getByRole('textbox', { name: 'Your message' })
    await input.fill('Are you there?')
    await input.press('Enter')
    await page.getByRole('log').getByText('This chat is closed at the moment.').waitFor()
    expect(await input.isVisible()).toBe(false)
    await host.ask('PUT', `/api/widgets/${widgetId}`, { enabled: true })
    await close()
  })

  test('on a phone it covers the page', async () => {
    const { page, close } = await visitPage((await shopSite).url, { width: 390, height: 700 })
    await page.getByRole('button', { name: /Open chat/ }).click()
    // It slides in.
    await expect
      .poll(() => page.getByRole('dialog').boundingBox())
      .toEqual({ x: 0, y: 0, width: 390, height: 700 })
    // What is behind it is not reached by Tab.
    for (let press = 0; press < 8; press++) await page.keyboard.press('Tab')
    expect(await page.evaluate(`${ROOT}.activeElement.closest('.panel') !== null`)).toBe(true)
    await close()
  })

  test('a page of a third origin gets neither the widget nor the frame', async () => {
    const { page, said, close } = await visitPage((await thiefSite).url)
    await expect
      .poll(() => said.filter((line) => /CORS|frame-ancestors|Refused to frame|Framing/i.test(line)).length)
      .toBeGreaterThan(1)
    expect(await page.locator('perdure-widget').count()).toBe(0)
    const frame = page.frames().find((one) => one !== page.mainFrame())
    expect((await frame?.locator('perdure-widget').count()) ?? 0).toBe(0)
    await close()
  })

  test('a page of an allowed origin shows it in a frame', { tags: 'long' }, async () => {
    const before = shop.body
    shop.body = `<!doctype html><title>A shop</title><iframe title="Chat" width="400" height="600" src="${base}/widget/${key}"></iframe>`
    const { page, said, close } = await visitPage((await shopSite).url)
    const frame = page.frameLocator('iframe')
    await frame.getByRole('dialog', { name: 'Help desk' }).waitFor()
    await chat(frame)
    const inside = page.frames().find((one) => one.url().startsWith(base))!
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await expectAccessible(inside)
    }
    expect(said).toEqual([])
    shop.body = before
    await close()
  })
})
