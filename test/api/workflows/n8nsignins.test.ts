import { beforeEach, describe, expect, test } from 'vitest'
import type { ImportReport } from '../../../workflows/n8n/report.ts'
import { nodeOf } from '../../support/client.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { startWorld } from '../../support/servers/world.ts'

type Seen = { url: string; headers: Record<string, string> }
const seen: Seen[] = []

const host = await keep(shareRunning())
const world = await keep(
  startWorld({
    '/echo': ({ request, response }) => {
      seen.push({ url: request.url!, headers: request.headers as never })
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
    },
  }),
)
const url = `${world.url}/echo`
const KEY = 'canary/Sesame+77=x'

beforeEach(() => {
  seen.length = 0
})

let made = 0
async function make(type: string, data: object): Promise<string> {
  const input = { name: `${type} ${made++}`, type, teamId: host.teamId, data }
  return (await host.ask<{ id: string }>('POST', '/api/credentials', input)).id
}

type Call = { name?: string; parameters: object; credentials?: object; typeVersion?: number }

/** An n8n workflow of requests in a row. */
function documentOf(...calls: Call[]) {
  const nodes = calls.map(({ name = 'Call', typeVersion = 4.2, parameters, ...more }, at) => ({
    ...{ name, typeVersion, type: 'n8n-nodes-base.httpRequest', position: [at, 0] },
    ...{ parameters: { url, ...parameters }, ...more },
  }))
  const names = ['Start', ...nodes.map(({ name }) => name)]
  const start = { name: 'Start', type: 'n8n-nodes-base.manualTrigger', typeVersion: 1, position: [0, 0] }
  const to = (node: string) => ({ main: [[{ node, type: 'main', index: 0 }]] })
  return {
    nodes: [{ ...start, parameters: {} }, ...nodes],
    connections: Object.fromEntries(names.slice(1).map((name, at) => [names[at]!, to(name)])),
  }
}

const generic = (genericAuthType: string, more: object = {}) => ({
  ...{ authentication: 'genericCredentialType', genericAuthType, ...more },
})
const vendor = (nodeCredentialType: string, more: object = {}) => ({
  ...{ authentication: 'predefinedCredentialType', nodeCredentialType, ...more },
})

type Node = { id: string; type: string; name: string; config: Record<string, unknown> }
type Imported = { id: string; nodes: Node[]; edges: object[]; report: ImportReport }

const send = (workflow: object, credentials: Record<string, string> = {}) =>
  host.request('/api/workflows/import', {
    ...{ method: 'POST', as: host.admin },
    json: { teamId: host.teamId, name: `import ${made++}`, workflow, credentials },
  })

async function bring(workflow: object, credentials: Record<string, string> = {}): Promise<Imported> {
  const response = await send(workflow, credentials)
  expect(response.status).toBe(201)
  const { id, report } = (await response.json()) as Imported
  return { ...(await host.ask<Imported>('GET', `/api/workflows/${id}`)), report }
}

const callOf = ({ nodes }: Imported) => nodes.find(({ name }) => name === 'Call')!
const execute = async (id: string) => host.ended(await host.execute(id))

