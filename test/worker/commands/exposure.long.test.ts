import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test, vi } from 'vitest'
import { createExposure, isExposureDecided } from '../../../db/operation/exposure.ts'
import { addApi } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const OPEN = { signUp: 'open', openByDefault: { signUp: true, loopback: true } } as const

const service = await keep(startService(OPEN))
const dataDir = mkdtempSync(join(tmpdir(), 'perdure-exposure-'))
const closing: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const close of closing.reverse()) await close()
  rmSync(dataDir, { recursive: true, force: true })
})

/** What processes log, by their name. */
const said: string[] = []

/** Another process on the same database, with its own connection that listens. */
async function addProcess(name: string) {
  const api = await addApi(service, OPEN)
  const { bus } = api
  const exposure = createExposure({
    bus,
    isDecided: () => isExposureDecided(service.store),
    onChange: (why) => said.push(`${name} ${why === null ? 'opens' : 'closes'}`),
  })
  const { app, stop } = await addApi(service, { ...OPEN, bus, exposure })
  closing.push(api.stop, stop)
  const ask = (path: string, headers: Record<string, string> = {}, body?: unknown) =>
    app.request(path, {
      ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
      headers: { 'content-type': 'application/json', ...headers },
    })
  return { exposure, ask, signUp: async () => (await ask('/api/auth/register', {}, person())).status }
}

let people = 0
const person = () => ({
  email: `p${people++}@example.com`,
  password: 'correct horse battery staple',
  firstName: 'Ada',
  lastName: 'Byron',
})

function perdure(...args: string[]) {
  const { current, byId } = service.store.keys
  const PERDURE_KEYS = `${current}:${byId.get(current)!.toString('base64')}`
  const env = { ...process.env, DATABASE_URL: service.database.url, DATA_DIR: dataDir, PERDURE_KEYS }
  const child = spawn('node', [join(ROOT, 'worker/perdure.js'), ...args], { cwd: ROOT, env })
  let out = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (out += part))
  return new Promise<{ code: number | null; out: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, out })),
  )
}

const PROXIED = { 'X-Forwarded-For': '203.0.113.7' }

test('an operator opens in all processes what a proxy has closed, for good, and takes it back', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const [one, two] = [await addProcess('one'), await addProcess('two')]
  const all = [one.exposure, two.exposure, service.exposure]
  const areClosed = (closed: boolean) =>
    vi.waitFor(() => expect(all.map(({ why }) => why() !== null)).toEqual([closed, closed, closed]), 5_000)
  await one.ask('/healthz', PROXIED)
  await areClosed(true)
  expect([await one.signUp(), await two.signUp()]).toEqual([403, 403])

  const opened = await perdure('exposure', 'open')
  expect([opened.code, opened.out]).toEqual([0, expect.stringContaining('close nothing from now on')])
  await areClosed(false)
  expect([await one.signUp(), await two.signUp()]).toEqual([201, 201])
  // No later one closes it again: neither in these processes, nor in one that starts now and is reached at once.
  for (const { ask } of [one, two]) await ask('/healthz', PROXIED)
  const late = await addProcess('late')
  await late.ask('/healthz', PROXIED)
  await vi.waitFor(async () => expect(await late.signUp()).toBe(201), 5_000)
  await areClosed(false)
  expect((await perdure('exposure', 'open')).out).toContain('decided already')

  const closed = await perdure('exposure', 'close')
  expect([closed.code, closed.out]).toEqual([0, expect.stringContaining('closes again')])
  await areClosed(true)
  await vi.waitFor(() => expect(late.exposure.why()).not.toBeNull())
  expect([await one.signUp(), await late.signUp()]).toEqual([403, 403])
  expect((await perdure('exposure', 'close')).out).toContain('Nothing was opened')
  expect(said.filter((line) => /^(one|two) /.test(line)).sort()).toEqual([
    ...['one closes', 'one closes', 'one opens', 'two closes', 'two closes', 'two opens'],
  ])

  const entries = await service.store.db
    .selectFrom('auditEntries')
    .select(['action', 'actorKind', 'resourceType', 'teamId'])
    .where('action', 'like', 'EXPOSURE%')
    .orderBy('seq')
    .execute()
  expect(entries.map(({ action, actorKind, resourceType }) => [action, actorKind, resourceType])).toEqual([
    ['EXPOSURE_OPENED', 'SYSTEM', 'EXPOSURE'],
    ['EXPOSURE_CLOSED', 'SYSTEM', 'EXPOSURE'],
  ])
})

test('what settings close, no decision opens', { tags: 'long', timeout: 60_000 }, async () => {
  await perdure('exposure', 'open')
  const one = await addProcess('set')
  one.exposure.note('the API is set up for others than this machine')
  await vi.waitFor(() => expect(service.exposure.why()).toMatch(/^the API is set up/))
  await perdure('exposure', 'open')
  const late = await addProcess('late')
  await vi.waitFor(() => expect(late.exposure.why()).toMatch(/^the API is set up/))
  expect([await one.signUp(), await late.signUp()]).toEqual([403, 403])
})
