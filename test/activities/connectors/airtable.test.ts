import { expect, test } from 'vitest'
import { useVendors } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const start = useVendors(host)

const config = (action: string, input: object = {}) => ({
  connector: 'airtable',
  action,
  input: { base: 'appB', table: 'tblT', ...input },
})
const PATH = '/v0/appB/tblT'
const ROW = { id: 'rec1', createdTime: '2026-01-01T00:00:00.000Z', fields: { Name: 'Ada' } }

test.each([
  ['getRecord', { record: 'rec1' }, 'GET', `${PATH}/rec1`, undefined, ROW, ROW],
  [
    'createRecords',
    { records: [{ fields: { Name: 'Ada' } }], typecast: true },
    'POST',
    PATH,
    { records: [{ fields: { Name: 'Ada' } }], typecast: true },
    { records: [ROW] },
    { value: [ROW] },
  ],
  [
    'createRecord',
    { fields: { Name: 'Ada', Age: null }, skipEmpty: true },
    'POST',
    PATH,
    { fields: { Name: 'Ada' } },
    ROW,
    ROW,
  ],
  ['createRecord', { fields: { Age: null }, skipEmpty: true }, 'POST', PATH, { fields: {} }, ROW, ROW],
  [
    'updateRecord',
    { record: 'rec1', fields: { Age: null } },
    'PATCH',
    `${PATH}/rec1`,
    { fields: { Age: null } },
    ROW,
    ROW,
  ],
  [
    'updateRecords',
    { records: [{ id: 'rec1', fields: { Age: 1 } }] },
    'PATCH',
    PATH,
    { records: [{ id: 'rec1', fields: { Age: 1 } }] },
    { records: [ROW] },
    { value: [ROW] },
  ],
  [
    'upsertRecord',
    { fields: { Name: 'Ada' }, keys: ['Name'] },
    'PATCH',
    PATH,
    { performUpsert: { fieldsToMergeOn: ['Name'] }, records: [{ fields: { Name: 'Ada' } }] },
    { records: [ROW], createdRecords: ['rec1'], updatedRecords: [] },
    ROW,
  ],
  [
    'updateOrCreateRecord',
    { record: 'rec1', fields: { Name: 'Ada' } },
    'PATCH',
    `${PATH}/rec1`,
    { fields: { Name: 'Ada' } },
    ROW,
    ROW,
  ],
  [
    'deleteRecord',
    { record: 'rec1' },
    'DELETE',
    `${PATH}/rec1`,
    undefined,
    { id: 'rec1', deleted: true },
    { id: 'rec1', deleted: true },
  ],
  [
    'createComment',
    { record: 'rec1', text: 'Hi' },
    'POST',
    `${PATH}/rec1/comments`,
    { text: 'Hi' },
    { id: 'com1' },
    { id: 'com1' },
  ],
])('%s with %j sends %s %s', async (action, input, method, path, body, json, output) => {
  const vendor = await start(() => ({ json }))
  const done = await vendor.act(config(action, input))
  expect(done).toMatchObject({ status: 'SUCCESS', error: '' })
  expect(done.output).toEqual(output)
  const [asked] = vendor.asked
  expect(vendor.asked).toHaveLength(1)
  expect({ method: asked?.method, path: asked?.path }).toEqual({ method, path })
  expect(asked?.json).toEqual(body ?? {})
})

test('bases and comments are read page after page, and the tables of a base at once', async () => {
  const vendor = await start(({ path, query }) => {
    if (path.endsWith('/tables')) return { json: { tables: [{ id: 'tbl1' }] } }
    const key = path.endsWith('comments') ? 'comments' : 'bases'
    const isLast = query.get('offset') === 'o1'
    return { json: { [key]: [{ id: isLast ? 2 : 1 }], ...(isLast ? {} : { offset: 'o1' }) } }
  })
  const bases = await vendor.act({ connector: 'airtable', action: 'listBases', input: {} })
  expect(bases.output).toEqual({ value: [{ id: 1 }, { id: 2 }] })
  const comments = await vendor.act(config('listComments', { record: 'rec1' }))
  expect(comments.output).toEqual({ value: [{ id: 1 }, { id: 2 }] })
  const tables = await vendor.act({ connector: 'airtable', action: 'listTables', input: { base: 'appB' } })
  expect(tables.output).toEqual({ value: [{ id: 'tbl1' }] })
  expect(vendor.asked.map(({ path }) => path)).toEqual([
    ...['/v0/meta/bases', '/v0/meta/bases', `${PATH}/rec1/comments`, `${PATH}/rec1/comments`],
    '/v0/meta/bases/appB/tables',
  ])
})

