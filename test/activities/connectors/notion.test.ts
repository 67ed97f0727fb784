import { expect, test } from 'vitest'
import { useVendors } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const start = useVendors(host)

const config = (action: string, input: object = {}) => ({ connector: 'notion', action, input })

const PAGE = {
  object: 'page',
  id: 'p1',
  url: 'https://notion.test/p1',
  parent: { type: 'database_id', database_id: 'd1' },
  properties: {
    Name: { type: 'title', title: [{ plain_text: 'Hello' }] },
    'Due Date': { type: 'date', date: { start: '2026-01-01', end: null } },
    isDone: { type: 'checkbox', checkbox: true },
    Tags: { type: 'multi_select', multi_select: [{ name: 'a' }, { name: 'b' }] },
    State: { type: 'select', select: null },
    Sum: { type: 'formula', formula: { type: 'number', number: 3 } },
    Files: { type: 'files', files: [{ type: 'external', external: { url: 'https://a.test/f' } }] },
    Odd: { type: 'button', button: {} },
  },
}
const SIMPLE = {
  ...{ id: 'p1', name: 'Hello', url: 'https://notion.test/p1', property_name: 'Hello' },
  ...{ property_due_date: { start: '2026-01-01', end: null }, property_is_done: true },
  ...{ property_tags: ['a', 'b'], property_state: null, property_sum: 3 },
  property_files: ['https://a.test/f'],
}

test.each([
  ['getPage', { page: 'p1' }, 'GET', '/v1/pages/p1', {}],
  ['updatePage', { page: 'p1', properties: { A: 1 } }, 'PATCH', '/v1/pages/p1', { properties: { A: 1 } }],
  ['archivePage', { page: 'p1' }, 'PATCH', '/v1/pages/p1', { archived: true }],
  [
    'createPage',
    { page: 'p0', title: 'T', icon: { emoji: 'x' } },
    'POST',
    '/v1/pages',
    {
      parent: { page_id: 'p0' },
      properties: { title: [{ text: { content: 'T' } }] },
      icon: { emoji: 'x' },
    },
  ],
  ['getDatabase', { database: 'd1' }, 'GET', '/v1/databases/d1', {}],
  [
    'appendBlocks',
    { block: 'b1', children: [{ type: 'divider' }] },
    'PATCH',
    '/v1/blocks/b1/children',
    { children: [{ type: 'divider' }] },
  ],
  ['getUser', { user: 'u1' }, 'GET', '/v1/users/u1', {}],
])('%s with %j sends %s %s', async (action, input, method, path, body) => {
  const vendor = await start(() => ({ json: PAGE }))
  const done = await vendor.act(config(action, input))
  expect(done).toMatchObject({ status: 'SUCCESS', error: '' })
  expect(done.output).toEqual(PAGE)
  expect(vendor.asked).toMatchObject([{ method, path, headers: { 'notion-version': '2022-06-28' } }])
  expect(vendor.asked[0]?.json).toEqual(body)
})

test('pages are read one page after the other, and simplified', async () => {
  const vendor = await start(({ json }) =>
    json.start_cursor === 'c1'
      ? { json: { results: [{ ...PAGE, id: 'p2' }], has_more: false, next_cursor: null } }
      : { json: { results: [PAGE], has_more: true, next_cursor: 'c1' } },
  )
  const input = { database: 'd1', filter: { property: 'A' }, simple: true, notionVersion: '2021-08-16' }
  const { output } = await vendor.act(config('queryDatabase', input))
  expect(output).toEqual({ value: [SIMPLE, { ...SIMPLE, id: 'p2' }] })
  expect(vendor.asked.map(({ json }) => json)).toEqual([
    { filter: { property: 'A' }, page_size: 100 },
    { filter: { property: 'A' }, page_size: 100, start_cursor: 'c1' },
  ])
  expect(vendor.asked[0]).toMatchObject({
    path: '/v1/databases/d1/query',
    headers: { 'notion-version': '2021-08-16' },
  })
  const found = await vendor.act(config('search', { query: 'x', object: 'page', limit: 1 }))
  expect(found.output).toEqual({ value: [PAGE] })
  expect(vendor.asked.at(-1)?.json).toEqual({
    ...{ query: 'x', page_size: 1 },
    filter: { property: 'object', value: 'page' },
  })
})

test('blocks and users are read page after page by the query', async () => {
  const blocks = [
    { id: 'b1', type: 'paragraph', created_time: 't', paragraph: { rich_text: [{ plain_text: 'Hi' }] } },
    { id: 'b2', type: 'divider', divider: {} },
  ]
  const vendor = await start(({ query }) => {
    const isLast = query.get('start_cursor') === 'c1'
    return {
      json: { results: [blocks[isLast ? 1 : 0]], has_more: !isLast, next_cursor: isLast ? null : 'c1' },
    }
  })
  const { output } = await vendor.act(config('listBlocks', { block: 'b0', simple: true }))
  expect(output.value).toEqual([
    { id: 'b1', type: 'paragraph', root_id: 'b0', content: 'Hi' },
    { id: 'b2', type: 'divider', divider: {}, root_id: 'b0' },
  ])
  const users = await vendor.act(config('listUsers'))
  expect(users.output.value).toHaveLength(2)
})

test('a page is added to a database with its title, at most once', async () => {
  const properties = { Tag: { type: 'select' }, 'The name': { type: 'title' } }
  const vendor = await start(({ method }, count) =>
    method === 'GET' ? { json: { object: 'database', properties } } : count === 2 ? { json: PAGE } : 'cut',
  )
  const input = { database: 'd1', title: 'T', properties: { Tag: { select: { name: 'x' } } }, simple: true }
  const done = await vendor.act(config('createDatabasePage', input))
  expect(done.output).toEqual(SIMPLE)
  expect(vendor.asked[1]?.json).toEqual({
    parent: { database_id: 'd1' },
    properties: { 'The name': { title: [{ text: { content: 'T' } }] }, Tag: { select: { name: 'x' } } },
  })
  const lost = await vendor.act(config('createDatabasePage', input), { onError: 'CONTINUE' })
  expect(lost.output.error.type).toBe('OutcomeUnknown')
  expect(vendor.asked.filter(({ method }) => method === 'POST')).toHaveLength(2)
})

test('a limit of the rate is waited for, and 500 of a change that may be repeated', async () => {
  const vendor = await start((_, count) =>
    count === 1
      ? { status: 429, headers: { 'retry-after': '0' } }
      : count === 2
        ? { status: 500 }
        : { json: PAGE },
  )
  const done = await vendor.act(config('updatePage', { page: 'p1', properties: {} }))
  expect(done).toMatchObject({ status: 'SUCCESS', retries: 2 })
})
