import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { createOutsides } from '../../../activities/egress/outside.ts'
import { openTeamCredential } from '../../../db/credentials/open.ts'
import { CREDENTIAL_TYPE_NAMES, type CredentialType, credentialKind } from '../../../db/credentials/types.ts'
import { keep } from '../../support/keep.ts'
import { type Body, startService } from '../../support/service.ts'

const outside = createOutsides({ allowLoopback: true, allow: [] })
afterAll(() => outside.close())
const service = await keep(startService({ rateLimits: false, outside }))
const { store, teamId, call, admin } = service
const builder = await service.signUp('BUILDER')

/** Servers that hang up. What reaches those of the attacker is kept. */
const caught: string[] = []
async function listen(host: string, port: number, keeps: boolean): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    if (!keeps) return socket.destroy()
    socket.once('data', (bytes) => {
      caught.push(bytes.toString())
      socket.destroy()
    })
    caught.push('connected')
    return socket
  }).listen(port, host)
  await once(server, 'listening')
  afterAll(() => void server.close())
  return (server.address() as AddressInfo).port
}
const homePort = await listen('127.0.0.1', 0, false)
const otherPort = await listen('127.0.0.1', 0, true)
await listen('127.0.0.2', homePort, true)

const home = `http://127.0.0.1:${homePort}`
const there = `http://127.0.0.1:${otherPort}`
const login = { host: '127.0.0.1', port: homePort, username: 'u', password: 'canary-1', tls: 'auto' }
const anywhere = { allowedHosts: [`127.0.0.1:${homePort}`, 'b.example'], testUrl: home }
const oauth = {
  ...{ clientId: 'c', clientSecret: 'canary-1', accessToken: 'canary-2', refreshToken: 'canary-3' },
  ...{ authorizationUrl: home, tokenUrl: home, issuer: home },
}

/** Data of each type with all its secrets and all that directs them. */
const FULL: Record<CredentialType, Record<string, unknown>> = {
  OPENAI: { apiKey: 'canary-1', baseUrl: home },
  ANTHROPIC: { apiKey: 'canary-1', baseUrl: home },
  AZURE_OPENAI: { apiKey: 'canary-1', endpoint: home },
  GOOGLE_AI: { apiKey: 'canary-1', baseUrl: home },
  OPENAI_COMPATIBLE: { apiKey: 'canary-1', baseUrl: home },
  SLACK: { botToken: 'canary-1', baseUrl: home },
  TELEGRAM: { botToken: 'canary-1', baseUrl: home },
  DISCORD: { botToken: 'canary-1', baseUrl: home },
  DISCORD_WEBHOOK: { webhookUrl: `${home}/api/webhooks/1/canary-1` },
  MATTERMOST: { accessToken: 'canary-1', baseUrl: home },
  WHATSAPP: { accessToken: 'canary-1', baseUrl: home },
  TWILIO: { accountSid: 'AC1', authToken: 'canary-1', apiKeySid: 'SK1', baseUrl: home },
  SMTP: login,
  IMAP: login,
  HTTP_BASIC: { username: 'u', password: 'canary-1', ...anywhere },
  HTTP_BEARER: { token: 'canary-1', ...anywhere },
  HTTP_HEADER: { name: 'X-Key', value: 'canary-1', ...anywhere },
  HTTP_QUERY: { name: 'key', value: 'canary-1', ...anywhere },
  HTTP_CUSTOM: { headers: ['X-Key: canary-1', 'X-App: canary-2'], query: ['key=canary-3'], ...anywhere },
  OAUTH2: { ...oauth, ...anywhere },
  GOOGLE_SERVICE_ACCOUNT: {
    ...{ clientEmail: 'a@b.c', privateKey: 'canary-1', scopes: ['s'], tokenUrl: home },
    ...anywhere,
  },
  NOTION: { apiKey: 'canary-1', baseUrl: home },
  AIRTABLE: { apiKey: 'canary-1', baseUrl: home },
  AWS: {
    ...{ accessKeyId: 'a', secretAccessKey: 'canary-1', sessionToken: 'canary-2', region: 'eu-central-1' },
    baseUrl: home,
  },
  DATABASE: { ...login, database: 'd', dialect: 'postgresql', ca: 'pem' },
  SIGNATURE: { secret: 'canary-1' },
  DEMO: { demo: true },
}

/** What a BUILDER would write to get at the secrets. */
const ELSEWHERE: Record<string, unknown> = {
  host: '127.0.0.2',
  port: otherPort,
  tls: 'never',
  ca: 'another',
  dialect: 'mysql',
  allowedHosts: [`127.0.0.1:${homePort}`, 'b.example', `127.0.0.1:${otherPort}`],
}

let made = 0
async function make(type: CredentialType, data: object = FULL[type]): Promise<string> {
  const input = { name: `${type} ${made++}`, type, teamId, data }
  const { status, body, text } = await call('POST', '/api/credentials', admin, input)
  expect([status, text]).toEqual([201, expect.anything()])
  return body.id
}
const put = (id: string, data: object) => call('PUT', `/api/credentials/${id}`, builder.cookie, { data })
const tryOut = (id: string) => call('POST', `/api/credentials/${id}/test?teamId=${teamId}`, builder.cookie)
const open = async (id: string) => (await openTeamCredential(store, teamId, id)).data
const pathsOf = ({ status, body }: Body): string[] => {
  expect(status).toBe(400)
  return body.errors.map(({ path }: { path: string }) => path)
}
const pick = (type: CredentialType, keys: readonly string[]) =>
  Object.fromEntries(keys.map((key) => [key, FULL[type][key]]))

