import { createHash, createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'
import { watchThread } from '../../support/thread.ts'

const running = await keep(shareRunning())

type Config = Record<string, unknown>
type Cases = Record<string, [type: string, config: Config]>

/** Executes all nodes in parallel after a trigger. Returns the output of each, or its error message. */
async function outcomes(cases: Cases, data: Config = {}): Promise<Record<string, unknown>> {
  const entries = Object.entries(cases)
  const run = await running.run(
    {
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER' },
        ...entries.map(([id, [type, config]]) => ({ id, type, config, onError: 'CONTINUE' })),
      ],
      edges: entries.map(([id]) => ({ source: 'start', target: id })),
    },
    data,
  )
  expect(run.status, run.errorMessage ?? '').toBe('SUCCESS')
  return Object.fromEntries(
    entries.map(([id]) => {
      const node = nodeOf(run, id)
      return [id, node.status === 'SUCCESS' ? node.outputData : node.errorMessage]
    }),
  )
}

/** The faults that saving a node with this config reports, each with its path in the config. */
async function faultsOf(type: string, config: Config): Promise<string[]> {
  const json = { name: 'w', teamId: running.teamId, nodes: [{ id: 'n', type, config }], edges: [] }
  const response = await running.request('/api/workflows', { method: 'POST', as: running.admin, json })
  expect(response.status, type).toBe(400)
  const { errors } = (await response.json()) as { errors: { path: string; message: string }[] }
  return errors.map(({ path, message }) => `${path.replace('nodes[0].config.', '')}: ${message}`)
}

const people = [
  { name: 'Eve', age: 31, city: { name: 'Rome' } },
  { name: 'Bob', age: 25, city: { name: 'Oslo' } },
  { name: 'Ann', age: 31, city: { name: 'Oslo' } },
  { name: 'Dan', city: { name: 'Rome' } },
]
const [eve, bob, ann, dan] = people
const items = '{{ $input.people }}'

