import type { Answer, Asked } from '../mock.ts'
import type { VendorAsking } from './vendors.ts'

const PAGE = {
  object: 'page',
  id: 'p1',
  url: 'https://notion.test/p1',
  parent: { type: 'database_id', database_id: 'd1' },
  properties: {
    'The Name': {
      type: 'title',
      title: [
        { type: 'text', plain_text: 'Hello' },
        { type: 'text', plain_text: ' you' },
      ],
    },
    dueDate: { type: 'date', date: { start: '2026-01-01', end: null } },
    'Größe (cm)': { type: 'number', number: 3 },
    Tags: { type: 'multi_select', multi_select: [{ name: 'a' }, { name: 'b' }] },
    State: { type: 'select', select: null },
    Sum: { type: 'formula', formula: { type: 'number', number: 3 } },
    Of: { type: 'relation', relation: [{ id: 'r1' }] },
    Text: { type: 'rich_text', rich_text: [] },
    Who: { type: 'people', people: [{ person: { email: 'a@b.c' } }, {}] },
    Files: { type: 'files', files: [{ type: 'external', external: { url: 'https://a.test/f' } }] },
  },
}
const BLOCKS = [
  {
    object: 'block',
    id: 'b1',
    type: 'paragraph',
    created_time: 't',
    paragraph: { text: [{ plain_text: 'Hi' }] },
  },
  { object: 'block', id: 'b2', type: 'divider', divider: {}, has_children: false },
  { object: 'block', id: 'b3', type: 'child_page', child_page: { title: 'Below' } },
]

/** What Notion was asked for, but how many at once, and words that say what is there without them. */
export function readNotionAsking({ path, body, method }: Asked): VendorAsking {
  const { page_size: _, children, sorts, ...rest } = body === '' ? {} : JSON.parse(body)
  const json = Array.isArray(sorts) && sorts.length > 0 ? { ...rest, sorts } : rest
  const shown = Array.isArray(children) && children.length > 0 ? { ...json, children } : json
  const plain = JSON.parse(JSON.stringify(shown), (key, value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const { type, ...rest } = value
    return typeof type === 'string' && (type in rest || key === 'icon') ? rest : value
  })
  return { asked: `notion: ${method} ${path.split('/').slice(4).join('/')}`, body: plain }
}

/** The answer of a Notion whose databases all have the same two pages. */
export function answerNotion({ path, body, method }: Asked): Answer {
  if (body.includes('refuse'))
    return { status: 400, json: { object: 'error', code: 'validation_error', message: 'no such property' } }
  const list = (results: unknown[]) => ({
    json: { object: 'list', results, has_more: false, next_cursor: null },
  })
  const database = {
    object: 'database',
    id: 'd1',
    url: 'u',
    title: [{ plain_text: 'Base' }],
    properties: PAGE.properties,
  }
  if (path.endsWith('/query')) return list([PAGE, { ...PAGE, id: 'p2' }])
  if (path.endsWith('/search')) return list(body.includes('"database"') ? [database] : [PAGE])
  if (path.includes('/v1/databases/')) return { json: database }
  if (path.endsWith('/children')) return list(method === 'GET' ? BLOCKS : BLOCKS.slice(0, 1))
  if (path.endsWith('/users')) return list([{ object: 'user', id: 'u1', name: 'Ada' }])
  return { json: PAGE }
}
