import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import { change } from '../../../db/change.ts'
import { type Database, openDatabase } from '../../../db/connection.ts'
import { type Store, serviceScope } from '../../../db/scope.ts'
import { fillChain } from '../../support/audit/fill.ts'
import type { Stand } from '../stand.ts'

const ENTRIES = 300_000
const ROUNDS = 3
const WRITERS = 8
const APPENDS = 150
const AIM = 100_000

type Verified = { valid: boolean; entriesVerified: number }

/**
 * Verifies a chain of 300,000 entries over HTTP, beside what it cannot be faster than: reading the rows alone, and the
 * hashes alone. Says what single requests of another team notice of that, of a SIEM's, of an export and of a report. And
 * appends to one chain by eight writers of two pools, beside plain INSERTs of the same rows.
 */
export async function measureAudit(stand: Stand): Promise<void> {
  const { db, close } = openDatabase(stand.databaseUrl, { max: 8, name: 'bench' })
  const store: Store & { db: Database } = { db, keys: stand.keys }
  try {
    await fillChain(store, stand.teamId, ENTRIES)
    await sql`vacuum analyze audit_entries`.execute(db)
    const client = new pg.Client({ connectionString: stand.databaseUrl })
    await client.connect()
    const memory = () => stand.readUsage().service!.memory
    const rows: Record<string, Record<string, unknown>> = {}
    const note = (name: string, seconds: number) => {
      rows[name] = {
        ...rows[name],
        'entries a second': Math.max(
          Math.round(ENTRIES / seconds),
          Number(rows[name]?.['entries a second'] ?? 0),
        ),
      }
    }
    const before = memory()
    let most = before
    const timer = setInterval(() => {
      most = Math.max(most, memory())
    }, 50)
    for (let round = 0; round < ROUNDS; round++) {
      note(
        'verify over HTTP',
        await time(async () => {
          const { valid, entriesVerified } = await stand.ask<Verified>(
            'GET',
            `/api/audit/team/${stand.teamId}/verify`,
          )
          if (!valid || entriesVerified < ENTRIES) throw new Error('the chain did not verify')
        }),
      )
      note('read the rows, one connection', await time(() => readAll(client, stand.teamId)))
      note('SHA-256 and HMAC, one thread', await time(async () => hashAll()))
    }
    clearInterval(timer)
    await client.end()
    console.table(rows)
    console.log(
      `Aim of verify: ${AIM} entries a second. The service's memory grew by ${(most - before).toFixed(0)} MB.`,
    )
    await measureNeighbour(stand)
    await measureAppends(stand, store)
  } finally {
    await close()
  }
}

/** What reading alone takes: the same columns, and nothing is done with them. */
function readAll(client: pg.Client, teamId: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query({
      text: 'select * from audit_entries where team_id = $1 order by seq',
      values: [teamId],
      rowMode: 'array',
      types: { getTypeParser: () => (text: string) => text },
    } as never)
    query.on('row', () => {})
    query.on('end', () => resolve())
    query.on('error', reject)
    client.query(query)
  })
}

/** What the hashes of an entry alone take: details, core, link, and two for the signature. */
function hashAll(): void {
  const bytes = [300, 560, 104, 214, 96].map((size) => Buffer.alloc(size))
  for (let i = 0; i < ENTRIES; i++) for (const piece of bytes) hash('sha256', piece, 'hex')
}

const ALONE_MS = 5_000

