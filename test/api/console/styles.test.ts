import { readdir, readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()

/** The stylesheets of pages: those of the kit, and the first ones, are for all. */
async function readStyles(): Promise<[file: string, text: string][]> {
  const folder = new URL('../../../api/console/', import.meta.url)
  const files = (await readdir(folder, { recursive: true })).filter(
    (file) => file.endsWith('.css') && !/^(dist|old|kit)\/|^(base|tokens)\.css$/.test(file),
  )
  return Promise.all(files.map(async (file) => [file, await readFile(new URL(file, folder), 'utf8')]))
}

test('no class has styles of two pages, unless each is within a scope of its own', async () => {
  const owners = new Map<string, string[]>()
  const scoped = new Set<string>()
  for (const [file, text] of await readStyles()) {
    if (text.includes('@scope')) scoped.add(file)
    // A class alone: one within another is that one's.
    const alone = new Set([...text.matchAll(/^\s*\.([\w-]+)(?=[ ,]*[{,]?$)/gm)].map(([, name]) => name!))
    for (const name of alone) owners.set(name, [...(owners.get(name) ?? []), file])
  }
  expect(owners.size).toBeGreaterThan(100)
  const shared = [...owners].filter(
    ([, files]) => files.length > 1 && files.some((file) => !scoped.has(file)),
  )
  expect(shared).toEqual([])
})

/** How the page's parts are laid out, without what depends on what they say. */
function look(): string[] {
  const keys = ['display', 'padding', 'margin', 'gap', 'font-size', 'border-width', 'height'] as const
  const shown = document.querySelectorAll(
    '[data-testid^=rf__node-], [data-testid^=rf__node-] *, main > * > *',
  )
  return [...shown].map((one) => {
    const style = getComputedStyle(one)
    return [one.tagName, ...keys.map((key) => style.getPropertyValue(key))].join(' | ')
  })
}

describe.skipIf(missing)('the styles of pages', () => {
  const browser = useBrowser(() => origin, host.user.email)
  const { signIn } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('the editor looks the same after other pages as it does when it is loaded first', {
    tags: 'long',
  }, async () => {
    const id = await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'a', type: 'SET', config: { values: {} } },
      ],
      edges: edges('start -> a'),
    })
    const run = await host.execute(id, {})
    await host.ended(run)
    const card = page.getByTestId('rf__node-a')
    const editor = `#/workflows/${id}/edit`
    const others = [`#/executions/${run}?view=steps&node=a`, `#/workflows/${id}`, '#/settings']
    await signIn(editor)
    await page.reload()
    await card.waitFor()
    const fresh = await page.evaluate(look)
    // A page that has lost its styles looks the same each time, too.
    expect((await page.getByRole('application').boundingBox())?.height).toBeGreaterThan(600)
    expect(fresh.some((one) => one.includes('flex | 0px 12px | 0px | 10px'))).toBe(true)
    for (const other of others) {
      await page.goto(`${origin}/${other}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.goto(`${origin}/${editor}`)
      await card.waitFor()
      await expect.poll(() => page.evaluate(look), { message: other }).toEqual(fresh)
    }
  })
})
