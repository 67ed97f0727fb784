import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findFree } from '../../../../worker/local/ports.ts'
import { perdure, verifyText } from '../../../support/audit/export.ts'
import { onServer } from '../../../support/database.ts'
import { type Installation, startInstallation } from '../../../support/engine/installation.ts'
import { type Launched, launch } from '../../../support/engine/process.ts'

const WRITERS = 8
const APPENDS = 200

type Verification = {
  valid: boolean
  entriesVerified: number
  last: { seq: number; hash: string }
  problem?: unknown
}

let host: Installation
let cookie: string
/** A second process that is only the API, on the same database. */
let second: Launched
let secondUrl: string
let databaseUrl: string

async function startApi(database: string, port: number): Promise<Launched> {
  const process = launch(['worker/api.ts'], {
    PORT: String(port),
    DATABASE_URL: database,
    TEMPORAL_ADDRESS: host.holder().addresses.temporalAddress,
    DATA_DIR: host.dataDir,
    RATE_LIMITS: 'off',
  })
  await process.until(() => process.output().includes('the API is listening'), 120_000)
  return process
}

beforeAll(async () => {
  host = await startInstallation({ RATE_LIMITS: 'off' })
  cookie = await host.signIn()
  databaseUrl = host.holder().addresses.databaseUrl
  const port = await findFree()
  secondUrl = `http://127.0.0.1:${port}`
  second = await startApi(databaseUrl, port)
}, 300_000)
afterAll(async () => {
  second?.kill('SIGKILL')
  await host?.stop()
}, 60_000)

/** One request to one process; undefined if nobody knows what became of it. */
async function ask(url: string, method: string, path: string, json?: unknown): Promise<Response | undefined> {
  const body = json === undefined ? {} : { body: JSON.stringify(json) }
  const headers = { cookie, 'content-type': 'application/json' }
  return fetch(url + path, { method, headers, ...body, signal: AbortSignal.timeout(60_000) }).catch(
    () => undefined,
  )
}

/**
 * Creates a variable once, however often that is tried: a second one of the same key is refused. Each try goes to the
 * other process.
 */
async function createVariable(teamId: string, key: string, first: number): Promise<void> {
  for (let attempt = first; ; attempt++) {
    const url = attempt % 2 === 0 ? host.url : secondUrl
    const response = await ask(url, 'POST', '/api/variables', { teamId, key, value: 'x' })
    const text = await response?.text().catch(() => undefined)
    // 409: an earlier try was done, whose response was lost.
    if (response?.status === 201 || (response?.status === 409 && attempt > first)) return
    if (response && response.status !== 503 && text !== undefined)
      throw new Error(`${key}: ${response.status} ${text}`)
    await sleep(50)
  }
}

async function makeTeam(name: string): Promise<string> {
  const response = await host.post('/api/teams', { name })
  expect(response.status).toBe(201)
  return ((await response.json()) as { id: string }).id
}

const verify = async (url: string, teamId: string, query = '') =>
  (await (await ask(url, 'GET', `/api/audit/team/${teamId}/verify${query}`))!.json()) as Verification

/** The keys of the variables of which an export tells that they were created, in the order of the chain. */
async function readCreated(teamId: string): Promise<string[]> {
  const response = await host.get(`/api/audit/team/${teamId}/export`)
  const text = await response.text()
  expect(await verifyText(text)).toMatchObject({ findings: [], breaks: [] })
  const entries = text
    .split('\n')
    .flatMap((line) => (line.startsWith('{"type":"entry"') ? [JSON.parse(line)] : []))
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, at) => at + 1))
  expect(new Set(entries.map(({ prev }) => prev)).size).toBe(entries.length)
  const created = entries.filter(({ core }) => JSON.parse(core).action === 'VARIABLE_CREATED')
  return created.map(({ details }) => JSON.parse(details).details.key)
}

