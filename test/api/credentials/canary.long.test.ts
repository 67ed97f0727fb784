import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Writable } from 'node:stream'
import type { Payload } from '@temporalio/common'
import { sql } from 'kysely'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { createMetrics } from '../../../activities/metrics.ts'
import { openPayload } from '../../../activities/temporal/codec.ts'
import { CREDENTIAL_TYPES, type CredentialType, credentialKind } from '../../../db/credentials/types.ts'
import { NODES, nodeType } from '../../../workflows/nodes/nodes.ts'
import { type ExecutionBody, nodeOf } from '../../support/client.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startWorld } from '../../support/servers/world.ts'
import { until } from '../../support/until.ts'

const lines: string[] = []
const log = pino(
  { level: 'trace' },
  new Writable({
    write(line, _, done) {
      lines.push(String(line))
      done()
    },
  }),
)
const metrics = createMetrics()
const host = await keep(startRunning({ log, metrics }))

/** A secret that is found wherever it turns up, with characters that every notation writes in its own way. */
const makeSecret = (what: string) => `Cnry-${what}-${randomBytes(9).toString('hex')}/+=&"<~`

/** Its forms, as whoever looks for it would write them: of base64 what is the same at each of three offsets. */
function listForms(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const base64 = [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
    return text.slice(4, -4)
  })
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    encodeURIComponent(secret).toLowerCase(),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    ...base64,
    ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
    // The part that no notation changes.
    ...(/Cnry-[\w-]+/.exec(secret) ?? []),
  ]
}

/** The secrets of each type, and what else its data needs. */
const MORE: Partial<Record<CredentialType, (at: string) => object>> = {
  AZURE_OPENAI: (at) => ({ endpoint: at }),
  OPENAI_COMPATIBLE: (at) => ({ baseUrl: at }),
  SMTP: (at) => ({ host: '127.0.0.1', port: Number(new URL(at).port), username: 'u' }),
  IMAP: (at) => ({ host: '127.0.0.1', port: Number(new URL(at).port), username: 'u' }),
  HTTP_BASIC: (at) => ({ username: 'u', testUrl: `${at}/failing` }),
  HTTP_BEARER: (at) => ({ testUrl: `${at}/failing` }),
  HTTP_HEADER: (at) => ({ name: 'X-Odd', testUrl: `${at}/failing` }),
  HTTP_QUERY: (at) => ({ name: 'odd', testUrl: `${at}/failing` }),
  TWILIO: () => ({ accountSid: 'AC1' }),
  HTTP_CUSTOM: (at) => ({ testUrl: `${at}/failing` }),
  OAUTH2: (at) => ({ clientId: 'c', tokenUrl: `${at}/failing` }),
  GOOGLE_SERVICE_ACCOUNT: (at) => ({
    ...{ clientEmail: 'a@b.c', scopes: ['s'], allowedHosts: ['127.0.0.1'], tokenUrl: `${at}/failing` },
  }),
  AWS: (at) => ({ accessKeyId: 'AKID', region: 'eu-central-1', service: 's', baseUrl: at }),
  DATABASE: (at) => ({
    ...{ host: '127.0.0.1', port: Number(new URL(at).port), database: 'd', username: 'u' },
  }),
}

