import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, afterEach, describe, expect, inject, test } from 'vitest'
import { type Database, openDatabase } from '../../db/connection.ts'
import { listStatements, migrate } from '../../db/migrate.ts'
import { cloneDatabase, onServer } from '../support/database.ts'
import { launch } from '../support/engine/process.ts'
import { until } from '../support/until.ts'

const MIGRATIONS = fileURLToPath(new URL('../../db/migrations/', import.meta.url))
const NAMES = readdirSync(MIGRATIONS).sort()
/** Later ones run while others work with the database, and keep to what is tested below. */
const LAST_THAT_LOCKS = 24
const numberOf = (name: string) => Number(name.slice(0, 4))

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** Makes a folder of migrations: those of the release before, and `more` files. */
function makeFolder(more: Record<string, string> = {}): URL {
  const folder = mkdtempSync(join(tmpdir(), 'perdure-migrations-'))
  folders.push(folder)
  for (const name of NAMES.filter((name) => numberOf(name) <= LAST_THAT_LOCKS))
    cpSync(join(MIGRATIONS, name), join(folder, name))
  for (const [name, text] of Object.entries(more)) writeFileSync(join(folder, name), text)
  return pathToFileURL(`${folder}/`)
}

describe('on a database of the release before', () => {
  const ends: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  async function open(url: string, max = 4): Promise<Database> {
    const { db, close } = openDatabase(url, { max, name: 'test migrate' })
    ends.push(close)
    return db
  }

  const INSERT = `insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status,
      trigger, trigger_node_id, input_data, input_bytes, started_by_kind)
    select gen_random_uuid(), team_id, id, 'w', 1, 1, 'SUCCESS', 'API', 'start', 'null', 4, 'USER' from workflows`

  /** Makes a database as the release before left it, with `rows` executions and as many blobs. */
  async function makeDatabase(rows = 3): Promise<{ url: string; db: Database }> {
    const url = new URL(inject('databaseUrl'))
    url.pathname = `/perdure_migrate_${randomBytes(6).toString('hex')}`
    const server = new URL('/postgres', url).href
    await onServer(server, `create database ${url.pathname.slice(1)}`)
    ends.push(() => onServer(server, `drop database ${url.pathname.slice(1)} with (force)`))
    const db = await open(url.href)
    await migrate(db, makeFolder())
    await sql
      .raw(
        `insert into teams (id, name, plan) values (gen_random_uuid(), 'a', 'FREE');
        insert into workflows (id, team_id, name, version, settings) select gen_random_uuid(), id, 'w', 1, '{}' from teams;
        insert into workflow_versions (workflow_id, version, nodes, edges, node_count)
          select id, 1, '[]', '[]', 1 from workflows;
        ${INSERT}, generate_series(1, ${rows})`,
      )
      .execute(db)
    return { url: url.href, db }
  }

  async function connect(url: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    ends.push(() => client.end())
    return client
  }

  const readIndex = async (db: Database, name: string) => {
    const { rows } = await sql<{
      valid: boolean
      oid: number
    }>`select indisvalid as valid, indexrelid::int as oid
      from pg_index where indexrelid = to_regclass(${name})`.execute(db)
    return rows[0]
  }
  const listApplied = async (db: Database) => {
    const { rows } = await sql<{ name: string }>`select name from migrations order by name`.execute(db)
    return rows.map(({ name }) => name)
  }

  const BUILD = `-- no transaction: written while others write.
create index concurrently if not exists executions_new
  on executions (workflow_id, status);\n`

  test('an index whose building was interrupted is dropped, and built anew', async () => {
    const { url, db } = await makeDatabase()
    const folder = makeFolder({ '9001_new.sql': BUILD })
    // The building waits for this transaction, since it may have rows that it must not miss.
    const holder = await connect(url)
    await holder.query('begin; update executions set node_count = 2')
    const first = migrate(db, folder).catch((error) => error)
    const watcher = await connect(url)
    const findBuilder = async () => {
      const { rows } = await watcher.query(`select pid from pg_stat_activity
        where datname = current_database() and query like '%create index concurrently%' and wait_event_type = 'Lock'`)
      return rows[0]?.pid as number | undefined
    }
    const pid = await until(findBuilder)
    await watcher.query('select pg_terminate_backend($1)', [pid])
    expect(await first).toBeInstanceOf(Error)
    await holder.query('rollback')
    const broken = await readIndex(db, 'executions_new')
    expect(broken).toMatchObject({ valid: false })

    expect(await migrate(db, folder)).toEqual(['9001_new.sql'])
    const whole = await readIndex(db, 'executions_new')
    expect(whole).toMatchObject({ valid: true })
    expect(whole!.oid).not.toBe(broken!.oid)
    expect(await migrate(db, folder)).toEqual([])
  })

  test('an index that was complete when its process ended is kept, and counts as built', async () => {
    const { db } = await makeDatabase()
    const folder = makeFolder({ '9001_new.sql': BUILD.replace('if not exists ', '') })
    await sql`create index executions_new on executions (workflow_id, status)`.execute(db)
    const before = await readIndex(db, 'executions_new')
    expect(await migrate(db, folder)).toEqual(['9001_new.sql'])
    expect(await readIndex(db, 'executions_new')).toEqual(before)
  })

  test('a file without a transaction is one statement; of another one nothing is applied', async () => {
    const { db } = await makeDatabase()
    const two = '-- no transaction\nalter table teams add column a int; alter table teams add column b int;'
    for (const text of [two, '-- no transaction\n-- nothing;\n']) {
      const folder = makeFolder({ '9001_two.sql': text })
      await expect(migrate(db, folder)).rejects.toThrow('9001_two.sql must be one statement')
    }
    expect(await listApplied(db)).not.toContain('9001_two.sql')
    expect(
      await sql`select * from information_schema.columns
      where table_name = 'teams' and column_name in ('a', 'b')`.execute(db),
    ).toMatchObject({ rows: [] })
    // The lock was given back.
    expect(await migrate(db, makeFolder())).toEqual([])
  })

  test('whoever writes does not wait behind a migration that waits for somebody else', async () => {
    const { url, db } = await makeDatabase()
    const folder = makeFolder({ '9001_add.sql': 'alter table executions add column extra int;' })
    const [reader, writer, watcher] = [await connect(url), await connect(url), await connect(url)]
    await reader.query('begin; select count(*) from executions')
    const migrating = migrate(db, folder)
    await until(async () => {
      const { rows } = await watcher.query(
        `select 1 from pg_stat_activity where query like 'alter table executions%' and wait_event_type = 'Lock'`,
      )
      return rows.length > 0
    })
    // It stands in the queue for the table now. With no limit of its own it would for as long as the reader reads.
    await writer.query("set statement_timeout = '30s'")
    await writer.query('update executions set node_count = 3')
    expect(await listApplied(db)).not.toContain('9001_add.sql')
    await reader.query('commit')
    expect(await migrating).toEqual(['9001_add.sql'])
  })

  test('three processes may migrate at once, while a session writes: each file is applied once', async () => {
    const { url, db } = await makeDatabase(20_000)
    const more = {
      '9001_new.sql': BUILD,
      '9002_check.sql': 'alter table executions add constraint few check (node_count < 1000) not valid;',
      '9003_valid.sql': '-- no transaction\nalter table executions validate constraint few;',
      '9004_other.sql': BUILD.replace('executions_new', 'executions_other'),
    }
    const folder = makeFolder(more)
    const writing = await writeOn(url)
    const three = await Promise.all([1, 2, 3].map(async () => migrate(await open(url, 1), folder)))
    const written = await writing.stop()
    expect(three.flat()).toEqual(Object.keys(more))
    expect(written.failures).toEqual([])
    expect(written.count).toBeGreaterThan(0)
    for (const name of ['executions_new', 'executions_other'])
      expect(await readIndex(db, name)).toMatchObject({ valid: true })
  })

  test('`npm run migrate` three times at once brings it to this release, while a session writes', {
    tags: 'long',
  }, async () => {
    const { url, db } = await makeDatabase(5_000)
    const env = { DATABASE_URL: url, PERDURE_KEYS: `k1:${randomBytes(32).toString('base64')}` }
    const writing = await writeOn(url)
    const three = [1, 2, 3].map(() => launch(['worker/cli.ts', 'migrate'], env))
    const codes = await Promise.all(three.map(({ ended }) => ended))
    const output = three.map((process) => process.output())
    expect([codes, output]).toEqual([[0, 0, 0], output])
    const written = await writing.stop()
    expect(written.failures).toEqual([])
    expect(await listApplied(db)).toEqual(NAMES)
    // One of them made the first account.
    expect(output.filter((text) => text.includes('Created the first admin'))).toHaveLength(1)
  })

  /** Writes in short transactions, one after the other, until it is stopped. */
  async function writeOn(url: string) {
    const client = await connect(url)
    let stopped = false
    let count = 0
    const failures: string[] = []
    const work = (async () => {
      while (!stopped) {
        try {
          await client.query('begin')
          await client.query(INSERT)
          await client.query(`update executions set node_count = node_count + 1
            where id in (select id from executions limit 20)`)
          await client.query('commit')
          count++
        } catch (error) {
          failures.push(String(error))
          await client.query('rollback')
        }
      }
    })()
    return {
      async stop() {
        await until(() => count > 0 || failures.length > 0)
        stopped = true
        await work
        return { count, failures }
      },
    }
  }
})

