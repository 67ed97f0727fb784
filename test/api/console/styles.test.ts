import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'

const host = await keep(startRunning())
const origin = await host.listen()

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
  const browser = useBrowser(() => origin)
  const { signIn } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('the editor looks the same after other pages as it does when it is loaded first', async () => {
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
    for (const other of others) {
      await page.goto(`${origin}/${other}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.goto(`${origin}/${editor}`)
      await card.waitFor()
      await expect.poll(() => page.evaluate(look), { message: other }).toEqual(fresh)
    }
  })
})