/** Each node type that takes credentials, with configs that succeed and that fail. More of them: one line each. */
const TAKERS: Record<string, (at: string) => Record<string, unknown>[]> = {
  HTTP_REQUEST: (at) =>
    PATHS.map((path) => ({
      ...{
        url: at + path,
        method: path === '/posted' ? 'POST' : 'GET',
        timeoutMs: path === '/hang' ? 300 : 20_000,
      },
      ...(path === '/posted' ? { body: { text: 'posted' } } : {}),
    })),
  SEND_EMAIL: () => [{ from: 'a@example.com', to: 'b@example.com', subject: 's', text: 't' }],
  CONNECTOR: (at) => [
    ...PATHS.map((path) => ({
      ...{ connector: 'airtable', action: 'createRecord', server: at + path },
      input: { base: 'app1', table: 'People', fields: {} },
    })),
  ],
  CHAT_MESSAGE: () => [{ to: '1', text: 'hello' }],
  DATABASE_QUERY: () => [{ query: 'select 1' }],
  LLM: () => [
    { model: 'demo', prompt: 'Say: hello' },
    { model: 'demo', prompt: 'Say: hello', output: 'json' },
  ],
  CLASSIFY: () => [{ model: 'demo', input: 'a', categories: [{ name: 'a' }, { name: 'b' }] }],
  EXTRACT: () => [{ model: 'demo', input: 'a', schema: { type: 'object' } }],
  SUMMARIZE: () => [{ model: 'demo', input: 'a' }],
  AI_MEDIA: () => [
    { model: 'demo', operation: 'speak', text: 'Hello' },
    { model: 'demo', operation: 'image', text: 'A cat' },
  ],
  AI_AGENT: () => [{ model: 'demo', instructions: 'Help.', prompt: 'Hello' }],
}
/** Those that only keep a secret, and open nothing while they are executed beside others' servers. */
const SIGNERS = ['WEBHOOK_TRIGGER', 'FORM_TRIGGER', 'CRYPTO']

/** Sends back what it knows of the secrets of a type, in all notations. */
function echo(secrets: string[], request: IncomingMessage): string {
  const { headers, url } = request
  const notations = secrets.flatMap((secret) => {
    const bytes = Buffer.from(secret)
    return [
      ...[secret, encodeURIComponent(secret), bytes.toString('hex'), JSON.stringify({ deep: secret })],
      ...['', 'a', 'ab'].map((before) => Buffer.from(`${before}${secret}cde`).toString('base64')),
    ]
  })
  return JSON.stringify({ headers, url, notations, [secrets[0] ?? 'none']: { asKey: secrets } })
}

const JSON_TYPE = { 'content-type': 'application/json' }
const PATHS = '/json /posted /text /headers /failing /busy /near /away /half /large /hang'.split(' ')