/** Tables that have a row for every execution, every act, or more: nobody may wait while one of them is read. */
const BIG = /^(executions|node_executions|blobs|audit_entries|pauses|workflow_versions|model_calls)$/

/** What of a migration locks a big table for longer than a moment. */
function findLocks(text: string): string[] {
  const statements = listStatements(text).map((statement) => statement.replaceAll(/\s+/g, ' ').toLowerCase())
  const alone = /^-- no transaction\b/.test(text)
  const made = new Set(statements.flatMap((it) => /^create (?:unlogged )?table (\w+)/.exec(it)?.[1] ?? []))
  const isBig = (table = '') => BIG.test(table) && !made.has(table)
  return statements.flatMap((it) => {
    const index = /^create (?:unique )?index (concurrently )?(if not exists )?.*? ?on (?:only )?(\w+)/.exec(
      it,
    )
    if (index && isBig(index[3])) {
      if (!index[1]) return [`index of ${index[3]} that is not built concurrently`]
      if (!index[2] || !alone)
        return ['not repeatable: wants "if not exists", and "-- no transaction" at its top']
    }
    const [, table, change = ''] = /^alter table (?:if exists )?(?:only )?(\w+) (.*)/.exec(it) ?? []
    if (!isBig(table)) return []
    const adds =
      /\badd (constraint|check|foreign|unique|primary|exclude)/.test(change) && !/ using index/.test(change)
    const isSlow = [
      adds && !/ not valid$/.test(change) && `constraint of ${table} that is not NOT VALID at first`,
      /\badd column\b[^,]*\b(references|check|unique|primary key)\b/.test(change) &&
        `constraint in a column of ${table}`,
      /\bset not null\b/.test(change) && `${table} is read for SET NOT NULL`,
      /\balter column \w+ (set data )?type\b/.test(change) && `${table} is written anew for another type`,
      /\bvalidate constraint\b/.test(change) && statements.length > 1 && 'VALIDATE beside another statement',
    ]
    return isSlow.filter((fault) => fault !== false)
  })
}

