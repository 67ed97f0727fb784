import { randomUUID } from 'node:crypto'
import type { Locator, Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { type Alone, buildNodeForm, showNodeForm } from '../../support/console/nodeform.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()
const files = missing ? new Map<string, string>() : await buildNodeForm()

const ORDER = { customer: { name: 'Ada', 'e-mail': 'ada@example.com' }, lines: [{ sku: 'a1', price: 12 }] }
const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
const order = { id: 'order', type: 'SET', name: 'The order', config: { values: { order: '{{ $input }}' } } }
const last = { id: 'last', type: 'NO_OP', config: {} }

type Given = Partial<Omit<Alone, 'graph'>> & { graph?: Alone['graph'] }
type Stored = { id: string; name?: string; config: Record<string, unknown> } & Record<string, unknown>

describe.skipIf(missing)('the form of a node', () => {
  const browser = useBrowser(() => origin, host.user.email)
  const { signIn } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  /** A workflow of three nodes that has run once. */
  const runOnce = async () => {
    const graph = { nodes: [start, order, last], edges: edges('start -> order', 'order -> last') }
    const workflowId = await host.create(graph)
    const id = await host.execute(workflowId, ORDER)
    expect((await host.ended(id)).status).toBe('SUCCESS')
    return workflowId
  }
  const show = async (node: object, { graph, ...more }: Given = {}) => {
    await signIn()
    const nodeId = (node as { id: string }).id
    const all = graph ?? { nodes: [start, node], edges: edges(`start -> ${nodeId}`) }
    const fixed = { teamId: host.teamId, workflowId: undefined, faults: [], readOnly: false }
    const given = { ...fixed, role: 'ADMIN', width: 900, nodeId, ...more, graph: all }
    if (given.width < 500) await page.setViewportSize({ width: given.width, height: 844 })
    await showNodeForm(page, origin, files, given)
    await page.getByRole('tab', { name: 'Form' }).waitFor()
  }
  const node = () => page.evaluate(() => Reflect.get(globalThis, 'node') as Stored)
  const config = async () => (await node()).config
  const text = (name: string | RegExp, exact = true) => page.getByRole('textbox', { name, exact })
  const write = async (field: Locator, words: string) => {
    await field.click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type(words)
  }
  const http = (more: object = {}) => ({ id: 'call', type: 'HTTP_REQUEST', config: { url: '', ...more } })

  test('each kind of control writes its part of the config', { tags: 'long' }, async () => {
    await show(http())
    await page.getByLabel('Method', { exact: true }).selectOption('PUT')
    await write(text('URL'), 'https://example.com/')
    await page.getByRole('button', { name: 'Add header' }).click()
    await page.getByLabel('Key 1 of Headers').fill('accept')
    await write(text('Value of accept'), 'text/plain')
    await page.getByLabel('Kind of Body').selectOption('Keys and values')
    await page.getByRole('button', { name: 'Add key' }).last().click()
    await page.getByLabel('Key 1 of Body').fill('count')
    await page.getByLabel('Kind of Value of count').selectOption('Number')
    await page.getByRole('spinbutton', { name: 'Value of count' }).fill('3')
    await page.getByText('Options', { exact: true }).click()
    await page.getByLabel('Max bytes').fill('1000')
    await page.getByRole('button', { name: 'Add response' }).click()
    await page.getByLabel('Full').check()
    await page.getByLabel('Format').selectOption('text')
    await page.getByText('When it fails').click()
    await page.getByLabel('If it fails').selectOption('BRANCH')
    await page.getByLabel('Attempts').fill('5')
    await page.getByLabel('Time limit (ms)').fill('2000')
    await page.getByLabel('Disabled').check()
    await page.getByLabel('Name', { exact: true }).fill('Put it there')
    await page.getByLabel('Id', { exact: true }).fill('put')
    // Under its new id it is the same form: the field keeps the focus.
    await page.keyboard.press('Enter')
    await expect.poll(async () => (await node()).id).toBe('put')
    await page
      .locator('input:focus')
      .and(page.getByLabel('Id', { exact: true }))
      .waitFor()
    await page.keyboard.press('Tab')
    await expect.poll(node).toEqual({
      id: 'put',
      type: 'HTTP_REQUEST',
      name: 'Put it there',
      config: {
        url: 'https://example.com/',
        method: 'PUT',
        headers: { accept: 'text/plain' },
        body: { count: 3 },
        maxBytes: 1000,
        response: { full: true, format: 'text' },
      },
      onError: 'BRANCH',
      retry: { maxAttempts: 5 },
      timeoutMs: 2000,
      disabled: true,
    })
    await expectAccessible(page)

    // What is emptied is not there any more.
    await page.getByLabel('Max bytes').fill('')
    await page.getByRole('button', { name: 'Remove accept' }).click()
    await page.getByRole('button', { name: 'Remove response' }).click()
    await page.getByLabel('Attempts').fill('')
    await expect.poll(async () => Object.keys(await config())).toEqual(['url', 'method', 'body'])
    expect(await node()).not.toHaveProperty('retry')
  })

  test('lists are added to, moved and removed from', { tags: 'long' }, async () => {
    await show({ id: 'choose', type: 'SWITCH', config: { cases: [] } })
    for (const [at, handle] of ['small', 'large'].entries()) {
      await page.getByRole('button', { name: 'Add case' }).click()
      await page.getByLabel('Handle').nth(at).fill(handle)
      await write(page.getByRole('textbox', { name: 'Condition' }).nth(at), `$input.total > ${at}`)
    }
    await page.getByRole('button', { name: 'Move Case 2 up' }).click()
    await expect.poll(config).toEqual({
      cases: [
        { handle: 'large', condition: '$input.total > 1' },
        { handle: 'small', condition: '$input.total > 0' },
      ],
    })
    await page.getByRole('button', { name: 'Remove Case 1' }).click()
    await expect.poll(config).toEqual({ cases: [{ handle: 'small', condition: '$input.total > 0' }] })
  })

  test('what is typed and clicked within one frame is all taken, in its order', {
    tags: 'long',
  }, async () => {
    await show({ id: 'choose', type: 'SWITCH', config: { cases: [] } })
    for (const handle of ['a', 'b']) {
      await page.getByRole('button', { name: 'Add case' }).click()
      await page.getByLabel('Handle').last().fill(handle)
    }
    const editors = page.getByRole('textbox', { name: 'Condition' })
    await editors.nth(1).waitFor()
    await editors.nth(0).click()
    for (const turn of Array(20).keys()) {
      // Nothing is drawn between the letter and the click: what is clicked was drawn before both.
      await page.evaluate((letter) => {
        const editor = document.querySelectorAll<HTMLElement>('.entry .cm-content')[0]!
        editor.focus()
        getSelection()!.selectAllChildren(editor)
        getSelection()!.collapseToEnd()
        document.execCommand('insertText', false, letter)
        document.querySelector<HTMLElement>('[aria-label="Move Case 2 up"]')!.click()
      }, 'abcdefghijklmnopqrst'[turn]!)
      const words = async () =>
        ((await config()).cases as { condition?: string }[]).map(({ condition = '' }) => condition).join('')
      await expect.poll(async () => (await words()).length).toBe(turn + 1)
    }
    const cases = [
      { handle: 'a', condition: 'acegikmoqs' },
      { handle: 'b', condition: 'bdfhjlnprt' },
    ]
    await expect.poll(config).toEqual({ cases })
    // Two clicks on what was drawn once are two edits too.
    await page.evaluate(() => {
      const add = [...document.querySelectorAll('button')].find((one) => one.textContent === 'Add case')!
      add.click()
      add.click()
    })
    await expect.poll(async () => ((await config()).cases as unknown[]).length).toBe(4)
  })

  test('each type is opened with all of its settings, and nothing changes by that', {
    tags: 'long',
  }, async () => {
    const { body: types } = await host.call('GET', '/api/node-types', host.admin)
    const nodes = types.map(({ type, config: schema }: { type: string; config: Schema }) => ({
      ...{ id: type, type, retry: { maxAttempts: 2 }, timeoutMs: 1, onError: 'CONTINUE', disabled: true },
      ...{ perItem: { concurrency: 2 }, itemOptions: { firstOnly: true }, config: makeSample(schema) },
    }))
    await show(nodes[0], { graph: { nodes, edges: [] } })
    for (const { id, config: given } of nodes) {
      await page.evaluate((next) => Reflect.get(globalThis, 'showNode')(next), id)
      await page.locator(`.node-panel[aria-label="Settings of ${id}"]`).waitFor()
      const closed = page.locator('details.section:not([open]) > summary')
      while ((await closed.count()) > 0) await closed.first().click()
      const shown = page.locator('.node-main')
      for (const key of Object.keys(given))
        expect(await shown.getByText(labelOf(key)).count(), `${id}.${key}`).toBeGreaterThan(0)
      expect(await shown.getByText(/is unknown here|does not take this value/).count(), id).toBe(0)
    }
    expect(await page.evaluate(() => Reflect.get(globalThis, 'nodes'))).toEqual(nodes)
  })

  test('a value that no control can show is kept, and shown as what it is', { tags: 'long' }, async () => {
    const strange = { maxBytes: '{{ $input.size }}', method: 7, response: { format: 'auto', depth: 3 } }
    await show(http({ url: 'https://a.example', ...strange }))
    await text('Max bytes').getByText('{{ $input.size }}').waitFor()
    await page.getByText('“depth” is unknown here').waitFor()
    await page.getByText('The setting does not take this value').nth(1).waitFor()
    await page.getByText('Items', { exact: true }).click()
    await page.getByLabel('Works on').selectOption('Each item')
    await page.getByLabel('Calls at the same time').fill('4')
    await page.getByRole('button', { name: 'Add item options' }).click()
    await page.getByLabel('First only').check()
    await expectAccessible(page)
    await expect.poll(node).toEqual({
      ...http({ url: 'https://a.example', ...strange }),
      perItem: { concurrency: 4 },
      itemOptions: { firstOnly: true },
    })
    await page.getByLabel('Works on').selectOption('All items at once')
    await expect.poll(node).toMatchObject({ allItems: true, itemOptions: { firstOnly: true } })
    expect(await node()).not.toHaveProperty('perItem')
  })

  test('each tool of an agent has the fields of its kind', { tags: 'long' }, async () => {
    await show({ id: 'agent', type: 'AI_AGENT', config: { model: 'm', instructions: 'i' } })
    await page.getByRole('button', { name: 'Add tool' }).click()
    await expect.poll(async () => (await config()).tools).toMatchObject([{ type: 'HTTP', url: '' }])
    await page.getByLabel('Kind of Tool 1').selectOption({ label: 'Sub workflow' })
    await expect.poll(async () => (await config()).tools).toMatchObject([{ type: 'SUB_WORKFLOW' }])
    await expectAccessible(page)
  })

  test('what the API found wrong stands at its field, and an unknown key is renamed', async () => {
    await show(http({ url: 'x', heders: { a: 'b' } }), {
      faults: [
        { path: 'config.url', message: 'must be an address' },
        { path: 'config.maxBytes', message: 'must be less' },
        { path: 'config.heders', message: 'is unknown here; did you mean "headers"?', warning: true },
        { path: 'parentId', message: 'names no loop' },
      ],
    })
    const described = (await text('URL').getAttribute('aria-describedby'))!
    const said = await Promise.all(
      described.split(' ').map((id) => page.locator(`[id="${id}"]`).textContent()),
    )
    expect(said).toContain('must be an address')
    await page.getByText('names no loop').waitFor()
    // The options are open, because something in them is wrong.
    await page.getByText('must be less').waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Rename it to headers' }).click()
    await expect.poll(config).toEqual({ url: 'x', headers: { a: 'b' } })
  })

  test('the JSON is the same node, and what does not parse is not taken', { tags: 'long' }, async () => {
    const placed = { ...http({ url: 'https://a.example' }), position: { x: 1, y: 2 } }
    await show(placed)
    await page.getByRole('tab', { name: 'JSON' }).click()
    const editor = text('The node as JSON')
    await editor.waitFor()
    const type = async (value: string) => {
      await editor.click()
      await page.keyboard.press('Control+a')
      await page.keyboard.insertText(value)
    }
    const next = { id: 'call', type: 'HTTP_REQUEST', config: { url: 'https://b.example', method: 'HEAD' } }
    await type(JSON.stringify(next))
    await expect.poll(node).toEqual({ ...next, position: { x: 1, y: 2 } })
    // What is typed over coloured text keeps no inline style: the browser would log that the policy refuses it.
    await editor.locator('span', { hasText: 'HEAD' }).last().dblclick()
    await page.keyboard.type('PUT')
    await expect.poll(config).toEqual({ url: 'https://b.example', method: 'PUT' })
    await type(JSON.stringify(next))
    await expect.poll(config).toEqual(next.config)
    await editor.click()
    await page.keyboard.press('Control+a')
    await page.keyboard.type('7')
    await page.getByText('A node has an id').waitFor()
    await type('{ "id": ')
    await page.getByText('This is not JSON yet').waitFor()
    expect(await config()).toEqual(next.config)
    await type(JSON.stringify({ ...next, id: 'other' }))
    await page.getByText('Change the id in the form').waitFor()
    await page.getByRole('tab', { name: 'Form' }).click()
    await expect.poll(() => text('URL').textContent()).toBe('https://b.example')
    expect(await page.getByLabel('Method', { exact: true }).inputValue()).not.toBe('')
    await expectAccessible(page)
  })

  test('variables, keys at every depth and functions are completed from the last run', {
    tags: 'long',
  }, async () => {
    const workflowId = await runOnce()
    const step = http()
    const graph = { nodes: [start, order, step], edges: edges('start -> order', 'order -> call') }
    await show(step, { workflowId, graph })
    const options = page.getByRole('option')
    const choose = async (words: string, name: string) => {
      await page.keyboard.type(words)
      await options.filter({ hasText: name }).first().waitFor()
    }
    await text('URL').click()
    await choose('{{ $inp', '$input')
    await page.keyboard.press('Enter')
    await choose('.', 'order')
    await page.keyboard.press('Enter')
    await choose('.', 'customer')
    await page.keyboard.press('Enter')
    await choose('.', 'e-mail')
    await choose('e', 'e-mail')
    await page.keyboard.press('Enter')
    await expect
      .poll(async () => (await config()).url)
      .toMatch(/^\{\{ \$input\.order\.customer\.`e-mail` ?\}\}$/)
    await page.getByText('"ada@example.com"', { exact: true }).waitFor()
    await page.keyboard.press('Control+a')
    await choose('{{ $nodes.', 'order')
    await choose('order.order.lines.', 'price')
    await page.keyboard.press('Control+a')
    await choose('{{ $upper', '$uppercase')
    await page.keyboard.press('Enter')
    await expect.poll(async () => (await config()).url).toContain('$uppercase()')
  })

  test('what was typed stays what it is, and the fields of the node before are known without a run', {
    tags: 'long',
  }, async () => {
    const hook = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'a' } }
    const pass = { id: 'pass', type: 'NO_OP', config: {} }
    const last = { id: 'last', type: 'IF_ELSE', config: { condition: '' } }
    const graph = { nodes: [hook, pass, last], edges: edges('hook -> pass', 'pass -> last') }
    await show(last, { graph })
    const option = (name: string) => page.getByRole('option').filter({ hasText: name }).first()
    const write = async (words: string) => {
      await text('Condition').click()
      await page.keyboard.press('Control+a')
      await page.keyboard.press('Delete')
      // As fast as people type: the list of completions has the time to open after each letter.
      await page.keyboard.type(words, { delay: 70 })
    }
    const after = async (key: string) => {
      await page.keyboard.press(key)
      return (await config()).condition
    }
    for (const whole of ['$input.total > 100', '$input.body.count', '$input.method = "qu', 'count', '$sum']) {
      await write(whole)
      expect(String(await after('Enter')).replace(/"$/, '')).toBe(whole)
    }
    await write('$input.')
    for (const name of ['body', 'query', 'headers', 'method']) await option(name).waitFor()
    await expectAccessible(page)
    // The name that is being typed, and what the arrows or the mouse choose.
    await page.keyboard.type('qu')
    await option('query').and(page.locator('[aria-selected=true]')).waitFor()
    expect(await after('Enter')).toBe('$input.query')
    await write('$inp')
    await option('$input').waitFor()
    expect(await after('Tab')).toBe('$input')
    await write('')
    await page.keyboard.press('Control+Space')
    await option('query').waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowUp')
    expect(await after('Enter')).toBe('$execution')
    await write('$nodes.hook.')
    await option('method').click()
    await expect.poll(async () => (await config()).condition).toBe('$nodes.hook.method')
  })

  test('the value, the warning and the error of an expression stand beside it as one types', {
    tags: 'long',
  }, async () => {
    const workflowId = await runOnce()
    const test = { id: 'last', type: 'IF_ELSE', config: { condition: '' } }
    const graph = { nodes: [start, order, test], edges: edges('start -> order', 'order -> last') }
    await show(test, { workflowId, graph })
    const field = text('Condition')
    await write(field, '$input.order.lines.price > 10')
    await page.locator('.read-value').getByText('true').waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('$input.ordr')
    await page.getByText(/Nothing is read here: .*no such field/).waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('$input.order = = 2')
    await page.locator('.read-error').waitFor()
    await page.locator('.cm-lintRange-error').waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('$inptu.order')
    await page.locator('.cm-lintRange-error').getByText('$inptu').waitFor()
    await page.getByText('did you mean $input?').waitFor()
  })

  test('a field of the input is dragged into an expression, and inserted by keyboard', {
    tags: 'long',
  }, async () => {
    const workflowId = await runOnce()
    const set = { id: 'last', type: 'SET', config: { values: { name: 'Dear ' } } }
    const graph = { nodes: [start, order, set], edges: edges('start -> order', 'order -> last') }
    await show(set, { workflowId, graph })
    const field = text('Value of name')
    await field.click()
    await page.keyboard.press('End')
    await page.getByRole('button', { name: 'customer', exact: true }).press('Enter')
    await page.getByRole('button', { name: 'Insert $input.order.customer.name' }).focus()
    await page.keyboard.press('Enter')
    const name = async () => ((await config()).values as { name: string }).name
    await expect.poll(name).toBe('Dear {{ $input.order.customer.name }}')
    await page.locator('.read-value').getByText('"Dear Ada"').waitFor()

    await page.getByText('$nodes.order').click()
    const row = page
      .locator('details')
      .filter({ hasText: '$nodes.order' })
      .locator('.json-row')
      .filter({ hasText: 'lines:' })
    const from = (await row.boundingBox())!
    const to = (await field.boundingBox())!
    await page.mouse.move(from.x + 50, from.y + 10)
    await page.mouse.down()
    await page.mouse.move(to.x + 40, to.y + 10, { steps: 4 })
    await page.mouse.move(to.x + 16, to.y + 16, { steps: 4 })
    await page.mouse.up()
    await expect.poll(name).toContain('{{ $nodes.order.order.lines }}')
    await expectAccessible(page)
  })

  test('a credential is made, tested and chosen in place', { tags: 'long' }, async () => {
    const name = `Key ${randomUUID()}`
    await show(http({ url: 'https://a.example' }))
    await page.getByRole('button', { name: 'New credential' }).click()
    const dialog = page.getByRole('dialog', { name: 'New credential' })
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill(name)
    await dialog.getByLabel('Type').selectOption('HTTP_BEARER')
    expect(await dialog.getByLabel('Token').getAttribute('type')).toBe('password')
    await expectAccessible(page)
    await dialog.getByLabel('Token').fill('sealed words')
    await dialog.getByLabel('Allowed hosts').fill('a.example\n*.b.example')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.waitFor({ state: 'detached' })
    const { credentialId } = await config()
    const made = await host.request(`/api/credentials/${credentialId}`, { as: host.admin })
    expect(await made.json()).toMatchObject({ name, allowedHosts: ['a.example', '*.b.example'] })
    await page.getByLabel('Credential', { exact: true }).getByText(name).waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Test it' }).click()
    await page.locator('.tested').waitFor()
    expect(await page.locator('.tested').textContent()).toMatch(/^ ?(Works|Does not work): ./)
    await expectAccessible(page)
  })

  test('a webhook shows its address, and a call from here shows the answer', async () => {
    const hook = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'orders' } }
    const respond = { id: 'say', type: 'SET', config: { values: { got: '{{ $input.body.order }}' } } }
    const waiting = { ...hook, config: { path: 'orders', responseMode: 'lastNode' } }
    const graph = { nodes: [waiting, respond], edges: edges('hook -> say') }
    const workflowId = await host.create(graph)
    await host.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
    await show(waiting, { workflowId, graph })
    await page.getByText(`${origin}/hooks/${workflowId}/orders`, { exact: true }).waitFor()
    await page.getByText(`curl -X POST ${origin}/hooks/${workflowId}/orders`).waitFor()
    await page.getByText('Send a call now').click()
    await page.getByLabel('Body').fill('{ "order": 4711 }')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('.answer').getByText('4711').waitFor()
    await page.locator('.answer').getByText('200').waitFor()
    await expectAccessible(page)
  })

  test('who may only read changes nothing, and on a phone nothing is cut off', { tags: 'long' }, async () => {
    const workflowId = await runOnce()
    const graph = { nodes: [start, order, last], edges: edges('start -> order', 'order -> last') }
    await show(order, { workflowId, graph, readOnly: true, role: 'VIEWER', width: 390 })
    await text('Value of order').click()
    await page.keyboard.type('no')
    expect(await config()).toEqual(order.config)
    expect(await page.getByRole('button', { name: /^(Add|Remove)/ }).count()).toBe(0)
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    await page.getByRole('button', { name: 'Show input' }).click()
    await page.getByText('What comes in').waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Close the settings' }).click()
    await page.getByText('Closed').waitFor()
  })
})