/** A world that knows the secrets of one type and tells them at every path. */
function startEcho(secrets: string[], awayUrl: string) {
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const said = echo(secrets, request)
    const [path = ''] = (request.url ?? '').split('?')
    const known = encodeURIComponent(secrets[0] ?? '')
    if (path.endsWith('/headers'))
      response
        .writeHead(200, { 'x-echo': known, 'x-plain': secrets[0] ?? '', 'set-cookie': `a=${known}` })
        .end('ok')
    else if (path.endsWith('/text')) response.writeHead(200, { 'content-type': 'text/plain' }).end(said)
    else if (path.endsWith('/chat/completions')) {
      const chunk = (delta: object, reason: string | null = null) =>
        `data: ${JSON.stringify({ id: '1', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(`${chunk({ content: said })}${chunk({}, 'stop')}data: [DONE]\n\n`)
    } else if (path.endsWith('/failing')) response.writeHead(400, JSON_TYPE).end(said)
    else if (path.endsWith('/busy')) response.writeHead(503, { 'retry-after': '0' }).end(said)
    else if (path.endsWith('/near'))
      response.writeHead(307, { location: `/json/${known}?again=${known}`, 'x-echo': known }).end(said)
    else if (path.endsWith('/away'))
      response.writeHead(307, { location: `${awayUrl}/there/${known}?odd=${known}` }).end(said)
    else if (path.endsWith('/half')) {
      response.writeHead(200, { ...JSON_TYPE, 'content-length': '100000' }).write(said)
      setTimeout(() => response.destroy(), 20)
    } else if (path.endsWith('/large'))
      response
        .writeHead(200, JSON_TYPE)
        .end(`{"first":${said},"fill":"${'x'.repeat(1_000_000)}","last":${said}}`)
    else if (!path.endsWith('/hang')) response.writeHead(200, JSON_TYPE).end(said)
  }
  return startWorld({}, answer)
}

type Case = {
  type: CredentialType
  secrets: string[]
  data: object
  url: string
  id: string
  runs: ExecutionBody[]
}
const cases: Case[] = []
const stops: (() => Promise<unknown>)[] = []
afterAll(() => Promise.all(stops.map((stop) => stop())))

const uses = (node: string, type: CredentialType) =>
  credentialKind(type).uses.some((use) => nodeType(node)?.credentialUses?.includes(use))

/** A secret as the data of its type has it, for a server at `at`. */
function writeSecret(type: CredentialType, key: string, secret: string, at: string): unknown {
  if (type === 'DISCORD_WEBHOOK') return `${at}/webhooks/1/${secret}`
  if (type === 'HTTP_CUSTOM') return [key === 'headers' ? `X-Odd: ${secret}` : `odd=${secret}`]
  return secret
}

beforeAll(async () => {
  const away = await startWorld({}, (_request, response) => response.end('there'))
  stops.push(away.stop)
  for (const type of Object.keys(CREDENTIAL_TYPES) as CredentialType[]) {
    const { data: schema, secrets: keys } = credentialKind(type)
    const made = keys.map((key) => makeSecret(`${type}-${key}`.replaceAll('_', '')))
    // The token of a webhook is a part of its address.
    const secrets = type === 'DISCORD_WEBHOOK' ? made.map((one) => one.replace(/[^\w-]/g, '')) : made
    const world = await startEcho(secrets, away.url)
    stops.push(world.stop)
    const base = 'baseUrl' in schema.entries ? { baseUrl: world.url } : {}
    const data = {
      ...base,
      ...MORE[type]?.(world.url),
      ...Object.fromEntries(keys.map((key, i) => [key, writeSecret(type, key, secrets[i]!, world.url)])),
    }
    const json = { name: `of ${type}`, type, teamId: host.teamId, data }
    const { id } = await host.ask<{ id: string }>('POST', '/api/credentials', json)
    cases.push({ type, secrets, data, url: world.url, id, runs: [] })
  }
  // Not all at once: their answers are large.
  for (let at = 0; at < cases.length; at += 3) await Promise.all(cases.slice(at, at + 3).map(runAll))
  for (const { id } of cases)
    found.push(JSON.stringify(await host.ask('POST', `/api/credentials/${id}/test?teamId=${host.teamId}`)))
}, 240_000)

/** Executes every node type that takes the credential, once for each of its configs. */
async function runAll(one: Case): Promise<void> {
  for (const [type, configs] of Object.entries(TAKERS)) {
    if (!uses(type, one.type)) continue
    const calls = configs(one.url).map((config, i) => ({
      ...{ id: `n${i}`, type, onError: 'CONTINUE', retry: { maxAttempts: 2, initialIntervalMs: 10 } },
      config: { ...config, credentialId: one.id },
    }))
    const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
    const edges = calls.map(({ id }) => ({ source: 'start', target: id }))
    const workflowId = await host.create({ nodes: [start, ...calls], edges } as never)
    const id = await host.execute(workflowId)
    const stream = host.request(`/api/executions/${id}/events`, { as: host.admin })
    one.runs.push(await host.ended(id, 120_000))
    found.push(await (await stream).text())
  }
}

/** All that anybody can see. */
const found: string[] = []

const get = async (path: string) => {
  const response = await host.request(path, { as: host.admin })
  expect([path, response.status]).toEqual([path, 200])
  const text = await response.text()
  found.push(text)
  return text
}

function expectNoSecret(texts: (string | Buffer)[], what: string): void {
  for (const { type, secrets } of cases)
    for (const form of secrets.flatMap(listForms))
      for (const text of texts) {
        const at = text.indexOf(form)
        if (at >= 0)
          throw new Error(
            `${what} have ${form} of ${type}: ${text.toString('utf8').slice(Math.max(0, at - 300), at + 100)}`,
          )
      }
}

test('every node type that takes credentials is tried, and each call has opened one', {
  tags: 'long',
}, () => {
  const takers = Object.keys(NODES).filter((type) => nodeType(type)?.credentialUses?.length)
  expect([...Object.keys(TAKERS), ...SIGNERS]).toEqual(expect.arrayContaining(takers))
  for (const { type, runs } of cases.filter((one) => uses('HTTP_REQUEST', one.type))) {
    const [run] = runs
    expect([type, run?.status]).toEqual([type, 'SUCCESS'])
    // These two get no tokens here.
    if (type === 'OAUTH2' || type === 'GOOGLE_SERVICE_ACCOUNT') continue
    const statuses = PATHS.map((path, i) => `${path} ${nodeOf(run!, `n${i}`).errorMessage === null}`)
    const fails = ['/failing', '/busy', '/half', '/hang', ...(mayLeave(type) ? [] : ['/away'])]
    expect([type, statuses]).toEqual([type, PATHS.map((path) => `${path} ${!fails.includes(path)}`)])
  }
})

const mayLeave = (type: CredentialType) => type.startsWith('HTTP_')

test('no response of the API has a secret: outputs, errors, requests, streams, exports, metrics', {
  tags: 'long',
}, async () => {
  for (const { runs, id, type } of cases) {
    await get(`/api/credentials/${id}`)
    await get(`/api/credentials/${id}/usage`)
    for (const run of runs) {
      await get(`/api/executions/${run.id}`)
      for (const node of run.nodeExecutions) {
        const path = `/api/executions/${run.id}/nodes/${node.id}/requests`
        type Page = { content: { durationMs: number | null }[] }
        await until(() => host.ask<Page>('GET', path), {
          holds: ({ content }) => content.every(({ durationMs }) => durationMs !== null),
        })
        const text = await get(path)
        // An agent asks in its steps, which have records of their own.
        const own = run.nodeExecutions.filter(({ nodeId }) => nodeId === node.nodeId)
        const asked = node.nodeId !== 'start' && type !== 'DEMO' && (own.length === 1 || own[0] !== node)
        if (asked && node.errorMessage === null) expect(text).toContain('[redacted]')
      }
    }
  }
  await get(`/api/credentials?teamId=${host.teamId}`)
  await get(`/api/executions/team/${host.teamId}/export`)
  await get(`/api/executions/team/${host.teamId}/export?format=json`)
  const { content } = JSON.parse(await get(`/api/workflows?teamId=${host.teamId}&size=100`))
  for (const { id } of content) await get(`/api/workflows/${id}/export`)
  found.push(await metrics.registry.metrics())
  expectNoSecret(found, 'the responses')
  // What was sent back was masked, and not lost.
  expect(found.join('').split('[redacted]').length).toBeGreaterThan(1_000)
})

test('no line of the log has one', { tags: 'long' }, () => {
  expect(lines.length).toBeGreaterThan(10)
  expectNoSecret(lines, 'the logs')
})

test('no table of PostgreSQL has one', { tags: 'long' }, async () => {
  const { rows } = await sql<{ name: string }>`
    select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`.execute(host.store.db)
  expect(rows.length).toBeGreaterThan(20)
  for (const { name } of rows) {
    const dump = await sql<{ text: string }>`select t::text as text from ${sql.raw(name)} t`.execute(
      host.store.db,
    )
    expectNoSecret(
      dump.rows.map(({ text }) => text),
      `the rows of ${name}`,
    )
  }
})

test('neither has Temporal: its file, and what it holds sealed', { tags: 'long' }, async () => {
  const file = inject('temporalFile')
  const files = ['', '-wal'].map((end) => file + end).filter((path) => file !== '' && existsSync(path))
  expectNoSecret(
    files.map((path) => readFileSync(path)),
    'the files of Temporal',
  )
  const { client, sealer } = host.engine
  for (const { runs } of cases)
    for (const { id } of runs) {
      const history = await client.workflow.getHandle(id).fetchHistory()
      const place = { namespace: 'default', workflowId: id }
      const opened = await Promise.all(listPayloads(history).map((one) => openPayload(sealer, place, one)))
      expect(opened.length).toBeGreaterThan(2)
      expectNoSecret(
        opened.map(({ data }) => Buffer.from(data ?? [])),
        'the payloads of Temporal',
      )
    }
})

function listPayloads(value: unknown): Payload[] {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return []
  const { metadata, data } = value as Payload
  if (metadata && ArrayBuffer.isView(data)) return [value as Payload]
  return Object.values(value).flatMap(listPayloads)
}

test('the search finds what is there', { tags: 'long' }, async () => {
  const [{ secrets }] = cases as [Case]
  const run = await host.run(
    { nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }], edges: [] },
    { note: Buffer.from(`xy${secrets[0]}`).toString('base64') },
  )
  const text = await (await host.request(`/api/executions/${run.id}`, { as: host.admin })).text()
  expect(() => expectNoSecret([text], 'the responses')).toThrow('the responses have')
})
