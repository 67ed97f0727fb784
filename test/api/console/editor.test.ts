import { randomUUID } from 'node:crypto'
import type { Locator, Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const host = await keep(shareRunning())
const origin = await host.listen()

type Stored = {
  version: number
  nodes: { id: string; type: string; parentId?: string; position?: { x: number; y: number } }[]
  edges: { source: string; target: string; sourceHandle: string | null }[]
  settings: { notes: { text: string }[] }
}

describe.skipIf(missing)('the editor of workflows', () => {
  const browser = useBrowser(() => origin, host.user.email)
  const { signIn } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })
  const node = (id: string) => page.locator(`.react-flow__node[data-id="${id}"]`)
  const shown = () => page.locator('.react-flow__node').count()
  const option = (name: string) => page.getByRole('option', { name: new RegExp(`^${name}`) })
  const press = (key: string) => page.keyboard.press(key)

  test('a graph of five nodes is built by mouse alone, and executed', async () => {
    await signIn('#/workflows/new')
    await node('start').waitFor()
    await expectAccessible(page)
    // By the + behind a node.
    await page.getByRole('button', { name: 'Add a node after start', exact: true }).click()
    await expectAccessible(page)
    await option('Set values').click()
    await node('set').waitFor()
    // From the palette to a place of the canvas, then from handle to handle.
    await page.getByRole('button', { name: 'Add node' }).click()
    const canvas = (await page.locator('.react-flow__pane').boundingBox())!
    const place = { x: canvas.width * 0.6, y: canvas.height * 0.75 }
    await option('Code').dragTo(page.locator('.react-flow__pane'), { targetPosition: place })
    await node('code').waitFor()
    await page.getByRole('button', { name: 'Close the palette' }).click()
    await drag(node('set').locator('.source'), node('code').locator('.target'))
    await expect.poll(wires).toBe(2)
    // By dropping a connection onto the empty canvas.
    await drag(node('code').locator('.source'), undefined, { x: 120, y: -160 })
    await option('Do nothing').click()
    await node('no_op').waitFor()
    // Into a connection, once the view has come to rest beside the panel.
    await page.getByRole('complementary', { name: 'Settings of Do nothing' }).waitFor()
    await node('no_op').hover()
    await page.locator('.react-flow__edge').last().hover({ force: true })
    await page.getByRole('button', { name: 'Add a node here' }).last().click()
    await option('Wait Waits for a duration').click()
    await expect.poll(shown).toBe(5)
    await expect.poll(wires).toBe(4)
    const name = await save('By mouse')
    const id = await page.url().split('/').at(-2)!
    await page.getByRole('button', { name: 'Execute', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Execute' }).click()
    await page.waitForURL(/#\/executions/)
    expect(await ended(id)).toBe('SUCCESS')
    const stored = await read(id)
    expect(stored.nodes.every(({ position }) => position !== undefined)).toBe(true)
    expect(name).toContain('By mouse')
  })

  test('a graph of five nodes, one of them in a loop, is built by keyboard alone, and executed', {
    tags: 'long',
  }, async () => {
    await signIn('#/workflows/new')
    await node('start').waitFor()
    await page.getByLabel('Name of the workflow').focus()
    await press('Control+a')
    await page.keyboard.type(`By keyboard ${randomUUID()}`)
    for (let tries = 0; tries < 30; tries += 1) {
      await press('Tab')
      if (await node('start').evaluate((one) => one === document.activeElement)) break
    }
    await addByKey('set values', 'set')
    await addByKey('for each', 'for_each')
    await addByKey('nothing', 'no_op')
    // Out of the loop again, by the dialog that connects.
    await press('Shift+Tab')
    await expect.poll(focused).toBe('for_each')
    await press('c')
    await page.getByRole('dialog').waitFor()
    await expectAccessible(page)
    await press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await expect.poll(focused).toBe('for_each')
    await page.getByLabel('Name of the workflow').focus()
    await press('Control+s')
    await page.waitForURL(/\/edit$/)
    const id = page.url().split('/').at(-2)!
    const stored = await read(id)
    expect(stored.nodes.find((one) => one.id === 'no_op')?.parentId).toBe('for_each')
    // The arrow keys move, and what was moved is stored.
    await node('set').focus()
    await press('ArrowDown')
    await press('ArrowDown')
    await addByKey('code', 'code')
    await press('Control+s')
    await page.getByText('Saved as a draft').first().waitFor()
    await expect.poll(async () => (await read(id)).version).toBe(2)
    const moved = await read(id)
    const at = (of: Stored) => of.nodes.find((one) => one.id === 'set')!.position!.y
    expect(at(moved)).toBeGreaterThan(at(stored))
    expect(moved.edges.map(({ source, target }) => `${source} ${target}`).sort()).toEqual(
      ['set code', 'set for_each', 'start set'].sort(),
    )
    await host.ask('POST', `/api/workflows/${id}/publish`, {})
    expect(await host.ended(await host.execute(id, { items: [1, 2] }))).toBeTruthy()
  })

  test('a node is dragged into a loop and out of it, with what leads to it', { tags: 'long' }, async () => {
    const id = await host.create({
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: [1] } },
        { id: 'one', type: 'NO_OP', parentId: 'each' },
        { id: 'two', type: 'NO_OP' },
      ],
      edges: edges('start -> each', 'each -> two'),
    })
    await signIn(`#/workflows/${id}/edit`)
    await node('two').waitFor()
    await drag(node('two').locator('.step-name'), node('one'))
    await page.getByText("A connection over the loop's border removed").waitFor()
    await press('Control+s')
    await expect.poll(async () => (await read(id)).version).toBe(2)
    const parent = async () => (await read(id)).nodes.find((one) => one.id === 'two')?.parentId
    expect([await parent(), await wires()]).toEqual(['each', 1])
    await drag(node('two').locator('.step-name'), undefined, { x: 20, y: 240 })
    await press('Control+s')
    await expect.poll(async () => (await read(id)).version).toBe(3)
    expect(await parent()).toBeUndefined()
    await press('Control+z')
    await press('Control+z')
    await expect.poll(wires).toBe(2)
  })

  test('edits are undone and redone, copied into another workflow, disabled, laid out and noted', {
    tags: 'long',
  }, async () => {
    const id = await host.create({
      nodes: [start, { id: 'a', type: 'SET', config: { values: { x: 1 } } }, { id: 'b', type: 'NO_OP' }],
      edges: edges('start -> a', 'a -> b'),
    })
    await signIn(`#/workflows/${id}/edit`)
    await node('b').click()
    await press('Delete')
    await expect.poll(shown).toBe(2)
    await press('Control+z')
    await expect.poll(shown).toBe(3)
    await press('Control+Shift+z')
    await expect.poll(shown).toBe(2)
    await press('Control+z')
    await node('a').click()
    await node('b').click({ modifiers: ['Control'] })
    await press('d')
    await page.getByText('disabled').first().waitFor()
    await press('Control+z')
    await press('Control+c')
    await page.getByText('Copied').waitFor()
    await page.goto(`${origin}/#/workflows/new`)
    await node('start').click()
    await press('Control+v')
    await node('b').waitFor()
    await expect.poll(wires).toBe(1)
    await press('Control+v')
    await node('b2').waitFor()
    await press('l')
    await press('n')
    await page.getByLabel('Text of the note').fill('**Look** here')
    await press('Escape')
    await page.locator('.note strong').getByText('Look').waitFor()
    // What n8n's editor copies is pasted too, with its notes, and marked with what differs.
    const n8n = (type: string, parameters: object, at: number) => {
      return { name: type, type: `n8n-nodes-base.${type}`, typeVersion: 1, position: [at, 0], parameters }
    }
    const copied = {
      nodes: [
        n8n('manualTrigger', {}, 0),
        n8n('someTool', {}, 240),
        n8n('stickyNote', { content: '## Theirs', color: 5 }, -80),
      ],
      connections: { manualTrigger: { main: [[{ node: 'someTool', type: 'main', index: 0 }]] } },
    }
    await node('start').click()
    await page.evaluate((text) => {
      const clipboardData = new DataTransfer()
      clipboardData.setData('text/plain', text)
      document.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
    }, JSON.stringify(copied))
    await page.getByText(/^Pasted from n8n: 1 as they were, 1 to be replaced/).waitFor()
    await page.locator('.note[data-colour=blue]').getByText('Theirs').waitFor()
    await node('someTool').locator('[data-tone]').waitFor()
    await expectAccessible(page)
    await press('Control+z')
    await node('someTool').waitFor({ state: 'detached' })
    await save('Pasted')
    const made = await read(page.url().split('/').at(-2)!)
    expect(made.nodes.map((one) => one.id).sort()).toEqual(['a', 'a2', 'b', 'b2', 'start'])
    expect(made.settings.notes).toMatchObject([{ text: '**Look** here' }])
    await page.reload()
    await page.locator('.note strong').getByText('Look').waitFor()
  })

  test('what follows a key that opens a search is typed into it, however fast it comes', {
    tags: 'long',
  }, async () => {
    await signIn('#/workflows/new')
    await node('start').click()
    // No other task of the page comes between the key and the look.
    const pressNow = (key: string, ctrlKey = false) =>
      page.evaluate(
        (init) => {
          const from = document.activeElement ?? document.body
          from.dispatchEvent(new KeyboardEvent('keydown', { ...init, bubbles: true, cancelable: true }))
          return document.activeElement?.getAttribute('aria-label')
        },
        { key, ctrlKey },
      )
    expect(await pressNow('a')).toBe('Search nodes')
    await press('Escape')
    await expect.poll(() => page.locator('.palette-dock').count()).toBe(0)
    expect(await pressNow('k', true)).toBe('Search pages, workflows and commands')
  })

  test('what is refused is marked on its node, and JSON is another view of the same', {
    tags: 'long',
  }, async () => {
    await signIn('#/workflows/new')
    await node('start').click()
    await press('a')
    await page.keyboard.type('http')
    await press('Enter')
    await node('http_request').waitFor()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    const list = page.getByRole('region', { name: 'Problems' })
    await list.getByText('1 problem').waitFor()
    await node('http_request').locator('[data-tone=bad]').waitFor()
    await expectAccessible(page)
    await list.getByRole('button', { name: /config\.url/ }).click()
    const panel = page.getByRole('complementary', { name: 'Settings of HTTP request' })
    await panel.getByText('is required').first().waitFor()
    await page.getByRole('button', { name: 'JSON', exact: true }).first().click()
    const code = page.getByRole('textbox', { name: 'Graph as JSON' })
    await code.click()
    await press('Control+a')
    const graph = { nodes: [start, { id: 'x', type: 'NO_OP' }], edges: [{ source: 'start', target: 'x' }] }
    await page.keyboard.insertText(JSON.stringify(graph))
    await page.getByRole('button', { name: 'Canvas', exact: true }).click()
    await node('x').waitFor()
    await expect.poll(wires).toBe(1)
    await save('From JSON')
    expect(await list.count()).toBe(0)

    // The settings of the workflow have a form too; what is emptied is stored as its default.
    const id = page.url().split('/').at(-2)!
    const stored = async () => (await host.call('GET', `/api/workflows/${id}`, host.admin)).body.settings
    await page.getByRole('button', { name: 'More', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Settings' }).click()
    const form = page.getByRole('region', { name: 'Settings of the workflow' })
    await form.getByLabel('Timezone').fill('Mars/Olympus')
    await form.getByLabel('Timeout (ms)').fill('60000')
    await form.getByRole('button', { name: 'Add concurrency' }).click()
    await form.getByLabel('Limit').fill('3')
    await form.getByLabel('Outputs').uncheck()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await form.getByText('must be a time zone').waitFor()
    await expectAccessible(page)
    await form.getByLabel('Timezone').fill('Europe/Berlin')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await expect.poll(stored).toMatchObject({
      ...{ timezone: 'Europe/Berlin', timeoutMs: 60_000, saveData: { inputs: true, outputs: false } },
      concurrency: { limit: 3, key: null, policy: 'queue' },
    })
    await form.getByLabel('Timeout (ms)').fill('')
    await form.getByRole('button', { name: 'Remove concurrency' }).click()
    await form.getByRole('tab', { name: 'JSON' }).click()
    await form.getByText('"Europe/Berlin"').waitFor()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await expect.poll(stored).toMatchObject({ timeoutMs: null, concurrency: null, timezone: 'Europe/Berlin' })
  })

  test('unsaved changes are not left by accident, and nobody overwrites what another has saved', async () => {
    const id = await host.create({ nodes: [start], edges: [] })
    await signIn(`#/workflows/${id}/edit`)
    await node('start').waitFor()
    await page.getByLabel('Name of the workflow').fill(`Guarded ${randomUUID()}`)
    await page.getByRole('link', { name: 'Executions' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Leave without saving?').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await node('start').waitFor()
    expect(page.url()).toContain('/edit')
    await host.ask('PUT', `/api/workflows/${id}`, { description: 'Somebody was here' })
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.getByText('Somebody else has saved this workflow').waitFor()
    await dialog.getByRole('button', { name: 'Save mine over it' }).click()
    await page.getByText('Saved as a draft; the name and settings count at once').waitFor()
    await page.getByLabel('Name of the workflow').fill('Lost')
    await page.getByRole('link', { name: 'Executions' }).click()
    await dialog.getByRole('button', { name: 'Discard the changes' }).click()
    await browser.heading('Executions')
  })

  test('on a phone, and for those who may not build, the graph is only looked at', {
    tags: 'long',
  }, async () => {
    const id = await host.create({
      nodes: [start, { id: 'a', type: 'NO_OP' }],
      edges: edges('start -> a'),
    })
    await signIn(`#/workflows/${id}/edit`)
    await page.setViewportSize({ width: 390, height: 844 })
    await node('a').waitFor()
    await expectAccessible(page)
    expect(await page.getByRole('button', { name: 'Save', exact: true }).count()).toBe(0)
    expect(await page.getByRole('button', { name: 'Add node' }).count()).toBe(0)
    await node('a').focus()
    await press('Delete')
    await press('Enter')
    await page.locator('.node-dock').waitFor()
    expect(await shown()).toBe(2)
  })

  async function wires(): Promise<number> {
    return page.locator('.react-flow__edge').count()
  }

  async function focused(): Promise<string | undefined> {
    return page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset.id)
  }

  async function addByKey(words: string, id: string): Promise<void> {
    await press('a')
    await page.getByRole('combobox', { name: 'Search nodes' }).waitFor()
    await page.keyboard.type(words)
    await press('Enter')
    await node(id).waitFor()
    await expect.poll(focused).toBe(id)
  }

  async function drag(from: Locator, to: Locator | undefined, by = { x: 0, y: 0 }): Promise<void> {
    const centre = (box: { x: number; y: number; width: number; height: number }) => ({
      x: box.x + box.width / 2,
      y: box.y + box.height / 2,
    })
    const begin = centre((await from.boundingBox())!)
    const end = to ? centre((await to.boundingBox())!) : { x: begin.x + by.x, y: begin.y + by.y }
    await page.mouse.move(begin.x, begin.y)
    await page.mouse.down()
    await page.mouse.move((begin.x + end.x) / 2, (begin.y + end.y) / 2, { steps: 5 })
    await page.mouse.move(end.x, end.y, { steps: 5 })
    await page.mouse.up()
  }

  /** Names and saves a new workflow. */
  async function save(words: string): Promise<string> {
    const name = `${words} ${randomUUID()}`
    await page.getByLabel('Name of the workflow').fill(name)
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.waitForURL(/\/edit/)
    await page.getByText('Saved', { exact: true }).first().waitFor()
    return name
  }

  /** The draft, if there is one: a save makes one. */
  async function read(id: string): Promise<Stored> {
    const { draftVersion } = await host.ask<{ draftVersion: number | null }>('GET', `/api/workflows/${id}`)
    return host.ask<Stored>('GET', `/api/workflows/${id}${draftVersion === null ? '' : '?version=draft'}`)
  }

  async function ended(workflowId: string): Promise<string> {
    const path = `/api/executions?teamId=${host.teamId}&workflowId=${workflowId}`
    type Found = { content: { id: string }[] }
    const { content } = await host.ask<Found>('GET', path)
    return (await host.ended(content[0]!.id)).status
  }
})