/** How long single requests of another team take, one after the other: alone, and while something long goes on. */
async function measureNeighbour(stand: Stand): Promise<void> {
  const { teamId, url, ask } = stand
  const other = await stand.addTeam('Neighbour')
  const wanted = { name: 'reader', role: 'ADMIN' }
  const { token } = await ask<{ token: string }>('POST', `/api/teams/${teamId}/sdk-tokens`, wanted)
  const audit = `/api/audit/team/${teamId}`
  const drain = async (path: string) => {
    const response = await fetch(url + audit + path, { headers: { authorization: `Bearer ${token}` } })
    for await (const _ of response.body!);
  }
  const report = async (type: string) => {
    const json = { name: type, type, from: '2020-01-01', to: '2100-01-01' }
    const { id } = await ask<{ id: string }>('POST', `${audit}/reports`, json)
    for (;;) {
      const { status } = await ask<{ status: string }>('GET', `${audit}/reports/${id}`)
      if (status === 'COMPLETED') return
      if (status === 'FAILED') throw new Error(`the report ${type} failed`)
      await pause(100)
    }
  }
  const works: Record<string, () => Promise<unknown>> = {
    alone: () => pause(ALONE_MS),
    'beside verify': () => drain('/verify'),
    'beside a SIEM that fetches 100,000 entries': () => drain('/siem?limit=100000&format=syslog'),
    'beside an export': () => drain('/export'),
    'beside a report SECURITY': () => report('SECURITY'),
    'beside a report ACTIVITY': () => report('ACTIVITY'),
    'alone again': () => pause(ALONE_MS),
  }
  const rows: Record<string, Record<string, string>> = {}
  for (const [name, work] of Object.entries(works)) {
    let over = false
    const took: number[] = []
    const asking = (async () => {
      while (!over) took.push(await time(() => other.ask('GET', `/api/teams/${other.teamId}`)))
    })()
    const seconds = await time(work).finally(() => {
      over = true
    })
    await asking
    took.sort((a, b) => a - b)
    const at = (part: number) =>
      `${(took[Math.min(took.length - 1, Math.floor(took.length * part))]! * 1_000).toFixed(1)} ms`
    rows[name] = {
      seconds: seconds.toFixed(1),
      requests: String(took.length),
      median: at(0.5),
      '99 %': at(0.99),
      longest: at(1),
    }
  }
  console.table(rows)
}

async function measureAppends(stand: Stand, store: Store & { db: Database }): Promise<void> {
  const second = openDatabase(stand.databaseUrl, { max: WRITERS, name: 'bench 2' })
  const stores = [store, { ...store, db: second.db }]
  const actor = { kind: 'SYSTEM', id: null, name: 'bench' } as const
  const append = async (writer: number) => {
    const scope = serviceScope(stores[writer % 2]!, actor, [[stand.teamId, 'ADMIN']])
    for (let i = 0; i < APPENDS; i++)
      await change(scope, 'WORKFLOW_UPDATED', stand.teamId, async () => ({
        result: 0,
        resourceId: null,
        details: { writer, i },
      }))
  }
  await sql`create table bare_entries (like audit_entries including indexes)`.execute(store.db)
  const insert = async (writer: number) => {
    const { db } = stores[writer % 2]!
    for (let i = 0; i < APPENDS; i++)
      await db.transaction().execute((tx) =>
        sql`insert into bare_entries
        select gen_random_uuid(), team_id, 1000000 + ${writer * APPENDS + i}, sha256(${`${writer} ${i}`}), hash, ts, gen_random_uuid(),
          actor_kind, actor_id, actor_role, actor_name, action, resource_type, resource_id, outcome, request_id, src_ip,
          details, details_salt, details_sha256, core, mac, key_id, v, user_id, user_agent, access_id
        from audit_entries where team_id = ${stand.teamId} and seq = 100`.execute(tx),
      )
  }
  const all = (work: (writer: number) => Promise<void>) =>
    Promise.all(Array.from({ length: WRITERS }, (_, writer) => work(writer)))
  const rate = async (work: (writer: number) => Promise<void>) =>
    Math.round((WRITERS * APPENDS) / (await time(() => all(work))))
  await all(async (writer) => {
    await append(writer)
  })
  console.table({
    'audited acts of one team, 8 writers, 2 pools': { 'a second': await rate(append) },
    'plain INSERTs of such rows, the same writers': { 'a second': await rate(insert) },
  })
  await second.close()
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return (performance.now() - began) / 1_000
}