describe('lists', () => {
  test('MAP, SORT, LIMIT and DEDUPLICATE give the expected items', async () => {
    expect(
      await outcomes(
        {
          map: ['MAP', { items, expression: '{"who": $uppercase($item.name), "at": $index}' }],
          path: ['MAP', { items, expression: '{{ $item.age }}' }],
          sort: ['SORT', { items, by: 'age' }],
          down: ['SORT', { items, by: [{ key: 'age', order: 'desc' }, 'city.name'] }],
          made: ['SORT', { items, by: '{{ $substring($item.name, 1) }}' }],
          bare: ['SORT', { items: [3, 'b', null, 1, true, 'a', { x: 1 }, 2], order: 'desc' }],
          first: ['LIMIT', { items, count: 1 }],
          last: ['LIMIT', { items, count: '{{ $input.two }}', keep: 'last', offset: 1 }],
          all: ['LIMIT', { items, count: 9, keep: 'last' }],
          one: ['LIMIT', { items: '{{ $input.people[0] }}', count: 2 }],
          none: ['LIMIT', { items: '{{ $input.missing }}', count: 2 }],
          unique: ['DEDUPLICATE', { items, by: 'age' }],
          latest: ['DEDUPLICATE', { items, by: ['age', '{{ 1 }}'], keep: 'last' }],
          whole: ['DEDUPLICATE', { items: [{ a: 1, b: 2 }, { b: 2, a: 1 }, '1', 1, 1, '\ud800', '\ud800'] }],
          wrong: ['LIMIT', { items, count: '{{ "many" }}' }],
          missing: ['LIMIT', { items, count: '{{ $input.missing }}' }],
          thrown: ['SORT', { items, by: '{{ $item.name + 1 }}' }],
        },
        { people, two: '2' },
      ),
    ).toEqual({
      map: { items: ['EVE', 'BOB', 'ANN', 'DAN'].map((who, at) => ({ who, at })) },
      path: { items: [31, 25, 31, null] },
      sort: { items: [bob, eve, ann, dan] },
      down: { items: [ann, eve, bob, dan] },
      made: { items: [dan, ann, bob, eve] },
      bare: { items: [{ x: 1 }, 'b', 'a', 3, 2, 1, true, null] },
      first: { items: [eve] },
      last: { items: [bob, ann] },
      all: { items: people },
      one: { items: [eve] },
      none: { items: [] },
      unique: { items: [eve, bob, dan] },
      latest: { items: [bob, ann, dan] },
      whole: { items: [{ a: 1, b: 2 }, '1', 1, '\ud800'] },
      wrong: 'count must be a number',
      missing: 'count must have a value, but it is empty',
      thrown: expect.stringMatching(/^expression \{\{ \$item\.name \+ 1 \}\}/),
    })
  })

  test('AGGREGATE groups and measures, and skips nulls', async () => {
    const fields = [
      { operation: 'count' },
      { operation: 'sum', field: 'age' },
      { operation: 'avg', field: 'age', as: 'mean' },
      { operation: 'min', field: 'name' },
      { operation: 'max', field: 'age' },
      { operation: 'collect', field: 'name' },
      { operation: 'countUnique', field: 'age' },
      { operation: 'join', field: 'name', separator: '+' },
      { operation: 'first', field: 'age', as: 'oldest' },
      { operation: 'last', field: '{{ $length($item.name) }}' },
    ]
    const total = { operation: 'sum', field: 'n', as: 'total' }
    const done = await outcomes(
      {
        grouped: ['AGGREGATE', { items, groupBy: 'city.name', fields }],
        counted: ['AGGREGATE', { items, groupBy: ['city', { key: '{{ $item.age > 30 }}', as: 'old' }] }],
        all: ['AGGREGATE', { items }],
        none: [
          'AGGREGATE',
          { items: [], fields: [total, { operation: 'avg', field: 'n' }, { operation: 'max', field: 'n' }] },
        ],
        nobody: ['AGGREGATE', { items: [], groupBy: 'n' }],
        texts: ['AGGREGATE', { items: [{ n: '1.5' }, { n: 2 }, { n: null }], fields: [total] }],
        wrong: ['AGGREGATE', { items: [{ n: 1 }, { n: 'x' }], fields: [total] }],
        vast: ['AGGREGATE', { items: [{ n: 1e308 }, { n: 1e308 }], fields: [total] }],
      },
      { people },
    )
    expect(done).toEqual({
      grouped: {
        items: [
          {
            'city.name': 'Rome',
            count: 2,
            sum_age: 31,
            mean: 31,
            min_name: 'Dan',
            max_age: 31,
            collect_name: ['Eve', 'Dan'],
            countUnique_age: 1,
            join_name: 'Eve+Dan',
            oldest: 31,
            last: 3,
          },
          {
            'city.name': 'Oslo',
            count: 2,
            sum_age: 56,
            mean: 28,
            min_name: 'Ann',
            max_age: 31,
            collect_name: ['Bob', 'Ann'],
            countUnique_age: 2,
            join_name: 'Bob+Ann',
            oldest: 25,
            last: 3,
          },
        ],
      },
      counted: {
        items: [
          { city: { name: 'Rome' }, old: true, count: 1 },
          { city: { name: 'Oslo' }, old: false, count: 1 },
          { city: { name: 'Oslo' }, old: true, count: 1 },
          { city: { name: 'Rome' }, old: null, count: 1 },
        ],
      },
      all: { items: [{ count: 4 }] },
      none: { items: [{ total: 0, avg_n: null, max_n: null }] },
      nobody: { items: [] },
      texts: { items: [{ total: 3.5 }] },
      wrong: 'total needs finite numbers, but an item has a string that is not one',
      vast: 'total is too large for a number',
    })
  })

  test('SPLIT, RENAME_KEYS, JOIN and COMPARE_DATASETS give the expected items', async () => {
    const left = [
      { id: 1, a: 'x' },
      { id: 2, a: 'y' },
      { id: null, a: 'z' },
    ]
    const right = [
      { key: 2, b: 1, a: 'r' },
      { key: 2, b: 2 },
      { key: 3, b: 3 },
      { key: null, b: 4 },
    ]
    const on = { left: 'id', right: 'key' }
    const orders = [{ no: 1, lines: [{ n: 1 }, { n: 2 }] }, { no: 2, lines: { n: 3 } }, { no: 3 }]
    const hostile = [{ a: 1, constructor: { x: 1 } }]
    const done = await outcomes(
      {
        list: ['SPLIT', { value: '{{ [1, 2] }}' }],
        text: ['SPLIT', { value: 'a, b,,c ', separator: ',', trim: true }],
        raw: ['SPLIT', { value: 'a,,b', separator: ',' }],
        single: ['SPLIT', { value: 'abc' }],
        lines: ['SPLIT', { items: orders, field: 'lines' }],
        others: ['SPLIT', { items: orders, field: 'lines', keepOthers: true }],
        rename: ['RENAME_KEYS', { items: [{ a: 1, b: 2, c: 3 }, 7], keys: { a: 'b', b: 'a', x: 'c' } }],
        proto: ['RENAME_KEYS', { items: '{{ $input.hostile }}', keys: { a: '__proto__' } }],
        inner: ['JOIN', { left, right, on }],
        outer: ['JOIN', { left, right, on: [on], mode: 'outer', prefer: 'left' }],
        onlyLeft: ['JOIN', { left, right, on, mode: 'left' }],
        onlyRight: ['JOIN', { left: [], right, on, mode: 'right' }],
        compare: [
          'COMPARE_DATASETS',
          {
            left: [...left, { id: 4, same: { p: 1, q: 2 } }],
            right: [{ id: 2, a: 'n' }, { same: { q: 2, p: 1 }, id: 4 }, { id: 9 }],
            on: 'id',
          },
        ],
        wrong: ['JOIN', { left: [1], right, on }],
      },
      { hostile },
    )
    expect(done).toEqual({
      list: { items: [1, 2] },
      text: { items: ['a', 'b', 'c'] },
      raw: { items: ['a', '', 'b'] },
      single: { items: ['abc'] },
      lines: { items: [{ n: 1 }, { n: 2 }, { n: 3 }] },
      others: {
        items: [
          { no: 1, lines: { n: 1 } },
          { no: 1, lines: { n: 2 } },
          { no: 2, lines: { n: 3 } },
        ],
      },
      rename: { items: [{ b: 1, a: 2, c: 3 }, 7] },
      proto: { items: [JSON.parse('{"__proto__": 1, "constructor": {"x": 1}}')] },
      inner: {
        items: [
          { id: 2, a: 'r', key: 2, b: 1 },
          { id: 2, a: 'y', key: 2, b: 2 },
        ],
      },
      outer: {
        items: [
          left[0],
          { id: 2, a: 'y', key: 2, b: 1 },
          { id: 2, a: 'y', key: 2, b: 2 },
          left[2],
          right[2],
          right[3],
        ],
      },
      onlyLeft: {
        items: [left[0], expect.objectContaining({ b: 1 }), expect.objectContaining({ b: 2 }), left[2]],
      },
      onlyRight: { items: right },
      compare: {
        onlyLeft: [left[0], left[2]],
        onlyRight: [{ id: 9 }],
        same: [{ id: 4, same: { p: 1, q: 2 } }],
        different: [{ left: left[1], right: { id: 2, a: 'n' }, fields: ['a'] }],
      },
      wrong: 'left must contain only objects',
    })
  })

  test('work on 40,000 items does not block the thread, and an output that is too large fails', {
    tags: 'long',
    timeout: 60_000,
  }, async () => {
    const stretch = watchThread()
    const run = await running.run({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER' },
        {
          id: 'make',
          type: 'MAP',
          config: {
            items: '{{ [1..40000] }}',
            expression: '{"n": $item * 7919 % 100003, "g": $item % 100}',
          },
        },
        {
          id: 'sort',
          type: 'SORT',
          config: { items: '{{ $nodes.make.items }}', by: ['g', { key: 'n', order: 'desc' }] },
        },
        {
          id: 'group',
          type: 'AGGREGATE',
          config: { items: '{{ $input.items }}', groupBy: 'g', fields: [{ operation: 'max', field: 'n' }] },
        },
        {
          id: 'self',
          type: 'JOIN',
          onError: 'CONTINUE',
          config: { left: '{{ $nodes.make.items }}', right: '{{ $nodes.make.items }}', on: 'g' },
        },
        { id: 'top', type: 'LIMIT', config: { items: '{{ $nodes.sort.items }}', count: 2 } },
      ],
      edges: ['start make', 'make sort', 'sort group', 'group self', 'self top'].map((edge) => {
        const [source = '', target = ''] = edge.split(' ')
        return { source, target }
      }),
    })
    // Parsing a few MB of JSON is the longest that the thread is blocked.
    expect(stretch.stop()).toBeLessThan(600)
    expect(run.status, run.errorMessage ?? '').toBe('SUCCESS')
    const { items: top } = nodeOf(run, 'top').outputData as { items: { n: number; g: number }[] }
    expect(top[0]!.g).toBe(0)
    expect(top[0]!.n).toBeGreaterThan(top[1]!.n)
    expect((nodeOf(run, 'group').outputData as { items: unknown[] }).items).toHaveLength(100)
    expect(nodeOf(run, 'self').errorMessage).toMatch(/larger than 8 MB/)
  })
})