describe('a request of n8n is signed in with the credential that the import names', () => {
  const basic = `Basic ${Buffer.from(`me:${KEY}`).toString('base64')}`
  const baseUrl = world.url
  test.each<[string, object, [string, object], object]>([
    [
      'httpHeaderAuth',
      generic('httpHeaderAuth'),
      ['HTTP_HEADER', { name: 'X-Odd', value: KEY }],
      { 'x-odd': KEY },
    ],
    [
      'httpBasicAuth',
      generic('httpBasicAuth'),
      ['HTTP_BASIC', { username: 'me', password: KEY }],
      { authorization: basic },
    ],
    [
      'httpBearerAuth',
      generic('httpBearerAuth'),
      ['HTTP_BEARER', { token: KEY }],
      { authorization: `Bearer ${KEY}` },
    ],
    [
      'openAiApi',
      vendor('openAiApi'),
      ['OPENAI', { apiKey: KEY, baseUrl }],
      { authorization: `Bearer ${KEY}` },
    ],
    [
      'notionApi',
      vendor('notionApi'),
      ['NOTION', { apiKey: KEY, baseUrl }],
      { authorization: `Bearer ${KEY}`, 'notion-version': '2022-02-22' },
    ],
    ['qdrantApi', vendor('qdrantApi'), ['HTTP_HEADER', { name: 'api-key', value: KEY }], { 'api-key': KEY }],
    [
      'googleSheetsOAuth2Api',
      vendor('googleSheetsOAuth2Api'),
      ['HTTP_BEARER', { token: KEY }],
      { authorization: `Bearer ${KEY}` },
    ],
    [
      'unheardOfApi',
      vendor('unheardOfApi'),
      ['HTTP_BEARER', { token: KEY }],
      { authorization: `Bearer ${KEY}` },
    ],
    [
      'httpCustomAuth',
      generic('httpCustomAuth'),
      ['HTTP_CUSTOM', { headers: [`X-Odd: ${KEY}`, 'X-App: an-app'] }],
      { 'x-odd': KEY, 'x-app': 'an-app' },
    ],
    [
      'supabaseApi',
      vendor('supabaseApi'),
      ['HTTP_CUSTOM', { headers: [`apikey: ${KEY}`, `Authorization: Bearer ${KEY}`] }],
      { apikey: KEY, authorization: `Bearer ${KEY}` },
    ],
    [
      'copperApi',
      vendor('copperApi'),
      ['HTTP_CUSTOM', { headers: [`X-PW-AccessToken: ${KEY}`, 'X-PW-UserEmail: ada@example.com'] }],
      { 'x-pw-accesstoken': KEY, 'x-pw-useremail': 'ada@example.com', 'x-pw-application': 'developer_api' },
    ],
    // As some published collections have it.
    [
      'httpHeaderAuth',
      {
        authentication: '={{ $credentials.predefinedCredentialType }}',
        nodeCredentialType: 'YOUR_CREDENTIAL_HERE',
      },
      ['HTTP_HEADER', { name: 'X-Odd', value: KEY }],
      { 'x-odd': KEY },
    ],
  ])('%s', async (type, parameters, [ours, data], headers) => {
    const document = documentOf({ parameters, credentials: { [type]: { id: 'abc', name: 'Theirs' } } })
    const credentialId = await make(ours, data)
    const imported = await bring(document, { abc: credentialId })
    expect(imported.report.problems).toEqual([])
    expect(imported.report.credentials).toMatchObject([
      { key: 'abc', id: 'abc', name: 'Theirs', type, nodes: ['Call'], credentialId },
    ])
    expect((await execute(imported.id)).status).toBe('SUCCESS')
    expect(seen).toMatchObject([{ headers }])
  })

  test('by its name or its type too, in nodes of old versions, whose request has a key in its query', async () => {
    const document = documentOf(
      {
        parameters: { authentication: 'queryAuth' },
        credentials: { httpQueryAuth: 'Old name' },
        typeVersion: 1,
      },
      { name: 'Next', parameters: generic('httpHeaderAuth') },
    )
    const { id, report } = await bring(document, {
      'Old name': await make('HTTP_QUERY', { name: 'key', value: 'of-the-query' }),
      httpHeaderAuth: await make('HTTP_HEADER', { name: 'X-Odd', value: KEY }),
    })
    expect(report.credentials.map(({ key, id, name }) => [key, id, name])).toEqual([
      ['Old name', null, 'Old name'],
      ['httpHeaderAuth', null, null],
    ])
    expect((await execute(id)).status).toBe('SUCCESS')
    expect(seen).toMatchObject([{ url: '/echo?key=of-the-query' }, { headers: { 'x-odd': KEY } }])
  })
})

test('without one nothing is sent: the node fails and says what it needs, until the editor sets it', async () => {
  const theirs = { httpHeaderAuth: { id: 'abc', name: 'The shop' }, httpBasicAuth: { id: 'other' } }
  const imported = await bring(
    documentOf(
      { parameters: generic('httpHeaderAuth'), credentials: theirs },
      { name: 'Again', parameters: generic('httpHeaderAuth'), credentials: theirs },
      // What the author has chosen before does not count.
      { name: 'Free', parameters: {}, credentials: theirs },
    ),
  )
  const { id, report } = imported
  expect(report.totals).toMatchObject({ nodes: 4, works: 2, noted: 2, stopped: 0 })
  expect(report.credentials).toEqual([
    {
      ...{ key: 'abc', id: 'abc', name: 'The shop', type: 'httpHeaderAuth', credentialId: null },
      ...{ as: 'HTTP_HEADER', accepts: ['HTTP_BASIC', 'HTTP_BEARER', 'HTTP_HEADER'], data: {} },
      ...{ enter: 'name and value of the header: as in n8n', nodes: ['Call', 'Again'] },
    },
  ])
  expect(report.problems.map(({ node, kind, message }) => [node, kind, message])).toEqual([
    ['Call', 'credential', expect.stringMatching(/HTTP_HEADER for "Call".*"The shop".*\{"abc": its id\}/)],
    ['Again', 'credential', expect.stringContaining('HTTP_HEADER for "Again"')],
  ])
  const stored = await host.ask<{ report: ImportReport }>('GET', `/api/workflows/${id}/import-report`)
  expect(stored).toEqual(report)
  const failed = await execute(id)
  expect(failed.status).toBe('FAILED')
  expect(nodeOf(failed, callOf(imported).id).errorMessage).toBe(
    'Nothing was sent, because no credential is chosen. It needs "The shop" (httpHeaderAuth) of n8n: ' +
      'choose one of the type HTTP_HEADER',
  )
  expect(seen).toEqual([])
  const credentialId = await make('HTTP_HEADER', { name: 'X-Odd', value: KEY })
  const nodes = imported.nodes.map((node) => ({
    ...node,
    config: node.config.needsCredential ? { ...node.config, credentialId } : node.config,
  }))
  await host.ask('PUT', `/api/workflows/${id}`, { nodes, edges: imported.edges })
  expect((await execute(id)).status).toBe('SUCCESS')
  expect(seen.map(({ headers }) => headers['x-odd'])).toEqual([KEY, KEY, undefined])
})

