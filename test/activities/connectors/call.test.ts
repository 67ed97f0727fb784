import { describe, expect, test } from 'vitest'
import { SECRET, useVendors } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const start = useVendors(host)

const place = { connector: 'airtable', base: 'appB', table: 'Cu stomers' }
const config = (action: string, input: object = {}) => ({
  connector: 'airtable',
  action,
  input: { base: place.base, table: place.table, ...input },
})
const create = config('createRecord', { fields: { Name: '{{ $trigger.name }}' } })

describe('an action that must not be repeated', () => {
  test('is sent once, with the values of its input', async () => {
    const vendor = await start(() => ({ json: { id: 'rec1', fields: { Name: 'Ada' } } }))
    const { status, output, retries } = await vendor.act(create, { data: { name: 'Ada' } })
    expect({ status, output, retries }).toEqual({
      status: 'SUCCESS',
      output: { id: 'rec1', fields: { Name: 'Ada' } },
      retries: 0,
    })
    expect(vendor.asked).toHaveLength(1)
    expect(vendor.asked[0]).toMatchObject({
      ...{ method: 'POST', path: '/v0/appB/Cu%20stomers', json: { fields: { Name: 'Ada' } } },
      headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
    })
  })

  test.each([
    ['a connection that is cut', () => 'cut' as const],
    ['500', () => ({ status: 500, json: { error: 'oops' } })],
    ['503 with Retry-After', () => ({ status: 503, headers: { 'retry-after': '0' } })],
    ['408', () => ({ status: 408 })],
    [
      'an answer that cannot be read',
      () => ({ headers: { 'content-type': 'application/json' }, bytes: Buffer.from('{"id":') }),
    ],
    ['a redirect', () => ({ status: 302, headers: { location: '/elsewhere' } })],
  ])('is not sent again after %s', async (_, reply) => {
    const vendor = await start(reply)
    const { status, error, output } = await vendor.act(create, { onError: 'CONTINUE' })
    expect(status).toBe('FAILED')
    expect(output.error.type).toBe('OutcomeUnknown')
    expect(error).toMatch(/may have been sent, but no answer came that says so/)
    expect(vendor.asked).toHaveLength(1)
  })

  test('is sent again after 429, and where `repeat` is set', async () => {
    const busy = await start((_, count) =>
      count === 1 ? { status: 429, headers: { 'retry-after': '0' } } : { json: { id: 'rec1' } },
    )
    expect(await busy.act(create)).toMatchObject({ status: 'SUCCESS', retries: 1 })
    const cut = await start((_, count) => (count === 1 ? 'cut' : { json: { id: 'rec1' } }))
    expect(await cut.act({ ...create, repeat: true })).toMatchObject({ status: 'SUCCESS', retries: 1 })
    expect(cut.asked).toHaveLength(2)
  })

  test('fails for good with what the service says', async () => {
    const vendor = await start(() => ({
      status: 422,
      json: { error: { message: `Unknown field "Nme" ${SECRET}` } },
    }))
    const { status, error, retries } = await vendor.act(create)
    expect({ status, retries }).toEqual({ status: 'FAILED', retries: 0 })
    expect(error).toMatch(/^Airtable responded with 422: Unknown field "Nme"/)
  })
})

test('what only reads is repeated, and reads page after page', async () => {
  const vendor = await start(({ json }, count) => {
    if (count === 2) return { status: 500 }
    const from = Number(json.offset ?? 0)
    const records = Array.from({ length: 2 }, (_, at) => ({ id: `rec${from + at}` }))
    return { json: { records, ...(from < 4 ? { offset: String(from + 2) } : {}) } }
  })
  const { status, output, retries } = await vendor.act(
    config('listRecords', { filterByFormula: "{A} = '{{ 1 + 1 }}'" }),
  )
  expect({ status, retries }).toEqual({ status: 'SUCCESS', retries: 1 })
  expect(output.value.map(({ id }: { id: string }) => id)).toEqual([
    'rec0',
    'rec1',
    'rec2',
    'rec3',
    'rec4',
    'rec5',
  ])
  expect(vendor.asked.at(-1)?.json).toEqual({ filterByFormula: "{A} = '2'", offset: '4', pageSize: 100 })
  const few = await vendor.act(config('listRecords', { limit: 3 }))
  expect(few.output.value).toHaveLength(3)
})

test('everything wrong with the input is named before anything is sent', async () => {
  const vendor = await start(() => ({ json: {} }))
  const { error, output } = await vendor.act(
    config('listRecords', { table: '{{ $trigger.nothing }}', limit: '{{ 0 }}', sort: '{{ "x" }}' }),
    { onError: 'CONTINUE' },
  )
  expect(output.error.type).toBe('InvalidInput')
  expect(error).toMatch(/table/)
  expect(error).toMatch(/limit: must be at least 1/)
  expect(error).toMatch(/sort: must be array/)
  expect(vendor.asked).toHaveLength(0)
})