type Schema = { [key: string]: unknown; type?: string; properties?: Record<string, Schema>; items?: Schema }

/** A value with all that the schema has at every depth; of several kinds it is the last one. */
function makeSample(schema: Schema): unknown {
  const { enum: choices, const: only, anyOf, oneOf } = schema as Record<string, Schema[] | undefined>
  const variants = anyOf ?? oneOf
  const inner = schema.additionalProperties
  if (schema.properties || (variants?.every(({ properties }) => properties) && !schema.items)) {
    const all = schema.properties ?? Object.assign({}, ...variants!.map(({ properties }) => properties))
    // Half of the kinds of a tool are another one's.
    const own = oneOf ? variants![0]!.properties! : all
    return Object.fromEntries(Object.entries<Schema>(own).map(([key, inner]) => [key, makeSample(inner)]))
  }
  if (variants) return makeSample(variants.at(-1)!)
  if (only !== undefined) return only
  if (choices) return choices.at(-1)
  switch (schema.type) {
    case 'array':
      return schema.items ? [makeSample(schema.items)] : []
    case 'object':
      return { some: typeof inner === 'object' ? makeSample(inner as Schema) : 'value' }
    case 'number':
    case 'integer':
      return 1
    case 'boolean':
      return true
    default:
      return schema.format === 'uuid' || schema.pattern ? randomUUID() : 'some text'
  }
}

/** The words of a key: maxBytes is Max bytes. */
function labelOf(key: string): RegExp {
  const words = key.replace(/(Id|Ms|Mb)$/, '').replace(/([a-z])([A-Z])/g, '$1 $2')
  return new RegExp(`^(Add |Remove )?${words}\\b`, 'i')
}
