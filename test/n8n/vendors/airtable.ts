import type { Answer, Asked } from '../mock.ts'
import type { VendorAsking } from './vendors.ts'

const ROWS = [
  { id: 'rec1', createdTime: '2026-01-01T00:00:00.000Z', fields: { Name: 'Ada', n: 1, tags: ['a', 'b'] } },
  { id: 'rec2', createdTime: '2026-01-02T00:00:00.000Z', fields: { Name: 'Bob', n: 2 } },
]

/** What Airtable was asked for, without the ways in which n8n and Perdure ask for the same. */
export function readAirtableAsking({ path, query, body, method }: Asked): VendorAsking {
  const json = body === '' ? {} : JSON.parse(body)
  const [, , , , , ...rest] = path.split('/')
  if (method === 'GET' || path.endsWith('/listRecords')) {
    const formula = query.get('filterByFormula') ?? json.filterByFormula ?? null
    return { asked: `airtable: read ${rest.filter((one) => one !== 'listRecords')}`, body: { formula } }
  }
  const { typecast, records = [{ id: rest[1], fields: json.fields }], performUpsert } = json
  const written = { records, ...(performUpsert ? { performUpsert } : {}), ...(typecast ? { typecast } : {}) }
  return {
    asked: `airtable: ${method}`,
    body: method === 'DELETE' ? { id: rest[1] } : JSON.parse(JSON.stringify(written)),
  }
}

/** The answer of an Airtable whose tables all have the same two records. */
export function answerAirtable({ path, query, body, method }: Asked): Answer {
  const json = body === '' ? {} : JSON.parse(body)
  const id = path.split('/')[6]
  const known = ROWS.find((row) => row.id === id)
  if (/refuse|"n":"(?!\d)/.test(body))
    return { status: 422, json: { error: { type: 'UNKNOWN_FIELD_NAME', message: 'Unknown field name' } } }
  if (path.includes('/meta/bases/')) return { json: { tables: [{ id: 'tbl1', name: 'One', fields: [] }] } }
  if (id === 'listRecords' || (method === 'GET' && id === undefined)) {
    const most = Number(query.get('maxRecords') ?? json.maxRecords ?? json.pageSize ?? 100)
    return { json: { records: ROWS.slice(0, most) } }
  }
  if (id !== undefined && !known)
    return { status: method === 'PATCH' ? 422 : 404, json: { error: 'NOT_FOUND' } }
  if (method === 'GET') return { json: known }
  if (method === 'DELETE') return { json: { id, deleted: true } }
  const write = (one: { id?: string; fields: object }) => ({
    ...{ id: one.id ?? 'rec9', createdTime: '2026-01-01T00:00:00.000Z' },
    fields: { ...ROWS.find((row) => row.id === one.id)?.fields, ...one.fields },
  })
  if (!json.records) return { json: write({ ...(id ? { id } : {}), ...json }) }
  const isUnknown = (one: { id?: string }) => one.id !== undefined && !ROWS.some((row) => row.id === one.id)
  if (json.records.some(isUnknown)) return { status: 422, json: { error: { type: 'ROW_DOES_NOT_EXIST' } } }
  return { json: { records: json.records.map(write) } }
}