test('the table says of each key whether it is secret, directs secrets, or does neither', () => {
  for (const type of CREDENTIAL_TYPE_NAMES) {
    const { data, secrets, directs, plain } = credentialKind(type)
    const decided = [...secrets, ...directs, ...plain].sort()
    expect([type, decided]).toEqual([type, Object.keys(data.entries).sort()])
    expect([type, [...secrets, ...directs].filter((key) => FULL[type][key] === undefined)]).toEqual([
      type,
      [],
    ])
  }
})

/** The secrets that a change of where they go demands: the tokens of OAUTH2 are dropped instead. */
const demanded = (type: CredentialType) =>
  type === 'OAUTH2' ? ['clientSecret'] : credentialKind(type).secrets

test.each(CREDENTIAL_TYPE_NAMES)('%s: a BUILDER cannot send the secrets elsewhere', async (type) => {
  caught.length = 0
  const { directs, secrets, data } = credentialKind(type)
  const id = await make(type)
  for (const key of directs) {
    const missing = demanded(type).map((secret) => `data.${secret}`)
    const value = ELSEWHERE[key] ?? there
    const refused = await put(id, { [key]: value })
    expect([key, pathsOf(refused)]).toEqual([key, missing])
    expect(refused.body.errors[0].message).toContain(key)
    const [first, ...others] = demanded(type)
    if (others.length > 0)
      expect(pathsOf(await put(id, { [key]: value, [first!]: FULL[type][first!] }))).toEqual(
        others.map((one) => `data.${one}`),
      )
    if (data.entries[key]!.type === 'optional' && key !== 'tls' && key !== 'dialect')
      expect([key, pathsOf(await put(id, { [key]: null }))]).toEqual([key, expect.arrayContaining(missing)])
    expect((await put(id, { [key]: FULL[type][key] })).status).toBe(200)
  }
  expect(await open(id)).toMatchObject(pick(type, [...directs, ...secrets]))
  await tryOut(id)
  expect(caught).toEqual([])
})

test('with all secrets in the request it goes there, with these; the audit names what was changed', async () => {
  caught.length = 0
  const id = await make('OPENAI')
  expect((await put(id, { baseUrl: there, apiKey: 'the-attackers-own' })).status).toBe(200)
  await tryOut(id)
  expect(caught.join()).toContain('the-attackers-own')
  expect(caught.join()).not.toContain('canary')
  const row = await store.db
    .selectFrom('auditEntries')
    .select('details')
    .where('resourceId', '=', id)
    .where('action', '=', 'CREDENTIAL_UPDATED')
    .executeTakeFirst()
  expect(row?.details).toMatchObject({ redirected: ['baseUrl'] })
  expect(JSON.stringify(row)).not.toContain(String(otherPort))
})

test('a list of hosts may lose some, or begin, without the secrets; it may not grow, end or change them', async () => {
  const id = await make('HTTP_BEARER', { token: 'canary-1' })
  const hosts = async (allowedHosts: unknown) => (await put(id, { allowedHosts })).status
  expect(await hosts(['a.example', '*.b.example', 'c.example:8080'])).toBe(200)
  expect(await hosts(['C.example:8080', '*.b.example'])).toBe(200)
  for (const wider of [
    ['*.b.example', 'a.example'],
    ['b.example'],
    ['*.example'],
    ['c.example'],
    ['c.example:8081'],
    null,
  ])
    expect([wider, await hosts(wider)]).toEqual([wider, 400])
  // The vendor's own hosts are what a type with hosts has without a list.
  const google = await make('GOOGLE_SERVICE_ACCOUNT', {
    clientEmail: 'a@b.c',
    privateKey: 'p',
    scopes: ['s'],
  })
  expect(pathsOf(await put(google, { allowedHosts: ['a.example'] }))).toEqual(['data.privateKey'])
})

test('all that is wrong is named at once, and what is wrong and missing changes nothing', async () => {
  const id = await make('AWS')
  const refused = await put(id, { baseUrl: 'http://b.example', region: '' })
  expect(pathsOf(refused)).toEqual(['data.region', 'data.secretAccessKey', 'data.sessionToken'])
  expect(await open(id)).toEqual(FULL.AWS)
  // A secret that is taken away goes nowhere.
  const moved = { baseUrl: 'http://b.example', secretAccessKey: 'x', sessionToken: null }
  expect((await put(id, moved)).body.keys).not.toContain('sessionToken')
})

test('OAUTH2 loses its tokens, says so, and must be connected again', async () => {
  const id = await make('OAUTH2')
  const { body } = await put(id, { tokenUrl: there, clientSecret: 'another' })
  expect(body.broken).toContain('connect it again')
  expect(body.keys).not.toContain('accessToken')
  expect(await open(id)).not.toHaveProperty('refreshToken')
  expect((await put(id, { scope: 'read' })).body.broken).toContain('connect it again')
  expect((await put(id, { accessToken: 'mine' })).body.broken).toBeNull()
  // Without a way to connect it, the tokens are demanded.
  const { authorizationUrl: _, ...rest } = FULL.OAUTH2
  const plain = await make('OAUTH2', rest)
  expect(pathsOf(await put(plain, { allowedHosts: null }))).toEqual([
    'data.accessToken',
    'data.refreshToken',
    'data.clientSecret',
  ])
})

test('of two changes at once, none gets both the old secret and the new place', async () => {
  const id = await make('OPENAI')
  const [moved, renewed] = await Promise.all([
    put(id, { baseUrl: there, apiKey: 'first' }),
    put(id, { apiKey: 'second' }),
  ])
  expect([moved.status, renewed.status]).toEqual([200, 200])
  expect(Object.values(await open(id))).not.toContain('canary-1')
})