test('400 names every credential that is not of the team or signs in otherwise', async () => {
  const document = documentOf(
    { parameters: generic('httpHeaderAuth'), credentials: { httpHeaderAuth: { id: 'a', name: 'A' } } },
    { name: 'Next', parameters: vendor('githubApi'), credentials: { githubApi: { id: 'b', name: 'B.c' } } },
    {
      name: 'Last',
      parameters: generic('httpBasicAuth'),
      credentials: { httpBasicAuth: { id: 'c', name: 'C' } },
    },
  )
  const mail = await make('SMTP', { host: 'mail.test', port: 25, username: 'u', password: 'p' })
  const query = await make('HTTP_QUERY', { name: 'key', value: KEY })
  const response = await send(document, { a: mail, 'B.c': query, c: crypto.randomUUID() })
  expect(response.status).toBe(400)
  const { errors } = (await response.json()) as { errors: { path: string; message: string }[] }
  expect(errors.map(({ path, message }) => [path, message])).toEqual([
    ['credentials.a', expect.stringMatching(/HTTP_HEADER for "A" \(httpHeaderAuth\).*is of the type SMTP$/)],
    ['credentials.B.c', expect.stringMatching(/HTTP_BEARER.*HTTP_HEADER.*is of the type HTTP_QUERY$/)],
    ['credentials.c', 'must be a credential of this team'],
  ])
})

test.each([
  ['httpDigestAuth', generic('httpDigestAuth'), /Digest/],
  ['oAuth1Api', { authentication: 'oAuth1' }, /OAuth 1/],
  ['metabaseApi', vendor('metabaseApi'), /first signs in elsewhere/],
  ['httpSslAuth', { provideSslCertificates: true }, /certificate of the client/],
])('%s cannot be done: the node stops by name, whatever is named', async (type, parameters, why) => {
  const document = documentOf({ parameters, credentials: { [type]: { id: 'abc', name: 'Theirs' } } })
  const imported = await bring(document, { abc: await make('HTTP_BEARER', { token: KEY }) })
  expect(callOf(imported).type).toBe('STOP_AND_ERROR')
  expect(imported.report.problems).toMatchObject([
    { node: 'Call', kind: 'node', message: expect.stringMatching(why) },
  ])
  expect((await execute(imported.id)).status).toBe('FAILED')
  expect(seen).toEqual([])
})

test('a secret that is written into the request does not take the place of the credential that it needs', async () => {
  const written = { sendHeaders: true, headerParameters: { parameters: [{ name: 'X-Api-Key', value: KEY }] } }
  const imported = await bring(documentOf({ parameters: generic('httpHeaderAuth', written) }))
  expect(callOf(imported).config.credentialId).toBeUndefined()
  expect((await execute(imported.id)).status).toBe('FAILED')
  expect(seen).toEqual([])
})

test('what does not fit the credential is left out and reported, and never answers 400', async () => {
  const written = {
    sendHeaders: true,
    headerParameters: { parameters: [{ name: 'Authorization', value: 'old' }] },
  }
  const token = await make('HTTP_BEARER', { token: KEY })
  const both = await bring(documentOf({ parameters: generic('httpBearerAuth', written) }), {
    httpBearerAuth: token,
  })
  expect(both.report.problems).toMatchObject([
    { node: 'Call', kind: 'parameter', message: expect.stringContaining('set by the credential') },
  ])
  expect((await execute(both.id)).status).toBe('SUCCESS')
  expect(seen).toMatchObject([{ headers: { authorization: `Bearer ${KEY}` } }])
  const anywhere = generic('httpBearerAuth', { url: '={{ $json.url }}' })
  const open = await bring(documentOf({ parameters: anywhere }), { httpBearerAuth: token })
  expect(callOf(open).config).toMatchObject({ needsCredential: expect.stringContaining('httpBearerAuth') })
  expect(callOf(open).config.credentialId).toBeUndefined()
  expect(open.report.problems).toMatchObject([
    { node: 'Call', kind: 'credential', message: expect.stringContaining('must have its host written') },
  ])
})
