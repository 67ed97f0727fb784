import { connect } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gunzipSync } from 'node:zlib'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { findRule, type Rule } from '../../../api/http/accept.ts'
import { NODES } from '../../../workflows/nodes/nodes.ts'
import { keep } from '../../support/keep.ts'
import { PASSWORD, startService } from '../../support/service.ts'
import { createRandom, KEYS, makeGarbage, makeHeaders, makeJson, type Random, TEXTS } from './hostile.ts'

// FUZZ=10000 sends more requests. FUZZ_SEED repeats an earlier round.
const COUNT = Number(process.env.FUZZ ?? 2_000)
const FEW = 300
const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 32)
const AT_ONCE = 8
const LIMIT_MS = 10_000

/**
 * After this many requests the world is made anew, because hostile ones may have deleted a team or ended a
 * session.
 */
const RENEW = 200

const lines: string[] = []
const log = pino({ level: 'error' }, { write: (line: string) => lines.push(line) })
const service = await keep(startService({ log, rateLimits: false, proxyHops: 1, signUp: 'open' }))
const port = Number(new URL(await service.listen()).port)

type Route = { method: string; path: string; rule: Rule }
type World = { cookie: string; token: string; ids: Record<string, string> }

/** A new team with one resource of each kind. */
async function makeWorld(): Promise<World> {
  const team = await service.otherTeam()
  const token = await service.token('ADMIN', team.cookie, team.teamId)
  const post = async (path: string, json: unknown) => {
    const response = await service.request(path, { method: 'POST', as: team.cookie, json })
    return (await response.json()) as Record<string, string>
  }
  const nodes = [
    { id: 'a', type: 'MANUAL_TRIGGER', config: {} },
    { id: 'b', type: 'WEBHOOK_TRIGGER', config: { path: 'x' } },
  ]
  const workflow = await post('/api/workflows', { teamId: team.teamId, name: 'w', nodes, edges: [] })
  await service.request(`/api/workflows/${workflow.id}`, {
    method: 'PUT',
    as: team.cookie,
    json: { active: true },
  })
  const run = await post(`/api/workflows/${workflow.id}/execute`, { teamId: team.teamId })
  const ids = {
    teamId: team.teamId,
    userId: team.id,
    workflowId: workflow.id!,
    executionId: run.executionId!,
    path: 'x',
    email: team.email,
  }
  return { cookie: team.cookie, token, ids }
}

function listRoutes(): Route[] {
  const routes = service.app.routes.flatMap(({ method, path, handler }) => {
    const rule = findRule(handler)
    // The event stream of an execution without an engine never ends. It has hostile tests of its own.
    if (rule?.responses[200]?.type === 'text/event-stream') return []
    return rule ? [{ method: method === 'ALL' ? 'POST' : method, path, rule }] : []
  })
  return routes
}

/** A valid value for the key or parameter of this name. */
function makeSane(random: Random, { ids }: World, route: Route, key: string): string {
  if (key === 'id') {
    if (route.path.includes('/executions')) return ids.executionId!
    if (route.path.includes('/workflows')) return ids.workflowId!
  }
  const known: Record<string, string[]> = {
    firstName: ['Ada'],
    lastName: ['Byron'],
    password: [PASSWORD],
    currentPassword: [PASSWORD],
    newPassword: [`${PASSWORD} 2`],
    expiresAt: ['2999-01-01T00:00:00Z'],
    status: ['FAILED'],
    role: ['ADMIN', 'VIEWER', 'OPERATOR'],
    page: ['0', '999999'],
    size: ['1', '100'],
    from: ['2024-01-01'],
    to: ['2999-01-01T00:00:00Z'],
  }
  return ids[key] ?? (known[key] ? random.pick(known[key]) : `${key} ${random.below(1e9)}`)
}

function makeBody(random: Random, world: World, route: Route): Buffer {
  if (random.chance(0.08)) return makeGarbage(random)
  if (random.chance(0.05)) return Buffer.from(makeJson(random))
  const entries = Object.keys(Object((route.rule.json as { entries?: object } | undefined)?.entries))
  // Often only one thing is wrong, so that the request passes the first checks.
  const share = random.pick([0, 0.1, 0.1, 0.4])
  const fields = [...entries, ...(random.chance(0.3) ? [random.pick(KEYS)] : [])].flatMap((key) => {
    if (random.chance(share / 2)) return []
    if (random.chance(share)) return [[key, makeJson(random)]]
    if (key === 'nodes' || key === 'edges') return [[key, makeElements(random, key, share)]]
    if (key === 'data') return [[key, `{"value":${makeJson(random)}}`]]
    if (key === 'settings') return [[key, `{"timeoutMs":${random.pick(['null', '1000', makeJson(random)])}}`]]
    if (key === 'active') return [[key, random.pick(['true', 'false'])]]
    return [[key, JSON.stringify(makeSane(random, world, route, key))]]
  })
  return Buffer.from(`{${fields.map(([key, value]) => `${JSON.stringify(key)}:${value}`)}}`)
}

