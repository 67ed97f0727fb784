import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { type Body, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { admin, teamId } = service

const COLUMNS = [
  { name: 'key', type: 'text', unique: true },
  { name: 'n', type: 'number' },
  { name: 'yes', type: 'boolean' },
  { name: 'at', type: 'date' },
  { name: 'more', type: 'json' },
]

async function createTable(name: string) {
  const { body } = await service.call('POST', '/api/tables', admin, { teamId, name, columns: COLUMNS })
  return body.id as string
}

async function send(id: string, csv: string | ReadableStream, query = '', more: object = {}) {
  const answer = await service.request(`/api/tables/${id}/csv${query}`, {
    ...{ method: 'POST', as: admin, body: csv, headers: { 'Content-Type': 'text/csv' } },
    ...more,
  })
  return { status: answer.status, body: (await answer.json()) as Body }
}

const read = async (id: string, query = '') =>
  (await service.request(`/api/tables/${id}/csv${query}`, { as: admin })).text()

const bare = (csv: string) =>
  csv
    .split('\r\n')
    .filter((line) => line !== '')
    .map((line) => line.split(',').slice(1, -2).join(','))

test('what is exported can be imported again, and is the same', async () => {
  const id = await createTable('first')
  const rows = [
    { key: '=1+1', n: '12345678901234567890', yes: true, at: '2026-01-01', more: { a: ['x,"y"'] } },
    { key: "a\r\n'=b", n: -0.5, yes: false, more: '\ud800\0' },
    { key: "'=quoted" },
    { key: ' spaces ' },
  ]
  await service.call('POST', `/api/tables/${id}/rows`, admin, { rows })
  const csv = await read(id)
  expect(csv.split('\r\n')[0]).toBe('id,key,n,yes,at,more,createdAt,updatedAt')
  const other = await createTable('second')
  expect(await send(other, csv)).toEqual({ status: 200, body: { inserted: 4, updated: 0 } })
  const shown = async (table: string) => {
    const { body } = await service.call('GET', `/api/tables/${table}/rows`, admin)
    return body.content.map(
      ({ id: _, createdAt: __, updatedAt: ___, ...row }: Record<string, unknown>) => row,
    )
  }
  expect(await shown(other)).toEqual(await shown(id))
  expect(await send(other, csv, '?keys=key')).toEqual({ status: 200, body: { inserted: 0, updated: 4 } })
  const where = encodeURIComponent('[{"column":"yes","op":"eq","value":false}]')
  expect(bare(await read(id, `?where=${where}`))).toHaveLength(3)
})

test('every fault of a file is named by its line, and what is no CSV is refused', async () => {
  const id = await createTable('faults')
  const wrong = await send(id, 'key,n,yes,at,more\na,x,maybe,never,{\nb,1,TRUE,2026-01-01,[1]\nb,2\n')
  expect([wrong.status, wrong.body.message]).toEqual([400, expect.stringContaining('CSV')])
  const types = await send(id, 'key,n,yes,at\na,x,maybe,never\nb,1,TRUE,2026-01-01\n')
  expect([types.status, types.body.errors.map(({ path }: { path: string }) => path)]).toEqual([
    400,
    ['line 2.n', 'line 2.yes', 'line 2.at'],
  ])
  const names = await send(id, 'key,key,other,id\na,b,c,d\n')
  expect(names.body.errors.map(({ path }: { path: string }) => path)).toEqual([
    'line 1, column 2',
    'line 1, column 3',
  ])
  expect((await send(id, 'key\n"open\n')).status).toBe(400)
  expect((await send(id, '')).status).toBe(400)
  expect((await send(id, 'key\na\na\n')).status).toBe(409)
  expect((await send(id, 'key\na\n', '?keys=n')).status).toBe(400)
  expect((await send(id, 'key\na\n', '', { headers: { 'Content-Type': 'text/plain' } })).status).toBe(415)
  expect(bare(await read(id))).toEqual(['key,n,yes,at,more'])
})

test('a large file is written while it comes, up to the piece that has a fault', async () => {
  const id = await createTable('large')
  const encoder = new TextEncoder()
  let line = 0
  const body = new ReadableStream({
    pull(controller) {
      if (line === 0) controller.enqueue(encoder.encode('key,n\n'))
      const lines = Array.from({ length: 1_000 }, () => `k${++line},${line === 11_500 ? 'x' : line}\n`)
      controller.enqueue(encoder.encode(lines.join('')))
      if (line >= 12_000) controller.close()
    },
  })
  const { status, body: answer } = await send(id, body, '', { duplex: 'half' })
  expect([status, answer.errors]).toEqual([400, [{ path: 'line 11501.n', message: expect.any(String) }]])
  const upTo = Number(/The lines up to (\d+) are written/.exec(answer.message)![1])
  const { body: table } = await service.call('GET', `/api/tables/${id}`, admin)
  expect(upTo).toBeGreaterThan(5_000)
  expect(table.rowCount).toBe(upTo - 1)
})
