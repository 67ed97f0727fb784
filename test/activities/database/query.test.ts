import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NodeBody } from '../../support/client.ts'
import { plantCredential } from '../../support/credentials.ts'
import { keep } from '../../support/keep.ts'
import { lacks } from '../../support/programs.ts'
import { nodeOf, startRunning } from '../../support/running.ts'
import { type Server, startMariadb, startPostgres } from '../../support/servers/clusters.ts'

const host = await keep(startRunning())

/** Executes one statement, and returns the record of its node. `data` is the trigger's. */
async function query(credentialId: string, config: object, data = {}, more: object = {}): Promise<NodeBody> {
  const id = await host.create({
    nodes: [
      { id: 'start', name: 'Start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'sql', name: 'Sql', type: 'DATABASE_QUERY', config: { credentialId, ...config }, ...more },
    ],
    edges: [{ source: 'start', target: 'sql' }],
  })
  return nodeOf(await host.ended(await host.execute(id, data)), 'sql')
}

/** The output of a statement that succeeds. */
async function rowsOf(credentialId: string, config: object, data = {}) {
  const node = await query(credentialId, config, data)
  expect([node.status, node.errorMessage]).toEqual(['SUCCESS', null])
  return node.outputData as { rows: Record<string, unknown>[]; rowCount: number; columns: object[] }
}

async function failureOf(
  credentialId: string,
  config: object,
  data = {},
  more: object = { retry: { maxAttempts: 1 } },
) {
  const node = await query(credentialId, config, data, more)
  expect(node.status).toBe('FAILED')
  return node.errorMessage!
}

describe('PostgreSQL', () => {
  let server: Server & { url: string }
  let id = ''
  let client: pg.Client
  beforeAll(async () => {
    server = await startPostgres()
    id = await plantCredential(host.store, host.teamId, 'DATABASE', { ...server.login, tls: 'auto' })
    client = new pg.Client({ connectionString: server.url })
    await client.connect()
    await client.query(
      'create table things (id int primary key, name text unique, tags text[], more json, at timestamptz)',
    )
  })
  afterAll(async () => {
    await client.end()
    await server.stop()
  })

  test('values come as JSON has them, exactly or as text', async () => {
    const sql = `select true as yes, 7::int2 as small, 9007199254740991::int8 as whole, 9007199254740993::int8 as big,
      1.10::numeric as dec, 0.1234567890123456789::numeric as fine, 'NaN'::numeric as nan, 1.5::float8 as f, 'Infinity'::float8 as inf,
      '2026-01-02 03:04:05.678901+02'::timestamptz as at, '2026-01-02 03:04:05'::timestamp as local, '2026-01-02'::date as day,
      'infinity'::timestamptz as ever, '\\xdeadbeef'::bytea as bytes, '{"a": [1, 12345678901234567890]}'::jsonb as doc, null::text as none,
      array[1,2,null]::int[] as list, array[['a','b'],['"c"','NULL']]::text[] as grid, '[2:3]={1,2}'::int[] as odd, interval '1 day 2 hours' as span,
      'äöü \u{1f600}' as text, '6b2f7f2e-7b0b-4a4e-8f0e-1d2c3b4a5968'::uuid as uuid`
    const { rows, rowCount, columns } = await rowsOf(id, { query: sql })
    expect(rows).toEqual([
      {
        yes: true,
        small: 7,
        whole: 9007199254740991,
        big: '9007199254740993',
        dec: 1.1,
        fine: '0.1234567890123456789',
        nan: 'NaN',
        f: 1.5,
        inf: 'Infinity',
        at: '2026-01-02T01:04:05.678901Z',
        local: '2026-01-02T03:04:05',
        day: '2026-01-02',
        ever: 'infinity',
        bytes: '3q2+7w==',
        doc: { a: [1, '12345678901234567890'] },
        none: null,
        list: [1, 2, null],
        grid: [
          ['a', 'b'],
          ['"c"', 'NULL'],
        ],
        odd: '[2:3]={1,2}',
        span: 'P1DT2H',
        text: 'äöü \u{1f600}',
        uuid: '6b2f7f2e-7b0b-4a4e-8f0e-1d2c3b4a5968',
      },
    ])
    expect(rowCount).toBe(1)
    expect(columns.slice(0, 3)).toEqual([
      { name: 'yes', type: 'bool' },
      { name: 'small', type: 'int2' },
      { name: 'whole', type: 'int8' },
    ])
  })

  test('parameters are bound, whatever is in them', async () => {
    const evil = `'; drop table things; -- $1 {{ 1 }} \\ "`
    const params = ['{{ $input.evil }}', '{{ $input.list }}', '{{ $input.doc }}', 3.5, true, null]
    const sql =
      'select $1::text as a, $2::text[] as b, $3::jsonb as c, $4::numeric as d, $5::bool as e, $6::text as f'
    const data = { evil, list: ['x,"y"\\', null, 'NULL', ''], doc: { a: [evil] } }
    const { rows } = await rowsOf(id, { query: sql, params }, data)
    expect(rows).toEqual([{ a: evil, b: data.list, c: data.doc, d: 3.5, e: true, f: null }])
    const whole = await rowsOf(
      id,
      { query: 'select $1::int + $2::int as sum', params: '{{ $input.all }}' },
      { all: [2, 3] },
    )
    expect(whole.rows).toEqual([{ sum: 5 }])
    expect(
      await failureOf(id, { query: 'select $1::int', params: '{{ $input.all }}' }, { all: 7 }),
    ).toContain('params must be an array')
    expect(await failureOf(id, { query: 'select $1::int', params: [] })).toContain(
      'bind message supplies 0 parameters',
    )
  })

  test('writes are committed, and counted; what fails leaves nothing behind', async () => {
    const insert = "insert into things (id, name) select n, 'n' || n from generate_series(1, $1::int) n"
    expect(await rowsOf(id, { query: insert, params: [5] })).toEqual({ rows: [], rowCount: 5, columns: [] })
    const back = await rowsOf(id, { query: 'delete from things where id > $1 returning id', params: [3] })
    expect(back).toMatchObject({ rows: [{ id: 4 }, { id: 5 }], rowCount: 2 })
    expect(await failureOf(id, { query: insert, params: [7] })).toMatch(
      /^The database refused: duplicate key .* \(23505\)$/,
    )
    expect(await failureOf(id, { query: 'selec 1' })).toContain('(42601)')
    const few = {
      query: 'insert into things (id) select generate_series(100, 200) returning id',
      maxRows: 100,
    }
    expect(await failureOf(id, few)).toContain('gives more than 100 rows, of which none is used')
    const { rows } = await client.query('select count(*)::int as n from things')
    expect(rows).toEqual([{ n: 3 }])
    await client.query('delete from things')
  })

  test('one statement only, without COPY, empty ones and columns of one name', async () => {
    expect(await failureOf(id, { query: 'select 1; drop table things' })).toContain('multiple commands')
    expect(await failureOf(id, { query: 'copy things from stdin' })).toContain('COPY is not possible')
    expect(await failureOf(id, { query: 'copy (select 1) to stdout' })).toContain('COPY is not possible')
    expect(await failureOf(id, { query: '-- nothing' })).toContain('has no statement')
    expect(await failureOf(id, { query: 'select 1 as a, 2 as a' })).toContain('several columns named a')
    expect(
      await failureOf(id, { query: 'select 1 as a, generate_series(1, 5000) as a', maxRows: 10_000 }),
    ).toContain('several columns named a')
    expect((await rowsOf(id, { query: 'select 1 as "__proto__", 2 as constructor' })).rows[0]).toEqual(
      JSON.parse('{"__proto__":1,"constructor":2}'),
    )
  })

  test('a read-only statement writes nothing, by no way', async () => {
    for (const sql of [
      'delete from things',
      'create table other (a int)',
      "select set_config('transaction_read_only', 'off', true), 1 from (insert into things values (1) returning 1) x",
      'with w as (insert into things values (1) returning id) select * from w',
    ])
      expect(await failureOf(id, { query: sql, readOnly: true })).toMatch(/read-only|\(42601\)/)
    expect((await rowsOf(id, { query: 'select 1 as a', readOnly: true })).rows).toEqual([{ a: 1 }])
  })

  test('rows are limited by number and bytes, and many of them are read', { tags: 'long' }, async () => {
    const many = await rowsOf(id, { query: 'select n from generate_series(1, 10000) n', maxRows: 10_000 })
    expect([many.rowCount, many.rows.at(-1)]).toEqual([10_000, { n: 10_000 }])
    expect(await failureOf(id, { query: 'select n from generate_series(1, 1001) n' })).toContain(
      'more than 1000 rows',
    )
    expect(
      await failureOf(id, { query: "select repeat('x', 90000) as x from generate_series(1, 100)" }),
    ).toContain('more than 8 MB')
    expect(await failureOf(id, { query: "select repeat('x', 200000000) as x" })).toContain('more than 8 MB')
  })

  test('a statement that takes too long, or waits for a lock, is ended; so is one that nobody wants any more', async () => {
    expect(await failureOf(id, { query: 'select pg_sleep(60)', timeoutMs: 100 })).toContain('(57014)')
    await client.query('begin; lock table things in access exclusive mode')
    expect(await failureOf(id, { query: 'select * from things', timeoutMs: 100 })).toMatch(
      /\((57014|55P03)\)/,
    )
    await client.query('rollback')

    const workflow = await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'sql',
          type: 'DATABASE_QUERY',
          config: { credentialId: id, query: 'select pg_sleep(61)', timeoutMs: 600_000 },
        },
      ],
      edges: [{ source: 'start', target: 'sql' }],
    })
    const execution = await host.execute(workflow)
    const sleeping = async () =>
      (
        await client.query(
          "select 1 from pg_stat_activity where query like '%pg_sleep(61)%' and pid <> pg_backend_pid() and state = 'active'",
        )
      ).rows.length
    await expect.poll(sleeping, { timeout: 10_000 }).toBe(1)
    await host.ask('POST', `/api/executions/${execution}/cancel`)
    await expect.poll(sleeping, { timeout: 10_000 }).toBe(0)
    expect((await host.ended(execution)).status).toBe('CANCELLED')
  })

  test('rows are added and changed without SQL, with the columns that each has', async () => {
    await client.query(
      'create table parts (id serial primary key, "Na me" text unique, n int default 7, doc jsonb)',
    )
    const table = 'parts'
    const insert = { mode: 'insert', table, rows: '{{ $input.rows }}', returning: true }
    const rows = [{ 'Na me': 'a' }, { 'Na me': 'b', n: 2, doc: { x: [1] } }, {}]
    const added = await rowsOf(id, insert, { rows })
    expect(added.rows).toEqual([
      { id: 1, 'Na me': 'a', n: 7, doc: null },
      { id: 2, 'Na me': 'b', n: 2, doc: { x: [1] } },
      { id: 3, 'Na me': null, n: 7, doc: null },
    ])
    expect(added.rowCount).toBe(3)
    expect(await failureOf(id, insert, { rows: [{ 'Na me': 'c' }, { 'Na me': 'a' }] })).toContain('23505')
    const skipping = await rowsOf(
      id,
      { ...insert, skipKnown: true },
      { rows: [{ 'Na me': 'c' }, { 'Na me': 'a' }] },
    )
    expect(skipping.rows.map((row) => row['Na me'])).toEqual(['c'])
    const update = { mode: 'update', table, keys: ['Na me'], rows: '{{ $input.rows }}', returning: true }
    const changed = await rowsOf(id, update, {
      rows: [
        { 'Na me': 'a', n: null },
        { 'Na me': 'none', n: 1 },
      ],
    })
    expect(changed).toMatchObject({ rowCount: 1, rows: [{ id: 1, n: null }] })
    const both = [
      { 'Na me': 'a', n: 5 },
      { 'Na me': 'none', n: 1 },
    ]
    expect(await failureOf(id, { ...update, mustExist: true }, { rows: both })).toContain(
      'rows[1] is not in the table',
    )
    expect((await client.query('select n from parts where id = 1')).rows).toEqual([{ n: null }])
    const upsert = { mode: 'upsert', table, keys: ['Na me'], rows: '{{ $input.rows }}', returning: true }
    const put = await rowsOf(id, upsert, {
      rows: [
        { 'Na me': 'a', n: 8 },
        { 'Na me': 'new', n: 9 },
      ],
    })
    expect(put.rows.map(({ n }) => n)).toEqual([8, 9])
    expect(await failureOf(id, upsert, { rows: [{ n: 8 }] })).toContain('rows[0] has no Na me')
    const evil = { '"x") values (1); drop table parts; --': 1 }
    expect(await failureOf(id, insert, { rows: [evil] })).toContain('42703')
  })

  test('rows are written or changed by their keys, as the types of the table are', async () => {
    const upsert = {
      mode: 'upsert',
      table: 'public.things',
      columns: ['id', 'name', 'tags', 'more', 'at'],
      keys: ['id'],
    }
    const first = { id: 1, name: `it's "a"`, tags: ['x', 'y'], more: { a: [1] }, at: '2026-01-02T03:04:05Z' }
    const second = { id: '2', name: null, tags: null, more: [1], at: null }
    expect(await rowsOf(id, { ...upsert, rows: '{{ $input.rows }}' }, { rows: [first, second] })).toEqual({
      rows: [],
      rowCount: 2,
      columns: [],
    })
    await rowsOf(id, { ...upsert, rows: [{ ...first, name: 'b' }] })
    const { rows } = await client.query('select id, name, tags, more, at from things order by id')
    expect(JSON.parse(JSON.stringify(rows))).toEqual([
      { ...first, name: 'b', at: '2026-01-02T03:04:05.000Z' },
      { ...second, id: 2 },
    ])
    expect(await rowsOf(id, { ...upsert, rows: [] })).toMatchObject({ rowCount: 0 })
    const only = {
      mode: 'upsert',
      table: 'things',
      columns: ['id'],
      keys: ['id'],
      rows: [{ id: 1 }, { id: 3 }],
    }
    expect(await rowsOf(id, only)).toMatchObject({ rowCount: 2 })
    expect(await failureOf(id, { ...upsert, rows: [first, { id: 9 }] })).toContain(
      'rows[1] has no name, tags, more, at',
    )
    expect(await failureOf(id, { ...only, table: 'things"; drop table things; --' })).toContain('(42P01)')
    expect((await client.query('select count(*)::int as n from things')).rows).toEqual([{ n: 3 }])
  })

  test('a deadlock is tried again; a wrong password, an unknown database and nobody there are told', async () => {
    await client.query(
      "insert into things (id, name) values (50, 'count') on conflict do nothing; create sequence tries; create function fail_once() returns int language plpgsql as $$ begin if nextval('tries') < 2 then raise exception 'again' using errcode = '40P01'; end if; return 7; end $$",
    )
    expect(await rowsOf(id, { query: 'select fail_once() as n' })).toMatchObject({ rows: [{ n: 7 }] })

    const plant = (more: object) =>
      plantCredential(host.store, host.teamId, 'DATABASE', { ...server.login, tls: 'auto', ...more })
    const wrong = await failureOf(await plant({ password: 'secret-of-nobody' }), { query: 'select 1' })
    expect(wrong).toContain('(28P01)')
    expect(wrong).not.toContain('secret-of-nobody')
    expect(await failureOf(await plant({ database: 'nowhere' }), { query: 'select 1' })).toContain('(3D000)')
    expect(await failureOf(await plant({ port: 1 }), { query: 'select 1' })).toContain(
      'cannot be reached: 127.0.0.1:1: connection refused',
    )
    expect(await failureOf(await plant({ host: '/tmp' }), { query: 'select 1' })).toContain(
      'the host must be a name',
    )
  })

  test('TLS as the credential says: verified, unverified, or none', async () => {
    const plant = (more: object) =>
      plantCredential(host.store, host.teamId, 'DATABASE', { ...server.login, ...more })
    const ssl = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()'
    for (const [tls, encrypted] of [
      ['auto', true],
      ['unverified', true],
      ['never', false],
    ] as const)
      expect((await rowsOf(await plant({ tls }), { query: ssl })).rows).toEqual([{ ssl: encrypted }])
    expect(await failureOf(await plant({ tls: 'required' }), { query: ssl })).toMatch(/self-signed/)
  })

  test('the database of the service is never reached, also where every address may be', async () => {
    const own = new URL(host.database.url)
    const running = await startRunning({
      egress: {
        allowLoopback: true,
        allow: ['0.0.0.0/0', '::/0'],
        any: true,
        own: () => [{ what: 'the database of this service', host: own.hostname, port: Number(own.port) }],
      },
    })
    try {
      for (const name of ['127.0.0.1', 'localhost', '2130706433', '::ffff:127.0.0.1', '0.0.0.0']) {
        const data = {
          host: name,
          port: Number(own.port),
          database: own.pathname.slice(1),
          username: own.username,
          password: own.password,
          tls: 'auto',
        }
        const credentialId = await plantCredential(running.store, running.teamId, 'DATABASE', data)
        const workflow = await running.create({
          nodes: [
            { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
            { id: 'sql', type: 'DATABASE_QUERY', config: { credentialId, query: 'select 1' } },
          ],
          edges: [{ source: 'start', target: 'sql' }],
        })
        const { errorMessage } = nodeOf(await running.ended(await running.execute(workflow)), 'sql')
        expect(errorMessage).toContain('the database of this service; the egress rules refuse it')
      }
    } finally {
      await running.stop()
    }
  })
})