function makeElements(random: Random, key: 'nodes' | 'edges', share: number): string {
  const some = (sane: string) => (random.chance(share / 2) ? makeJson(random) : sane)
  const id = (n = random.below(6)) => some(JSON.stringify(`n${n}`))
  const items = Array.from({ length: random.below(6) }, (_, i) => {
    if (random.chance(share / 2)) return makeJson(random)
    if (key === 'edges') return `{"source":${id()},"target":${id()},"sourceHandle":${some('null')}}`
    const type = random.pick(Object.keys(NODES))
    const fields = ['url', 'path', 'values', 'condition', 'cases', 'method', 'durationMs', 'until', ...KEYS]
    const config = Array.from(
      { length: random.below(4) },
      () => `${JSON.stringify(random.pick(fields))}:${makeJson(random)}`,
    )
    return `{"id":${id(i)},"type":${some(`"${type}"`)},"config":${some(`{${config}}`)},"retry":${some('null')},"name":${some('"n"')}}`
  })
  return `[${items}]`
}

function makeRequest(random: Random, world: World, routes: Route[]): Buffer {
  const route = random.pick(routes)
  const text = () => {
    const hostile = random.pick(TEXTS)
    return random.chance(0.7) ? encodeURIComponent(hostile.toWellFormed()) : hostile.replace(/[\r\n ]/g, '')
  }
  let path = route.path.replace(/:(\w+)(\{[^}]*\})?/g, (_, key: string) =>
    random.chance(0.12) ? text() : encodeURIComponent(makeSane(random, world, route, key)),
  )
  if (random.chance(0.05))
    path += random.pick(['/', '//', '/..', '/%2e%2e', '/x', `/${'x'.repeat(9_000)}`, '\xff', ';a=b'])
  if (random.chance(0.03)) path = `/${text()}`
  const keys = Object.keys(Object((route.rule.query as { entries?: object } | undefined)?.entries))
  const query = keys.flatMap((key) => {
    const one = () =>
      `${key}=${random.chance(0.15) ? text() : encodeURIComponent(makeSane(random, world, route, key))}`
    if (random.chance(0.1)) return []
    return random.chance(0.1) ? [one(), one()] : [one()]
  })
  if (random.chance(0.1)) query.push(`${text()}=${text()}`, random.pick(['&', '=', 'a[b]=c', '%', 'a=%ff']))
  const method = random.chance(0.05)
    ? random.pick([
        'GET',
        'HEAD',
        'OPTIONS',
        'POST',
        'PUT',
        'PATCH',
        'DELETE',
        'TRACE',
        'PROPFIND',
        'FOO',
        'get',
      ])
    : route.method
  const takes = route.rule.json !== undefined || random.chance(0.1)
  const body = takes ? makeBody(random, world, route) : Buffer.alloc(0)
  // Requests that delete or end something seldom have credentials, so that the others find something to work
  // on.
  const ends = route.method === 'DELETE' || /logout|refresh|password/.test(route.path)
  const caller = ends && random.chance(0.9) ? 9 : random.below(10)
  const headers = [
    ...makeHeaders(random),
    ...(random.chance(0.95) ? [`Host: 127.0.0.1:${port}`] : []),
    ...(caller < 6
      ? [`Cookie: ${world.cookie}`]
      : caller < 8
        ? [`Authorization: Bearer ${world.token}`]
        : []),
    ...(takes && random.chance(0.95) ? ['Content-Type: application/json'] : []),
    ...(takes ? [`Content-Length: ${body.length}`] : []),
    'Connection: close',
  ]
  const target = query.length > 0 ? `${path}?${query.join('&')}` : path
  const head = `${method} ${target} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`
  return Buffer.concat([Buffer.from(head, random.chance(0.5) ? 'latin1' : 'utf8'), body])
}

/**
 * Sends the bytes and reads until the server closes the connection. Rejects if that takes more than
 * `LIMIT_MS`.
 */
function exchange(bytes: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1')
    const timer = setTimeout(() => socket.destroy(new Error('hangs')), LIMIT_MS)
    socket.on('connect', () => socket.write(bytes))
    socket.on('data', (chunk) => chunks.push(chunk))
    // The server may close the connection before it has read everything. If it has sent a response, that one
    // counts.
    socket.on('error', (error) => {
      if (error.message === 'hangs' || chunks.length === 0) reject(error)
    })
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(Buffer.concat(chunks))
    })
  })
}

