import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()

describe.skipIf(missing)('the canvas and the panel beside it', () => {
  const browser = useBrowser(() => origin, host.user.email)
  const { signIn } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })
  const node = (id: string) => page.getByTestId(`rf__node-${id}`)
  const panel = (name: string) =>
    page.getByRole('complementary', { name: `Settings of ${name}`, exact: true })
  const showAll = () => page.getByRole('button', { name: 'Fit View' }).click()
  const open = () => page.getByRole('complementary', { name: /^Settings/ }).count()
  const ids = () => page.getByTestId(/^rf__node-/).evaluateAll((all) => all.map((one) => one.dataset.id))
  const press = (key: string) => page.keyboard.press(key)

  test('the panel shows the one node that is chosen, and what is deleted is what one reads', async () => {
    const graph = ['start MANUAL_TRIGGER', 'a SET', 'b NO_OP', 'c NO_OP'].map((words, at) => {
      const [id = '', type = ''] = words.split(' ')
      return {
        id,
        name: id,
        type,
        config: type === 'SET' ? { values: {} } : {},
        position: { x: at * 290, y: 0 },
      }
    })
    const id = await host.create({
      nodes: graph,
      edges: edges('start -> a', 'a -> b', 'b -> c', 'start -> c'),
    })
    await signIn(`#/workflows/${id}/edit`)
    await node('a').dblclick()
    await panel('a').waitFor()
    // Another node is chosen while it is open, and removed.
    await node('b').click()
    await panel('b').waitFor()
    expect(await open()).toBe(1)
    await press('Delete')
    await node('b').waitFor({ state: 'detached' })
    expect([await ids(), await open()]).toEqual([['start', 'a', 'c'], 0])
    await press('Control+z')
    await node('b').waitFor()
    // The settings of a new node are open at once; the keys stay the canvas's, until Enter takes them there.
    await node('c').click()
    await press('a')
    await page.keyboard.type('code')
    await press('Enter')
    await panel('Code').waitFor()
    await expect
      .poll(() => page.evaluate(() => (document.activeElement as HTMLElement).dataset.id))
      .toBe('code')
    await press('Enter')
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('node-dock')
    await expectAccessible(page)
    await press('Escape')
    await expect.poll(open).toBe(0)
    await press('Delete')
    await expect.poll(ids).not.toContain('code')
    await showAll()
    // Several have no panel, and neither has what an undo takes away.
    await node('a').dblclick()
    await panel('a').waitFor()
    await node('b').click({ modifiers: ['Control'] })
    await expect.poll(open).toBe(0)
    await node('b').click()
    await press('a')
    await page.keyboard.type('wait')
    await press('Enter')
    await panel('Wait').waitFor()
    await press('Control+z')
    await expect.poll(open).toBe(0)
    // The settings of the workflow are no node's: Delete removes none beside them.
    await node('b').click()
    await page.getByRole('button', { name: 'More', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Settings' }).click()
    await page.getByRole('region', { name: 'Settings of the workflow' }).waitFor()
    await page.getByRole('button', { name: 'Fit View' }).press('Delete')
    expect(await ids()).toContain('b')
    await node('b').click()
    await panel('b').waitFor()
  })

  test('edges of new handles are drawn at once, and lie under the cards', { tags: 'long' }, async () => {
    const places = { start: [0, 0], each: [290, -60], one: [24, 56], two: [314, 56], last: [1100, 0] }
    const at = (id: keyof typeof places) => ({ x: places[id][0]!, y: places[id][1]! })
    const id = await host.create({
      nodes: [
        { id: 'start', name: 'start', type: 'MANUAL_TRIGGER', position: at('start') },
        { id: 'each', name: 'each', type: 'FOR_EACH', config: { items: [1] }, position: at('each') },
        { id: 'one', name: 'one', type: 'NO_OP', parentId: 'each', position: at('one') },
        {
          id: 'two',
          name: 'two',
          type: 'SWITCH',
          config: { cases: [{ handle: 'x', condition: 'true' }] },
          parentId: 'each',
          position: at('two'),
        },
        { id: 'three', name: 'three', type: 'NO_OP', parentId: 'each', position: { x: 604, y: 56 } },
        {
          id: 'last',
          name: 'last',
          type: 'HTTP_REQUEST',
          config: { url: 'https://a.example' },
          position: at('last'),
        },
      ],
      edges: edges('start -> each', 'each -> last', 'one -> two', 'one -> three', 'start -> last'),
    })
    await signIn(`#/workflows/${id}/edit`)
    const wires = () => page.getByTestId(/^rf__edge-/).count()
    await expect.poll(wires).toBe(5)
    // What lies on top at the middle of a card is the card, also where an edge passes by.
    const struck = () =>
      page.getByTestId(/^rf__node-/).evaluateAll((all) =>
        all.flatMap((one) => {
          const { x, y, width, height } = one.getBoundingClientRect()
          const points = [0.1, 0.3, 0.5, 0.7].map((part) =>
            document.elementFromPoint(x + width * part, y + height / 2),
          )
          return points.some((top) => top?.closest('[data-testid^=rf__edge-]')) && one.dataset.id !== 'each'
            ? [one.dataset.id]
            : []
        }),
      )
    expect(await struck()).toEqual([])
    // In the loop, an edge is not hidden by the loop's box.
    const [one, two] = await Promise.all(['one', 'two'].map((name) => node(name).boundingBox()))
    await page.mouse.move((one!.x + one!.width + two!.x) / 2, one!.y + one!.height / 2)
    await page.getByRole('button', { name: 'Remove this connection' }).waitFor()
    // A new exit for errors, and what follows it.
    await node('last').dblclick()
    await page.getByText('When it fails').click()
    await page.getByLabel('If it fails').selectOption('BRANCH')
    await page.getByRole('button', { name: 'Add a node after last, error' }).click()
    await page.getByRole('option', { name: /^Do nothing/ }).click()
    await expect.poll(wires).toBe(6)
    await showAll()
    // A case that gets another name keeps its edge on the screen.
    await node('two').click()
    await page.getByRole('button', { name: 'Add a node after two, x' }).click()
    await page.getByRole('option', { name: /^Do nothing/ }).click()
    await expect.poll(wires).toBe(7)
    await showAll()
    await node('two').click()
    await page.getByLabel('Handle').first().fill('renamed')
    await page.getByRole('button', { name: 'Add a node after two, renamed' }).click()
    await page.getByRole('option', { name: /^Do nothing/ }).click()
    await expect.poll(wires).toBe(8)
  })
})