describe('values', () => {
  test('TRANSFORM gives a value, TEMPLATE a text', async () => {
    const done = await outcomes(
      {
        list: ['TRANSFORM', { expression: '$input.people[age > 30].name' }],
        marked: ['TRANSFORM', { expression: '{{ {"n": $count($input.people)} }}' }],
        nothing: ['TRANSFORM', { expression: '$input.missing' }],
        wrong: ['TRANSFORM', { expression: '$input.people + 1' }],
        text: [
          'TEMPLATE',
          { text: 'Hi {{ $input.people[0].name }}, you are {{ $input.people[0].age }}{{ $input.missing }}' },
        ],
        object: ['TEMPLATE', { text: '{{ $input.people[0].city }}' }],
        empty: ['TEMPLATE', { text: '{{ $input.missing }}' }],
      },
      { people },
    )
    expect(done).toEqual({
      list: { value: ['Eve', 'Ann'] },
      marked: { n: 4 },
      nothing: { value: null },
      wrong: expect.stringMatching(/^expression/),
      text: { text: 'Hi Eve, you are 31' },
      object: { text: '{"name":"Rome"}' },
      empty: { text: '' },
    })
  })

  test('DATE reads, moves, formats and compares dates', async () => {
    const value = '2026-03-28T12:00:00'
    const timezone = 'Europe/Berlin'
    const done = (await outcomes(
      {
        now: ['DATE', { operation: 'now', timezone, format: 'yyyy' }],
        parse: ['DATE', { operation: 'parse', value, timezone }],
        epoch: ['DATE', { operation: 'parse', value: '{{ $input.at }}' }],
        written: ['DATE', { operation: 'parse', value: '1774695600000' }],
        given: [
          'DATE',
          { operation: 'parse', value: '1.2.2026 3:04', inputFormat: 'd.M.yyyy H:mm', timezone },
        ],
        mail: ['DATE', { operation: 'parse', value: 'Sat, 28 Mar 2026 12:00:00 +0100' }],
        format: ['DATE', { operation: 'format', value, format: "cccc d. LLLL yyyy 'um' HH", locale: 'de' }],
        // Across the change to summer time, when a day has 23 hours.
        day: ['DATE', { operation: 'add', value, amount: 1, unit: 'days', timezone }],
        hours: ['DATE', { operation: 'add', value, amount: '{{ 24 }}', unit: 'hour', timezone }],
        back: ['DATE', { operation: 'subtract', value: '2026-03-31', amount: 1, unit: 'month' }],
        begin: ['DATE', { operation: 'startOf', value, unit: 'week' }],
        end: ['DATE', { operation: 'endOf', value, unit: 'months' }],
        apart: ['DATE', { operation: 'difference', from: value, to: '2026-03-30T00:00:00', unit: 'days' }],
        wrong: ['DATE', { operation: 'parse', value: 'tomorrow' }],
        misfit: ['DATE', { operation: 'parse', value: '2026', inputFormat: 'd.M.yyyy' }],
        zone: ['DATE', { operation: 'now', timezone: '{{ "Mars/Base" }}' }],
        far: ['DATE', { operation: 'add', value, amount: 1e9, unit: 'years' }],
        // luxon's regular expression for this format would take for ages.
        bomb: ['DATE', { operation: 'parse', value: `${'1'.repeat(120)}x`, inputFormat: 'hm'.repeat(40) }],
      },
      { at: 0 },
    )) as Record<string, { date: string; text: string }>
    const { now, bomb, ...rest } = done
    expect(Math.abs(Date.parse(now!.date) - Date.now())).toBeLessThan(60_000)
    expect(now!.text).toMatch(/^\d{4}$/)
    expect(rest).toEqual({
      parse: {
        date: '2026-03-28T11:00:00.000Z',
        local: '2026-03-28T12:00:00.000+01:00',
        epochMs: 1774695600000,
        text: null,
      },
      epoch: { date: '1970-01-01T00:00:00.000Z', local: '1970-01-01T00:00:00.000Z', epochMs: 0, text: null },
      written: expect.objectContaining({ date: '2026-03-28T11:00:00.000Z' }),
      given: expect.objectContaining({ date: '2026-02-01T02:04:00.000Z' }),
      mail: expect.objectContaining({ date: '2026-03-28T11:00:00.000Z' }),
      format: expect.objectContaining({ text: 'Samstag 28. März 2026 um 12' }),
      day: expect.objectContaining({ date: '2026-03-29T10:00:00.000Z' }),
      hours: expect.objectContaining({ date: '2026-03-29T11:00:00.000Z' }),
      back: expect.objectContaining({ date: '2026-02-28T00:00:00.000Z' }),
      begin: expect.objectContaining({ date: '2026-03-23T00:00:00.000Z' }),
      end: expect.objectContaining({ date: '2026-03-31T23:59:59.999Z' }),
      apart: { difference: 1.5 },
      wrong: 'value must be a date: ISO 8601, epoch milliseconds, or in the inputFormat',
      misfit: 'value must be a date in the format "d.M.yyyy"',
      zone: 'timezone must be a time zone such as Europe/Berlin',
      far: 'value must lead to a date within the years -9999 to 9999',
    })
    expect(bomb).toMatch(/took longer|must be a date/)
  }, 40_000)

  test('DATE without a time zone of its own uses the one of its workflow', async () => {
    const format = (id: string, config: Config) => {
      return {
        id,
        type: 'DATE',
        config: { operation: 'format', value: '2026-01-01', format: 'ZZ', ...config },
      }
    }
    const run = await running.run({
      settings: { timezone: 'Asia/Tokyo' },
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER' },
        format('its', {}),
        format('own', { timezone: 'UTC' }),
        format('given', { timezone: '{{ $execution.timezone }}' }),
      ],
      edges: [
        { source: 'start', target: 'its' },
        { source: 'start', target: 'own' },
        { source: 'start', target: 'given' },
      ],
    })
    expect(nodeOf(run, 'its').outputData).toMatchObject({ date: '2025-12-31T15:00:00.000Z', text: '+09:00' })
    expect(nodeOf(run, 'own').outputData).toMatchObject({ text: '+00:00' })
    expect(nodeOf(run, 'given').outputData).toMatchObject({ text: '+09:00' })
  })

  test('DATE fails for a computed format whose letters would come out as they are', async () => {
    const value = '2026-01-02'
    const format = '{{ $input.format }}'
    const done = await outcomes(
      {
        written: ['DATE', { operation: 'format', value, format }],
        now: ['DATE', { operation: 'now', format }],
        read: ['DATE', { operation: 'parse', value, inputFormat: format }],
        meant: ['DATE', { operation: 'format', value, format: '{{ $input.meant }}' }],
      },
      { format: 'YYYY-MM-DD', meant: 'yyyy-MM-dd' },
    )
    const said = 'is no format: "YYYY" is no part of a date there; did you mean yyyy-MM-dd?'
    expect(done).toMatchObject({
      written: `format ${said}`,
      now: `format ${said}`,
      read: `inputFormat ${said}`,
      meant: { text: value },
    })
  })

  test('CRYPTO computes hashes and encodings, RANDOM draws within its bounds', async () => {
    const value = 'äbc'
    const secret = 'key'
    const uuid = expect.stringMatching(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    const done = (await outcomes(
      {
        hash: ['CRYPTO', { operation: 'hash', value: 'abc' }],
        md5: ['CRYPTO', { operation: 'hash', value: 'abc', algorithm: 'md5', encoding: 'base64' }],
        json: ['CRYPTO', { operation: 'hash', value: { a: 1 }, algorithm: 'sha1' }],
        hmac: ['CRYPTO', { operation: 'hmac', value: '{{ $input.value }}', secret, algorithm: 'sha512' }],
        uuid: ['CRYPTO', { operation: 'uuid' }],
        bytes: ['CRYPTO', { operation: 'randomBytes', size: 8 }],
        encode: ['CRYPTO', { operation: 'encode', value }],
        decode: ['CRYPTO', { operation: 'decode', value: 'w6RiYw==' }],
        hex: ['CRYPTO', { operation: 'decode', value: 'C3A462', encoding: 'hex' }],
        nothing: ['CRYPTO', { operation: 'hash', value: '{{ $input.missing }}' }],
        broken: ['CRYPTO', { operation: 'decode', value: '%%' }],
        binary: ['CRYPTO', { operation: 'decode', value: 'ff', encoding: 'hex' }],
        integer: ['RANDOM', { operation: 'integer', min: 5, max: 6 }],
        only: ['RANDOM', { operation: 'integer', min: -3, max: -3 }],
        float: ['RANDOM', { operation: 'float', min: 2, max: 3 }],
        id: ['RANDOM', { operation: 'uuid' }],
        pick: ['RANDOM', { operation: 'pick', items: ['a', 'b'] }],
        pickNone: ['RANDOM', { operation: 'pick', items: '{{ $input.missing }}' }],
        shuffle: ['RANDOM', { operation: 'shuffle', items: '{{ [1..50] }}' }],
        wide: ['RANDOM', { operation: 'integer', min: 0, max: 2 ** 52 }],
        vast: ['RANDOM', { operation: 'float', min: -1.7e308, max: 1.7e308 }],
        backward: ['RANDOM', { operation: 'float', min: 2, max: '{{ 1 }}' }],
      },
      { value },
    )) as Record<string, { value: unknown; items: number[] }>
    const { shuffle, float, ...rest } = done
    expect(rest).toEqual({
      hash: { value: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad' },
      md5: { value: 'kAFQmDzST7DWlj99KOF/cg==' },
      json: { value: createHash('sha1').update('{"a":1}').digest('hex') },
      hmac: { value: createHmac('sha512', secret).update(value).digest('hex') },
      uuid: { value: uuid },
      bytes: { value: expect.stringMatching(/^[0-9a-f]{16}$/) },
      encode: { value: 'w6RiYw==' },
      decode: { value },
      hex: { value: 'äb' },
      nothing: 'value must have a value, but it is empty',
      broken: 'value must be valid base64',
      binary: 'value must decode to UTF-8 text',
      integer: { value: expect.toSatisfy((n) => n === 5 || n === 6) },
      only: { value: -3 },
      id: { value: uuid },
      pick: { value: expect.stringMatching(/^[ab]$/) },
      pickNone: { value: null },
      wide: 'max must be less than 2^48 above min',
      vast: 'max must be closer to min',
      backward: 'max must not be below min',
    })
    expect(float!.value).toBeGreaterThanOrEqual(2)
    expect(float!.value).toBeLessThan(3)
    const order = Array.from({ length: 50 }, (_, i) => i + 1)
    expect(shuffle!.items).not.toEqual(order)
    expect([...shuffle!.items].sort((a, b) => a - b)).toEqual(order)
  })

  test('CSV, JSON, XML and HTML are parsed and written', async () => {
    const csv = '\ufeffname,note\r\n"Ann ""A""","one\ntwo"\nBob\nEve,x,more\n'
    const xml = '<order no="7"><line>a</line><line>b</line></order>'
    const html =
      '<style>p{}</style><h1>Shop</h1><p class="x">A <b>b</b></p><p class="x"><a href="/c?d=1&amp;e">C</a></p>'
    const list = [{ a: 1, b: "'=1+1" }, { a: 'x,"y"', c: [1] }, { b: null }]
    const value = { order: { '@no': '7', line: ['a', 'b'] } }
    const done = await outcomes(
      {
        parse: ['CSV', { operation: 'parse', value: '{{ $input.csv }}' }],
        rows: ['CSV', { operation: 'parse', value: 'a;a\n1;2', delimiter: ';', header: false }],
        names: ['CSV', { operation: 'parse', value: 'a,a,__proto__\n1,2,3' }],
        empty: ['CSV', { operation: 'parse', value: '{{ "" }}' }],
        format: ['CSV', { operation: 'format', items: list }],
        safe: [
          'CSV',
          { operation: 'format', items: list, columns: ['b'], header: false, escapeFormulas: true },
        ],
        broken: ['CSV', { operation: 'parse', value: 'a,b\n"x' }],
        sparse: [
          'CSV',
          { operation: 'format', items: '{{ $map([1..4000], function($n) { {"k" & $n: 1} }) }}' },
        ],
        json: ['JSON', { operation: 'parse', value: '{{ $input.json }}' }],
        written: ['JSON', { operation: 'format', value: { a: '{{ [1] }}' }, indent: 1 }],
        noJson: ['JSON', { operation: 'parse', value: '{"secret": oh}' }],
        xml: ['XML', { operation: 'parse', value: '{{ $input.xml }}' }],
        build: ['XML', { operation: 'build', value }],
        mixed: ['XML', { operation: 'parse', value: '<p>One &#8364; <b>big</b> &#x1F600; step</p>' }],
        order: ['XML', { operation: 'parse', value: '<p>1<b/>2</p>', order: true }],
        rebuilt: ['XML', { operation: 'build', value: { p: { '#children': ['1 ', { b: 'x' }, ' 2'] } } }],
        stray: ['CSV', { operation: 'parse', value: 'a\n5" pipe', lenient: true }],
        noXml: ['XML', { operation: 'parse', value: '<a>' }],
        twoRoots: ['XML', { operation: 'parse', value: '<a/><b/>' }],
        entities: ['XML', { operation: 'parse', value: '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>' }],
        noObject: ['XML', { operation: 'build', value: '{{ [1] }}' }],
        noName: ['XML', { operation: 'build', value: { a: [{ 'b><c': 1 }] } }],
        text: ['HTML', { operation: 'text', value: '{{ $input.html }}' }],
        extract: [
          'HTML',
          {
            operation: 'extract',
            value: '{{ $input.html }}',
            fields: {
              title: 'h1',
              texts: { selector: 'p.x', all: true },
              link: { selector: 'a', attribute: 'href' },
              none: 'h2',
            },
          },
        ],
      },
      { csv, xml, html, json: '{"a": [1, {"__proto__": 2}]}' },
    )
    expect(done).toEqual({
      parse: {
        items: [
          { name: 'Ann "A"', note: 'one\ntwo', column_3: null },
          { name: 'Bob', note: null, column_3: null },
          { name: 'Eve', note: 'x', column_3: 'more' },
        ],
      },
      rows: {
        items: [
          ['a', 'a'],
          ['1', '2'],
        ],
      },
      names: { items: [JSON.parse('{"a": "1", "a_2": "2", "__proto__": "3"}')] },
      empty: { items: [] },
      format: { text: 'a,b,c\n1,=1+1,\n"x,""y""",,[1]\n,,\n' },
      safe: { text: "'=1+1\n\n\n" },
      broken: expect.stringMatching(/^value is not valid CSV: /),
      sparse: 'The output would be larger than 8 MB',
      json: { value: JSON.parse('{"a": [1, {"__proto__": 2}]}') },
      written: { text: '{\n "a": [\n  1\n ]\n}' },
      noJson: 'value is not valid JSON',
      xml: { value },
      build: { text: '<order no="7">\n  <line>a</line>\n  <line>b</line>\n</order>\n' },
      mixed: { value: { p: { b: 'big', '#text': ['One € ', ' 😀 step'] } } },
      order: { value: { p: { '#children': ['1', { b: { '#children': [] } }, '2'] } } },
      rebuilt: { text: '<p>1 <b>x</b> 2</p>\n' },
      stray: { items: [{ a: '5" pipe' }] },
      noXml: expect.stringMatching(/^the XML cannot be converted: /),
      twoRoots: 'the XML cannot be converted: line 1, column 5: has a second root element, b',
      entities:
        'the XML cannot be converted: line 1, column 14: has a document type with entities, which are not read',
      noObject: 'value must be an object to build XML from',
      noName: 'the XML cannot be converted: "b><c" is not a valid name for an element or attribute',
      text: { text: 'Shop\nA b\nC' },
      extract: { values: { title: 'Shop', texts: ['A b', 'C'], link: '/c?d=1&e', none: null } },
    })
  })
})

test('saving a workflow names every fault of a config', async () => {
  const cases: [type: string, config: Config, faults: string[]][] = [
    [
      'SORT',
      { items, by: [{ key: 'a', order: 'up' }] },
      ['by[0]: must be a field or {key, order}, not an object'],
    ],
    [
      'SORT',
      { items: 'x', by: 'a {{ $item.b }}' },
      [
        'items: must be an array or an expression in {{ }}, not a string',
        'by: must be one expression in {{ }}',
      ],
    ],
    [
      'LIMIT',
      { items, count: -1, keep: 'middle' },
      ['count: must be at least 0, not -1', 'keep: must be first or last, not "middle"'],
    ],
    ['AGGREGATE', { items, fields: [{ operation: 'sum' }] }, ['fields[0]: needs a field']],
    [
      'AGGREGATE',
      {
        items,
        fields: [
          { operation: 'count', as: 'x' },
          { operation: 'sum', field: 'a', as: 'x' },
        ],
      },
      ['nodes[0].config: must not give two values the same name; set another with as'],
    ],
    [
      'AGGREGATE',
      { items, groupBy: '{{ $item.a }}' },
      ['nodes[0].config: must name each group that is an expression: {key, as}'],
    ],
    ['SPLIT', { separator: ',' }, ['nodes[0].config: must have either value, or items and field, or fields']],
    ['RENAME_KEYS', { items, keys: { a: 1 } }, ['keys: must give each key its new name']],
    ['JOIN', { left: items, right: items }, ['on: is required']],
    ['MAP', { items, expression: '$item +' }, [expect.stringMatching(/^expression: /)]],
    ['TRANSFORM', { expression: '$eval("1")' }, ['expression: $eval is not available']],
    [
      'DATE',
      { operation: 'add', value: 'x', unit: 'moons', timezone: 'Mars' },
      [
        expect.stringMatching(/^unit: must be year, /),
        'timezone: must be a time zone such as Europe/Berlin',
        'amount: is required for the operation add',
      ],
    ],
    [
      'DATE',
      { operation: 'add', value: 'x' },
      ['amount: is required for the operation add', 'unit: is required for the operation add'],
    ],
    ['CRYPTO', { operation: 'hmac', value: 'x' }, ['secret: is required, unless credentialId is set']],
    [
      'RANDOM',
      { operation: 'roll' },
      ['operation: must be integer, float, uuid, pick or shuffle, not "roll"'],
    ],
    ['CSV', { operation: 'parse', delimiter: '||', value: 'x' }, ['delimiter: must be one character']],
    [
      'HTML',
      { operation: 'extract', value: 'x', fields: { a: { css: 'h1' } } },
      ['fields: must give each name a CSS selector or {selector, attribute, all}'],
    ],
  ]
  for (const [type, config, faults] of cases) expect(await faultsOf(type, config), type).toEqual(faults)
})

test('GET /api/node-types lists the node types with their config schemas', async () => {
  const response = await running.request('/api/node-types', { as: running.admin })
  const types = (await response.json()) as { type: string; kind: string; config: { properties: Config } }[]
  const aggregate = types.find(({ type }) => type === 'AGGREGATE')
  expect(aggregate?.kind).toBe('pure')
  expect(Object.keys(aggregate!.config.properties)).toEqual([
    'items',
    'collect',
    'summarize',
    'groupBy',
    'fields',
  ])
  const date = types.find(({ type }) => type === 'DATE')
  expect(date!.config.properties.operation).toMatchObject({
    enum: expect.arrayContaining(['now', 'difference']),
  })
})
