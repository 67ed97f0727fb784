import { readFileSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Frame, type Page } from 'playwright-core'
import { afterEach, beforeEach, expect } from 'vitest'
import { CHROMIUM, lacks } from './programs.ts'
import { PASSWORD } from './service.ts'

const AXE = readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')
export const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/**
 * Calls `tellBlocked` with each thing that the page's policy blocks: the directive, the file and place, and what it
 * was. The browser's own message has only its hash. Without 'report-sample' the event has no sample, but its element has.
 */
const TELL_BLOCKED = `addEventListener('securitypolicyviolation', (event) => {
  const { effectiveDirective, blockedURI, sourceFile, lineNumber, columnNumber, sample, target } = event
  const inline = target instanceof Element ? target.getAttribute('style') || target.textContent : ''
  const what = (sample || inline).slice(0, 400)
  tellBlocked([effectiveDirective, blockedURI, sourceFile + ':' + lineNumber + ':' + columnNumber, what].join(' '))
})`

/** Whether tests in a browser are skipped. */
export const missing = lacks('browser')

let started: Promise<Browser> | undefined

/** The browser that all files of this process use. It ends with the process. */
const findBrowser = () => (started ??= chromium.launch({ executablePath: CHROMIUM, args: FLAGS }))

/**
 * Opens a new page for each test of a describe. A test fails if the page logs an error or a warning, opens a
 * dialog, sends a request to another origin, or has something that its policy blocks. `admin` is who signs in.
 */
export function useBrowser(readOrigin: () => string, admin = 'admin@example.com') {
  let context: BrowserContext
  let page: Page
  let faults: string[]

  beforeEach(async () => {
    faults = []
    const browser = await findBrowser()
    // Without a graphics card, each frame of an animation costs processor time.
    context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' })
    await context.exposeFunction('tellBlocked', (told: string) => faults.push(`blocked: ${told}`))
    await context.addInitScript({ content: TELL_BLOCKED })
    page = await context.newPage()
    page.setDefaultTimeout(80_000)
    page.on('console', (message) => {
      // The browser itself logs every 4xx. How the page handles it is for the tests to check.
      const refused = /^Failed to load resource: the server responded with a status of 4\d\d/.test(
        message.text(),
      )
      if (['error', 'warning'].includes(message.type()) && !refused) faults.push(`console: ${message.text()}`)
    })
    page.on('pageerror', (error) => faults.push(`error: ${error.message}`))
    page.on('dialog', (dialog) => {
      faults.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    context.on('request', (request) => {
      if (new URL(request.url()).origin !== readOrigin()) faults.push(`request: ${request.url()}`)
    })
  })

  afterEach(async () => {
    await context?.close()
    expect(faults).toEqual([])
  })

  return {
    get page() {
      return page
    },
    async signIn(hash = '', email = admin) {
      await page.goto(`${readOrigin()}/${hash}`)
      // Only the # changes after a sign-out: the page before, with fields of the same names, may still be there.
      await page.getByRole('heading', { name: 'Sign in to Perdure' }).waitFor()
      await page.getByLabel('E-mail').fill(email)
      await page.getByLabel('Password').fill(PASSWORD)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('button', { name: 'Sign out' }).waitFor()
    },
    heading: (name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor(),
  }
}

type Violation = { id: string; nodes: { html: string; failureSummary: string }[] }

/** Checks the page by the rules of axe, in the theme that it has. */
export async function expectAccessible(page: Page | Frame, within = 'html'): Promise<void> {
  await page.evaluate(AXE)
  const found = await page.evaluate(async (root) => {
    type Axe = { run: (root: string) => Promise<{ violations: Violation[] }> }
    const { axe } = globalThis as unknown as { axe: Axe }
    const { violations } = await axe.run(root)
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
    )
  }, within)
  expect(found).toEqual([])
}

/** Checks that the edges of the graph have these labels, and that no node's box covers one. */
export async function expectClearLabels(page: Page, texts: string[]): Promise<void> {
  const clear = await page.locator('.graph > svg').evaluate((svg) => {
    const leaves = [...svg.querySelectorAll('.node:not(.loop) .box')].map((box) =>
      box.getBoundingClientRect(),
    )
    return [...svg.querySelectorAll('.handle')].map((label) => {
      const { left, right, top, bottom } = label.getBoundingClientRect()
      const free = leaves.every(
        (box) => box.left >= right || box.right <= left || box.top >= bottom || box.bottom <= top,
      )
      return [label.textContent, free]
    })
  })
  expect(clear).toEqual(texts.map((text) => [text, true]))
}