describe('migrations', () => {
  test('lock no big table while they read it', () => {
    const locks = NAMES.filter((name) => numberOf(name) > LAST_THAT_LOCKS).map((name) => [
      name,
      findLocks(readFileSync(join(MIGRATIONS, name), 'utf8')),
    ])
    expect(locks.filter(([, found]) => found!.length > 0)).toEqual([])
  })

  test('of the first releases did, which shows that the test sees it', () => {
    const faulty = NAMES.filter((name) => numberOf(name) <= LAST_THAT_LOCKS).filter(
      (name) => findLocks(readFileSync(join(MIGRATIONS, name), 'utf8')).length > 0,
    )
    expect(faulty).toContain('0024_signed.sql')
    expect(faulty).toContain('0014_recovery.sql')
    expect(faulty).not.toContain('0001_initial.sql')
    expect(faulty).not.toContain('0002_teams.sql')
  })

  test.each([
    ['create index a on executions (id);', 1],
    ['create unique index on node_executions (id)', 1],
    ['create index concurrently if not exists a on executions (id)', 1],
    ['-- no transaction\ncreate index concurrently a on executions (id)', 1],
    ['-- no transaction\ncreate index concurrently if not exists a on executions (id)', 0],
    ['create index a on teams (id)', 0],
    ['create table blobs (id int); create index b on blobs (id)', 0],
    ['alter table executions add constraint a check (x > 0)', 1],
    ['alter table executions add constraint a check (x > 0) not valid', 0],
    ['alter table executions add foreign key (x) references teams (id)', 1],
    ['alter table executions add constraint a unique using index b', 0],
    ['alter table executions add column x int references teams (id)', 1],
    ['alter table executions add column x int', 0],
    ['alter table executions alter column x set not null', 1],
    ['alter table blobs alter column x type bigint', 1],
    ['alter table blobs validate constraint a', 0],
    [
      'alter table blobs add constraint a check (x > 0) not valid; alter table blobs validate constraint a',
      1,
    ],
  ])('%s: %i faults', (text, faults) => {
    expect(findLocks(text)).toHaveLength(faults)
  })

  test("are told apart by the semicolons that are not in strings, names, comments or functions' bodies", () => {
    const text = `-- a; b
      select ';''; ', ";" /* ; */; create function f() returns int language plpgsql as $$ begin return 1; end $$;
      create function g() returns int as $x$ select $$;$$; select 1; $x$ language sql;`
    expect(listStatements(text).map((statement) => statement.slice(0, 17))).toEqual([
      "select ';''; ', \"",
      'create function f',
      'create function g',
    ])
  })
})

test('a clone of the template has nothing left to apply', async () => {
  const database = await cloneDatabase()
  const { db, close } = openDatabase(database.url, { max: 1, name: 'test migrate' })
  expect(await migrate(db)).toEqual([])
  await close()
  await database.drop()
})