/** Describes what is wrong with a response. Undefined if nothing is. */
function findFault(response: Buffer, isHead: boolean, isPage: boolean): string | undefined {
  const end = response.indexOf('\r\n\r\n')
  const [first, ...rest] = response.subarray(0, end).toString('latin1').split('\r\n')
  const status = Number(/^HTTP\/1.1 (\d{3})/.exec(first ?? '')?.[1])
  if (status === 100) return findFault(response.subarray(end + 4), isHead, isPage)
  if (end < 0 || Number.isNaN(status)) return `no response: ${response.subarray(0, 100)}`
  const headers = new Map(
    rest.map((line) => [line.split(':', 1)[0]!.toLowerCase(), line.replace(/^[^:]*: */, '')]),
  )
  if (status >= 500) return `${status}: ${lines.at(-1)}`
  for (const name of ['limit', 'remaining', 'reset']) {
    if (!/^\d+$/.test(headers.get(`x-ratelimit-${name}`) ?? ''))
      return `${status} without x-ratelimit-${name}`
  }
  if (!headers.has('x-request-id')) return `${status} without x-request-id`
  if (headers.has('x-evil')) return 'a header was smuggled in'
  if (status === 201 && !headers.has('location')) return '201 without Location'
  if (status < 400 || isHead) return undefined
  // People are there in a browser: they see a page, also of what went wrong.
  if (isPage && headers.get('content-type')?.startsWith('text/html')) return undefined
  const body = readBody(response.subarray(end + 4), headers)
  const { errors, code, ...five } = JSON.parse(body) as Record<string, unknown>
  // OTLP's own errors have a code of gRPC besides.
  if (code !== undefined && !String(five.path).startsWith('/api/telemetry/'))
    return `${status} with the code ${code}`
  const names = Object.keys(five).sort().join()
  if (names !== 'error,message,path,status,timestamp') return `${status} with the fields ${names}`
  if (
    five.status !== status ||
    (errors !== undefined) !== (status === 400 && first !== undefined && 'errors' in JSON.parse(body))
  )
    return `${status} says ${five.status}`
  if (body.length > 300_000) return `${status} with ${body.length} characters`
  if (/node_modules|\.ts:\d|\b(select|insert into) /.test(String(five.message)))
    return `${status} reveals internals: ${five.message}`
  return undefined
}

function readBody(bytes: Buffer, headers: Map<string, string>): string {
  let body = bytes
  if (headers.get('transfer-encoding') === 'chunked') {
    const parts: Buffer[] = []
    for (let at = 0; ; ) {
      const line = body.indexOf('\r\n', at)
      const size = Number.parseInt(body.subarray(at, line).toString(), 16)
      if (!size) break
      parts.push(body.subarray(line + 2, line + 2 + size))
      at = line + 4 + size
    }
    body = Buffer.concat(parts)
  }
  return (headers.get('content-encoding') === 'gzip' ? gunzipSync(body) : body).toString()
}

function measureHeap(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1e6
}

const PROMISE = `hostile requests cause no 5xx, no hang, no error without the usual body and no memory leak (seed ${SEED})`

test(`${FEW} ${PROMISE}`, () => sendHostile(FEW))

test(`${COUNT} ${PROMISE}`, { tags: 'long', timeout: 600_000 }, () => sendHostile(COUNT))

async function sendHostile(count: number): Promise<void> {
  const routes = listRoutes()
  expect(routes.length).toBeGreaterThan(15)
  const faults: string[] = []
  const statuses: Record<string, number> = {}
  let world = await makeWorld()
  let heapEarly = 0
  for (let at = 0; at < count && faults.length < 20; at += AT_ONCE) {
    if (at % RENEW < AT_ONCE) world = await makeWorld()
    if (at >= count / 4 && heapEarly === 0) heapEarly = measureHeap()
    const batch = Array.from({ length: AT_ONCE }, async (_, i) => {
      const bytes = makeRequest(createRandom(SEED + at + i), world, routes)
      const isHead = bytes.subarray(0, 5).toString() === 'HEAD '
      const isPage = /^\S+ (?:\S*\/oauth2\/callback|\/mail\/|\/form(s|s-test|-progress)?\/)/.test(
        bytes.subarray(0, 200).toString('latin1'),
      )
      const response = await exchange(bytes).catch((error: Error) => error)
      const fault = response instanceof Error ? response.message : findFault(response, isHead, isPage)
      if (fault)
        faults.push(`#${at + i} ${fault}\n  ${JSON.stringify(bytes.subarray(0, 900).toString('latin1'))}`)
      else {
        const status = /HTTP\/1.1 (?!100)(\d+)/.exec((response as Buffer).toString('latin1'))![1]!
        statuses[status] = (statuses[status] ?? 0) + 1
      }
    })
    await Promise.all(batch)
  }
  expect(faults).toEqual([])
  const grown = measureHeap() - heapEarly
  console.log(`fuzz: seed ${SEED}, ${JSON.stringify(statuses)}, heap grew by ${grown.toFixed(1)} MB`)
  // Many requests reach the handlers, and many are rejected by validation.
  expect(statuses['200'] ?? 0).toBeGreaterThan(count / 20)
  expect(statuses['400'] ?? 0).toBeGreaterThan(count / 10)
  expect(grown).toBeLessThan(30)
  // The service still works.
  expect((await service.request('/api/node-types', { as: service.admin })).status).toBe(200)
}