test('a record is deleted once if the answer is lost, and one that is not there is a failure', async () => {
  let isThere = true
  const vendor = await start(({ method }, count) => {
    if (method !== 'DELETE') return { status: 400 }
    if (!isThere) return { status: 404, json: { error: 'NOT_FOUND' } }
    isThere = false
    return count === 1 ? 'cut' : { json: {} }
  })
  const lost = await vendor.act(config('deleteRecord', { record: 'rec1' }))
  expect(lost).toMatchObject({ status: 'SUCCESS', retries: 1, output: { id: 'rec1', deleted: true } })
  const missing = await vendor.act(config('deleteRecord', { record: 'rec1' }))
  expect(missing).toMatchObject({ status: 'FAILED', retries: 0 })
  expect(missing.error).toMatch(/^Airtable responded with 404: NOT_FOUND/)
})

test('records that match are found among all pages, and changed', async () => {
  const rows = [
    { id: 'rec1', fields: { Name: 'Ada', Tags: ['a', 'b'] } },
    { id: 'rec2', fields: { Name: 'Bob', Tags: ['b'] } },
    { id: 'rec3', fields: { Name: 'Ada' } },
  ]
  const vendor = await start(({ path, json }) => {
    if (!path.endsWith('listRecords')) return { json: { records: json.records } }
    return json.offset
      ? { json: { records: rows.slice(2) } }
      : { json: { records: rows.slice(0, 2), offset: 'o' } }
  })
  const change = (fields: object, more: object) => config('updateMatching', { fields, ...more })
  const first = await vendor.act(change({ Name: 'Ada', Age: 3 }, { keys: ['Name'] }))
  expect(first.output).toEqual({ value: [{ id: 'rec1', fields: { Age: 3 } }] })
  expect(vendor.asked[0]).toMatchObject({ json: { fields: ['Name'] } })
  expect(vendor.asked.at(-1)).toMatchObject({ method: 'PATCH', path: PATH })
  const all = await vendor.act(change({ Name: 'Ada', Age: 3 }, { keys: ['Name'], all: true }))
  expect(all.output.value.map(({ id }: { id: string }) => id)).toEqual(['rec1', 'rec3'])
  const linked = await vendor.act(change({ Tags: 'b', Age: 3 }, { keys: ['Tags'], all: true }))
  expect(linked.output.value.map(({ id }: { id: string }) => id)).toEqual(['rec1', 'rec2'])
  const sent = vendor.asked.length
  const none = await vendor.act(change({ Name: 'Eve', Age: 3 }, { keys: ['Name'] }))
  expect(none).toMatchObject({ status: 'FAILED' })
  expect(none.error).toMatch(/No record has these values/)
  expect(vendor.asked.slice(sent).every(({ method }) => method === 'POST')).toBe(true)
})

test('a record that is not there by its id is added, at most once', async () => {
  const vendor = await start(({ method }, count) => {
    if (method === 'PATCH') return { status: 422, json: { error: { type: 'ROW_DOES_NOT_EXIST' } } }
    return count === 2 ? { json: ROW } : 'cut'
  })
  const input = { record: 'rec9', fields: { Name: 'Ada' } }
  expect(await vendor.act(config('updateOrCreateRecord', input))).toMatchObject({ output: ROW })
  expect(vendor.asked.map(({ method }) => method)).toEqual(['PATCH', 'POST'])
  const lost = await vendor.act(config('updateOrCreateRecord', { fields: {} }), { onError: 'CONTINUE' })
  expect(lost.output.error.type).toBe('OutcomeUnknown')
  expect(vendor.asked).toHaveLength(3)
})