describe.skipIf(lacks('mariadb'))('MariaDB', () => {
  let server: Server
  let id = ''
  beforeAll(async () => {
    server = await startMariadb()
    id = await plantCredential(host.store, host.teamId, 'DATABASE', { ...server.login, tls: 'auto' })
    await rowsOf(id, {
      query:
        'create table things (id int primary key, name varchar(100) unique, n decimal(30,10), doc json, at datetime(6)) engine=innodb',
    })
  })
  afterAll(() => server?.stop())

  test('values come as JSON has them, exactly or as text', async () => {
    await rowsOf(id, {
      query: `create table vals (b bit(10), i bigint, u bigint unsigned, d decimal(20,2), f double, t timestamp(3) null, dt datetime, dy date, tm time, bl blob, tx text, y year)`,
    })
    const insert = `insert into vals values (b'1000000001', 9007199254740993, 18446744073709551615, 1.10, 0.5, '2026-01-02 03:04:05.678', '2026-01-02 03:04:05', '2026-01-02', '11:12:13', x'deadbeef', 'äöü \u{1f600}', 2026)`
    expect(await rowsOf(id, { query: insert })).toEqual({ rows: [], rowCount: 1, columns: [] })
    const { rows } = await rowsOf(id, {
      query:
        'select *, null as none, 7 as seven, 12345678901234567.25 as fine, cast(9007199254740991 as signed) as whole from vals',
    })
    expect(rows).toEqual([
      {
        b: 513,
        i: '9007199254740993',
        u: '18446744073709551615',
        d: 1.1,
        f: 0.5,
        t: '2026-01-02T03:04:05.678Z',
        dt: '2026-01-02T03:04:05',
        dy: '2026-01-02',
        tm: '11:12:13',
        bl: '3q2+7w==',
        tx: 'äöü \u{1f600}',
        y: 2026,
        none: null,
        seven: 7,
        fine: '12345678901234567.25',
        whole: 9007199254740991,
      },
    ])
  })

  test('parameters are bound, whatever is in them, and their number is checked', async () => {
    const evil = `'; drop table things; -- ? {{ 1 }} \\ " \0`
    const params = ['{{ $input.evil }}', 3, 2.5, true, null, '{{ $input.doc }}']
    const sql = "select ? as a, ? + 1 as b, ? as c, ? as d, ? as e, json_value(?, '$.a') as f limit ?"
    const { rows } = await rowsOf(id, { query: sql, params: [...params, 1] }, { evil, doc: { a: 'x' } })
    expect(rows).toEqual([{ a: evil, b: 4, c: 2.5, d: 1, e: null, f: 'x' }])
    expect(await failureOf(id, { query: 'select ?, ?', params: [1] })).toContain(
      'has 2 parameters (?), and params has 1 values',
    )
  })

  test('writes are committed; what fails leaves nothing behind, and only one statement is carried out', async () => {
    const insert = 'insert into things (id, name) values (?, ?), (?, ?)'
    expect(await rowsOf(id, { query: insert, params: [1, 'a', 2, 'b'] })).toMatchObject({ rowCount: 2 })
    expect(await failureOf(id, { query: insert, params: [3, 'c', 4, 'a'] })).toContain('(23000/1062)')
    expect(await failureOf(id, { query: 'select 1; drop table things' })).toContain('(42000/1064)')
    expect(await failureOf(id, { query: 'select id, name as id from things' })).toContain(
      'several columns named id',
    )
    expect(await failureOf(id, { query: 'select id from things', maxRows: 1 })).toContain('more than 1 rows')
    expect(await failureOf(id, { query: "load data local infile '/etc/passwd' into table things" })).toMatch(
      /\d{4}\)$/,
    )
    for (const sql of [
      'delete from things',
      'create table other (a int)',
      'drop table things',
      'truncate things',
    ])
      expect(await failureOf(id, { query: sql, readOnly: true })).toContain('(25006/1792)')
    expect((await rowsOf(id, { query: 'select id from things order by id' })).rows).toEqual([
      { id: 1 },
      { id: 2 },
    ])
  })

  test('limits: rows, bytes and time; a statement that nobody wants any more is killed', async () => {
    const many = await rowsOf(id, { query: 'select seq as n from seq_1_to_10000', maxRows: 10_000 })
    expect([many.rowCount, many.rows.at(-1)]).toEqual([10_000, { n: 10_000 }])
    expect(await failureOf(id, { query: 'select seq from seq_1_to_1001' })).toContain('more than 1000 rows')
    expect(await failureOf(id, { query: "select repeat('x', 90000) as x from seq_1_to_100" })).toContain(
      'more than 8 MB',
    )
    expect(await failureOf(id, { query: 'select sleep(60)', timeoutMs: 100 })).toContain('gave up')
    const workflow = await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'sql',
          type: 'DATABASE_QUERY',
          config: { credentialId: id, query: 'select sleep(61)', timeoutMs: 600_000 },
        },
      ],
      edges: [{ source: 'start', target: 'sql' }],
    })
    const execution = await host.execute(workflow)
    const sleeping = async () =>
      (
        await rowsOf(id, {
          query: "select count(*) as n from information_schema.processlist where state = 'User sleep'",
        })
      ).rows[0]!.n
    await expect.poll(sleeping, { timeout: 10_000 }).toBe(1)
    await host.ask('POST', `/api/executions/${execution}/cancel`)
    await expect.poll(sleeping, { timeout: 10_000 }).toBe(0)
  })

  test('rows are added and changed without SQL', async () => {
    await rowsOf(id, {
      query:
        'create table parts (id int auto_increment primary key, `Na me` varchar(20) unique, n int default 7)',
    })
    const table = 'parts'
    const insert = { mode: 'insert', table, rows: '{{ $input.rows }}' }
    expect(await rowsOf(id, insert, { rows: [{ 'Na me': 'a' }, { 'Na me': 'b', n: 2 }, {}] })).toMatchObject({
      rowCount: 3,
      rows: [],
    })
    expect(await rowsOf(id, { ...insert, skipKnown: true }, { rows: [{ 'Na me': 'a' }] })).toMatchObject({
      rowCount: 0,
    })
    const update = { mode: 'update', table, keys: ['Na me'], rows: '{{ $input.rows }}', mustExist: true }
    expect(await rowsOf(id, update, { rows: [{ 'Na me': 'b', n: 2 }] })).toMatchObject({ rowCount: 1 })
    const both = [
      { 'Na me': 'a', n: 5 },
      { 'Na me': 'none', n: 1 },
    ]
    expect(await failureOf(id, update, { rows: both })).toContain('rows[1] is not in the table')
    const all = await rowsOf(id, { query: 'select `Na me` as name, n from parts order by id' })
    expect(all.rows).toEqual([
      { name: 'a', n: 7 },
      { name: 'b', n: 2 },
      { name: null, n: 7 },
    ])
    expect(await failureOf(id, { ...insert, returning: true }, { rows: [{ n: 1 }] })).toContain(
      'returning must not be true',
    )
  })

  test('rows are written or changed by their keys', async () => {
    const upsert = {
      mode: 'upsert',
      table: 'things',
      columns: ['id', 'name', 'n', 'doc', 'at'],
      keys: ['id'],
    }
    const row = { id: 70, name: 'it`s', n: '123456789.5', doc: { a: [1] }, at: '2026-01-02 03:04:05' }
    expect(
      await rowsOf(
        id,
        { ...upsert, rows: '{{ $input.rows }}' },
        { rows: [row, { ...row, id: 71, name: 'y' }] },
      ),
    ).toMatchObject({ rowCount: 2 })
    expect(await rowsOf(id, { ...upsert, rows: [{ ...row, name: 'z' }] })).toEqual({
      rows: [],
      rowCount: 1,
      columns: [],
    })
    const { rows } = await rowsOf(id, { query: 'select * from things where id >= 70 order by id' })
    expect(rows).toEqual([
      { id: 70, name: 'z', n: 123456789.5, doc: '{"a":[1]}', at: '2026-01-02T03:04:05' },
      { id: 71, name: 'y', n: 123456789.5, doc: '{"a":[1]}', at: '2026-01-02T03:04:05' },
    ])
    const many = Array.from({ length: 13_000 }, (_, i) => ({ ...row, id: 1_000 + i, name: `m${i}` }))
    expect(await rowsOf(id, { ...upsert, rows: '{{ $input.rows }}' }, { rows: many })).toMatchObject({
      rowCount: 13_000,
    })
    expect((await rowsOf(id, { query: 'select count(*) as n from things where id >= 1000' })).rows).toEqual([
      { n: 13_000 },
    ])
  })

  test('TLS as the credential says; a wrong password is told', async () => {
    const plant = (more: object) =>
      plantCredential(host.store, host.teamId, 'DATABASE', { ...server.login, ...more })
    const ssl = "show session status like 'Ssl_version'"
    for (const [tls, version] of [
      ['auto', /TLS/],
      ['unverified', /TLS/],
      ['never', /^$/],
    ] as const)
      expect((await rowsOf(await plant({ tls }), { query: ssl })).rows[0]!.Value).toMatch(version)
    expect(await failureOf(await plant({ tls: 'required' }), { query: ssl })).toMatch(/self-signed/)
    const wrong = await failureOf(await plant({ password: 'secret-of-nobody' }), { query: ssl })
    expect(wrong).toContain('(28000/1045)')
    expect(wrong).not.toContain('secret-of-nobody')
  })
})