test('eight writers over two API processes, one of which is killed and comes back, leave one chain with each act once', {
  tags: 'long',
  timeout: 900_000,
}, async () => {
  // A team has at most 1,000 variables, so that the writers share two teams, four each.
  const teams = [await makeTeam('One'), await makeTeam('Two')]
  let done = 0
  const writer = async (number: number) => {
    for (let i = 0; i < APPENDS; i++) {
      await createVariable(teams[number % 2]!, `W${number}_${i}`, number >> 1)
      done++
    }
  }
  const strike = async () => {
    while (done < (WRITERS * APPENDS) / 3) await sleep(5)
    second.kill('SIGKILL')
    await second.ended
    while (done < (WRITERS * APPENDS) / 2) await sleep(5)
    second = await startApi(databaseUrl, Number(new URL(secondUrl).port))
  }
  await Promise.all([strike(), ...Array.from({ length: WRITERS }, (_, number) => writer(number))])
  for (const [at, teamId] of teams.entries()) {
    const expected = Array.from({ length: WRITERS }, (_, number) => number)
      .filter((number) => number % 2 === at)
      .flatMap((number) => Array.from({ length: APPENDS }, (_, i) => `W${number}_${i}`))
    const { valid, entriesVerified } = await verify(secondUrl, teamId)
    expect([valid, entriesVerified]).toEqual([true, expected.length + 1])
    expect((await readCreated(teamId)).sort()).toEqual(expected.sort())
  }
})

test('PostgreSQL killed in the middle of appending leaves a chain that verifies, with all that was answered', async () => {
  const teamId = await makeTeam('Killed')
  const keys = Array.from({ length: 200 }, (_, i) => `K_${i}`)
  let done = 0
  const writer = async (number: number) => {
    for (const key of keys.filter((_, i) => i % 4 === number)) {
      await createVariable(teamId, key, number)
      done++
    }
  }
  const strike = async () => {
    for (const least of [40, 110]) {
      while (done < least) await sleep(5)
      await host.recovered('postgres', host.kill('postgres'))
    }
  }
  await Promise.all([strike(), ...[0, 1, 2, 3].map(writer)])
  expect(await verify(host.url, teamId)).toMatchObject({ valid: true, entriesVerified: keys.length + 1 })
  expect((await readCreated(teamId)).sort()).toEqual(keys.sort())
}, 600_000)

test('an older state of the database that was put back verifies by itself, and is found out by a noted entry alone', {
  tags: 'long',
  timeout: 300_000,
}, async () => {
  const teamId = await makeTeam('Restored')
  for (let i = 0; i < 3; i++) await createVariable(teamId, `A_${i}`, 0)
  const old = await verify(host.url, teamId)
  const restored = new URL(databaseUrl)
  restored.pathname = '/restored'
  const admin = new URL(databaseUrl)
  admin.pathname = '/postgres'
  // A copy of the whole database as it is now, as a backup has it; it needs a moment without connections.
  const name = new URL(databaseUrl).pathname.slice(1)
  await onServer(admin.href, `alter database ${name} allow_connections false`)
  try {
    await onServer(
      admin.href,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    )
    await onServer(admin.href, `create database restored template ${name}`)
  } finally {
    await onServer(admin.href, `alter database ${name} allow_connections true`)
  }
  await onServer(admin.href, 'alter database restored allow_connections true')
  await createVariable(teamId, 'SECRET', 0)
  const { last } = await verify(host.url, teamId)
  expect(last.seq).toBe(old.last.seq + 1)
  const text = await (await host.get(`/api/audit/team/${teamId}/export`)).text()

  const port = await findFree()
  const url = `http://127.0.0.1:${port}`
  const api = await startApi(restored.href, port)
  try {
    const by = (query: string) => verify(url, teamId, query)
    expect(await by('')).toMatchObject({ valid: true, last: old.last })
    expect(await by(`?seq=${old.last.seq}&hash=${old.last.hash}`)).toMatchObject({ valid: true })
    expect(await by(`?seq=${last.seq}&hash=${last.hash}`)).toMatchObject({
      valid: false,
      problem: { kind: 'checkpoint_mismatch' },
      last: old.last,
    })
    const env = { DATABASE_URL: restored.href, DATA_DIR: host.dataDir }
    const noted = ['audit', 'verify', teamId, '--checkpoint', `${last.seq}:${last.hash}`]
    expect((await perdure(noted, env)).code).toBe(1)
    expect((await perdure(noted, { ...env, DATABASE_URL: databaseUrl })).code).toBe(0)
    // The same holds for exports: the later one has what the older database cannot have.
    const older = await (await ask(url, 'GET', `/api/audit/team/${teamId}/export`))!.text()
    expect(await verifyText(older)).toMatchObject({ findings: [] })
    expect((await verifyText(older, { noted: last })).findings).toMatchObject([
      { verdict: 'checkpoint_mismatch' },
    ])
    expect(await verifyText(text, { noted: last })).toMatchObject({ findings: [], noted: 'found' })
  } finally {
    api.kill('SIGKILL')
    await api.ended
  }
})
