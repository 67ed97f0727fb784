import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { openTeamCredential } from '../../../db/credentials/open.ts'
import { CREDENTIAL_TYPE_NAMES } from '../../../db/credentials/types.ts'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { store, teamId, call, admin } = service
const stranger = await service.otherTeam()
const builder = await service.signUp('BUILDER')
const operator = await service.signUp('OPERATOR')

const create = (name: string, type: string, data: unknown, as = builder.cookie, team = teamId) =>
  call('POST', '/api/credentials', as, { name, type, teamId: team, data })
const read = (id: string) => call('GET', `/api/credentials/${id}`, builder.cookie)
const put = (id: string, patch: object) => call('PUT', `/api/credentials/${id}`, builder.cookie, patch)
const open = async (id: string, team = teamId) => (await openTeamCredential(store, team, id)).data

async function make(name: string, type: string, data: object): Promise<string> {
  const made = await create(name, type, data)
  expect([made.status, made.text]).toEqual([201, expect.anything()])
  return made.body.id
}

const faultsOf = ({ status, body }: Body): string[] => {
  expect(status).toBe(400)
  return body.errors.map(({ path, message }: { path: string; message: string }) => `${path} ${message}`)
}

/** The least data of each type. */
const LEAST: Record<string, object> = {
  OPENAI: { apiKey: 'k' },
  ANTHROPIC: { apiKey: 'k' },
  AZURE_OPENAI: { apiKey: 'k', endpoint: 'https://x.openai.azure.com' },
  GOOGLE_AI: { apiKey: 'k' },
  OPENAI_COMPATIBLE: { baseUrl: 'http://localhost:11434/v1' },
  SLACK: { botToken: 'xoxb-1' },
  TELEGRAM: { botToken: '1:a' },
  DISCORD: { botToken: 'd' },
  DISCORD_WEBHOOK: { webhookUrl: 'https://discord.com/api/webhooks/1/w' },
  MATTERMOST: { accessToken: 'a', baseUrl: 'https://chat.example.com' },
  WHATSAPP: { accessToken: 'a' },
  TWILIO: { accountSid: 'AC1', authToken: 'a' },
  SMTP: { host: 'mail.example.com', port: 587, username: 'u', password: 'p' },
  IMAP: { host: 'mail.example.com', port: '993', username: 'u', password: 'p' },
  HTTP_BASIC: { username: 'u', password: '' },
  HTTP_BEARER: { token: 't' },
  HTTP_HEADER: { name: 'X-Key', value: 'v' },
  HTTP_QUERY: { name: 'key', value: 'v' },
  HTTP_CUSTOM: { headers: ['X-Key: v'] },
  OAUTH2: { clientId: 'c', clientSecret: 's', accessToken: 'a', refreshToken: 'r' },
  GOOGLE_SERVICE_ACCOUNT: { clientEmail: 'a@b.c', privateKey: 'pem', scopes: ['s'] },
  NOTION: { apiKey: 'k' },
  AIRTABLE: { apiKey: 'k' },
  AWS: { accessKeyId: 'a', secretAccessKey: 's', region: 'eu-central-1' },
  DATABASE: { host: 'db', port: 5432, database: 'd', username: 'u', password: 'p' },
  SIGNATURE: { secret: 's' },
  DEMO: {},
}

test('a credential of every type is created from its required keys, and answers exactly five fields', async () => {
  expect(Object.keys(LEAST)).toEqual(CREDENTIAL_TYPE_NAMES)
  for (const [type, data] of Object.entries(LEAST)) {
    const made = await create(`least ${type}`, type, data)
    expect([type, made.status]).toEqual([type, 201])
    expect(made.body).toEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      name: `least ${type}`,
      type,
      teamId,
      createdAt: expect.stringMatching(/\.\d{3}Z$/),
    })
    expect(made.headers.get('location')).toBe(`/api/credentials/${made.body.id}`)
    expect((await open(made.body.id)) as object).toMatchObject({
      ...data,
      ...('port' in data ? { port: Number(data.port) } : {}),
    })
  }
})

test('everything that is wrong is named at once: fields, required keys and those of the wrong form', async () => {
  const wrong = { host: 7, port: 99_999, password: 'p', allowedHosts: ['x'] }
  const refused = await call('POST', '/api/credentials', builder.cookie, {
    name: ' ',
    type: 'DATABASE',
    teamId,
    data: { ...wrong, dialect: 'oracle' },
  })
  expect(faultsOf(refused)).toEqual([
    'name must not be empty',
    'data.host must be a string, not a number',
    'data.port must be a port, not 99999',
    'data.database is required',
    'data.username is required',
    'data.dialect must be postgresql or mysql, not "oracle"',
  ])
  for (const [type, data] of Object.entries(LEAST)) {
    if (Object.keys(data).length === 0) continue
    const missing = faultsOf(await create('nothing', type, {}))
    const required = Object.keys(data).filter(
      (key) => type !== 'OAUTH2' || !['accessToken', 'refreshToken'].includes(key),
    )
    const unless = ' is required unless authorizationUrl and tokenUrl are given'
    const tokens =
      type === 'OAUTH2' ? ['accessToken', 'refreshToken'].map((key) => `data.${key}${unless}`) : []
    const isLogin = (key: string) => type === 'SMTP' && ['username', 'password'].includes(key)
    const say = (key: string) => {
      if (type === 'HTTP_CUSTOM') return `data.${key} is required unless query is given`
      return `data.${key} is required${isLogin(key) ? ' unless authentication is none' : ''}`
    }
    expect([type, missing.toSorted()]).toEqual([type, [...required.map(say), ...tokens].toSorted()])
  }
  for (const data of [undefined, null, [], 'x', 7])
    expect([data, faultsOf(await create('nothing', 'OPENAI', data))]).toEqual([
      data,
      [expect.stringMatching(/^data (is required|must be an object)/)],
    ])
})

test('an address with a password in it is refused, without being repeated', async () => {
  const within = 'https://me:pa55word-canary@api.example.com/v1'
  for (const [type, data] of [
    ['OPENAI', { apiKey: 'k', baseUrl: within }],
    ['AZURE_OPENAI', { apiKey: 'k', endpoint: within }],
    ['HTTP_BEARER', { token: 't', testUrl: 'https://pa55word-canary@api.example.com' }],
  ] as const) {
    const [said, ...more] = faultsOf(await create('within', type, data))
    expect(said).toMatch(/^data\.\w+ must not have a user name or password in it/)
    expect([more, said!.includes('canary')]).toEqual([[], false])
  }
})

test('an unknown type is refused with the list of the known ones, in a body and in a filter', async () => {
  const [said] = faultsOf(await create('x', 'HTTP_BEARRER', { token: 't' }))
  for (const type of CREDENTIAL_TYPE_NAMES) expect(said).toContain(type)
  expect(said).toContain('did you mean "HTTP_BEARER"?')
  const filtered = await call('GET', `/api/credentials?teamId=${teamId}&type=constructor`, builder.cookie)
  expect(faultsOf(filtered)).toEqual([expect.stringContaining('OPENAI_COMPATIBLE')])
})

test('a misspelt key is refused with the key that was meant, and one that means nothing is left out and named', async () => {
  expect(faultsOf(await create('typo', 'OPENAI', { apikey: 'k' }))).toEqual([
    'data.apiKey is required',
    'data.apiKey is not what "apikey" sets; did you mean "apiKey"?',
  ])
  const hosts = await create('typo', 'HTTP_BEARER', { token: 't', allowedHost: ['a.example.com'] })
  expect(faultsOf(hosts)).toEqual([expect.stringContaining('did you mean "allowedHosts"?')])
  const made = await call('POST', '/api/credentials', builder.cookie, {
    name: 'strange',
    type: 'HTTP_BEARER',
    teamId,
    data: { token: 't', colour: 'red' },
  })
  expect([made.status, made.headers.get('x-unknown-fields')]).toEqual([201, '["data.colour"]'])
  expect(await open(made.body.id)).toEqual({ token: 't' })
})

test('OAUTH2 needs its tokens only if it cannot be connected', async () => {
  const client = { clientId: 'c', clientSecret: 's' }
  const urls = { authorizationUrl: 'https://id.example.com/a', tokenUrl: 'https://id.example.com/t' }
  expect((await create('oauth', 'OAUTH2', { ...client, ...urls })).status).toBe(201)
  const half = await create('oauth half', 'OAUTH2', { ...client, tokenUrl: urls.tokenUrl })
  expect(faultsOf(half)).toHaveLength(2)
})

test('no response, list, audit entry or column has the data, whatever happens to a credential', async () => {
  const secret = `canary-${randomUUID()}`
  const id = await make('canary', 'HTTP_BASIC', { username: 'u', password: secret })
  const seen = [
    (await read(id)).text,
    (await call('GET', `/api/credentials?teamId=${teamId}`, builder.cookie)).text,
    (await put(id, { data: { password: `${secret}-2` } })).text,
    (await put(id, { data: { password: `${secret}-2`, testUrl: 'no url' } })).text,
    (await create('canary', 'HTTP_BASIC', { username: 'u', password: secret })).text,
    (await create('canary 2', 'SMTP', { host: 'h', port: secret, password: 7, tls: 'never' })).text,
    (await call('GET', `/api/audit/team/${teamId}`, admin)).text,
    (await call('GET', `/api/credentials/${id}/usage`, builder.cookie)).text,
  ]
  await call('DELETE', `/api/credentials/${id}`, builder.cookie)
  for (const table of ['audit_entries', 'credentials', 'version_credentials']) {
    const { rows } = await sql<{ row: string }>`select t::text as row from ${sql.table(table)} t`.execute(
      store.db,
    )
    seen.push(...rows.map(({ row }) => row))
  }
  const forms = ['utf8', 'base64', 'hex'] as const
  for (const text of seen)
    for (const form of forms) expect(text).not.toContain(Buffer.from(secret).toString(form).slice(0, 40))
  const { rows } = await sql<{ details: unknown }>`select details from audit_entries
    where action like 'CREDENTIAL%' and resource_id = ${id} order by seq`.execute(store.db)
  expect(rows.map(({ details }) => details)).toEqual([
    { name: 'canary', type: 'HTTP_BASIC' },
    { name: 'canary', type: 'HTTP_BASIC', changed: ['data.password'] },
    { name: 'canary', type: 'HTTP_BASIC' },
  ])
})

test('a change merges the data key by key, null removes, and the whole must be valid', async () => {
  const id = await make('merged', 'HTTP_HEADER', {
    name: 'X-Key',
    value: 'one',
    testUrl: 'https://a.example',
  })
  await store.db
    .updateTable('credentials')
    .set({ testStatus: 'SUCCESS', testMessage: 'fine', lastTestedAt: new Date(), broken: 'ended' })
    .where('id', '=', id)
    .execute()
  const renamed = await put(id, { name: 'merged again' })
  expect(renamed.body).toMatchObject({ name: 'merged again', testStatus: 'SUCCESS', broken: 'ended' })
  const changed = await put(id, { data: { value: 'two', testUrl: null, allowedHosts: ['API.example.com'] } })
  expect(changed.body).toEqual({
    id,
    name: 'merged again',
    type: 'HTTP_HEADER',
    teamId,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    lastTestedAt: null,
    testStatus: null,
    testMessage: null,
    keys: ['name', 'value', 'allowedHosts'],
    allowedHosts: ['api.example.com'],
    expiresAt: null,
    broken: null,
  })
  expect(await open(id)).toEqual({ name: 'X-Key', value: 'two', allowedHosts: ['api.example.com'] })
  expect(faultsOf(await put(id, { data: { name: null, value: 3 } }))).toEqual([
    'data.name is required',
    'data.value must be a string, not a number',
  ])
  expect(faultsOf(await put(id, { type: 'OPENAI' }))).toEqual([expect.stringContaining('HTTP_HEADER')])
  const anywhere = { value: 'two', allowedHosts: null }
  expect((await put(id, { type: 'HTTP_HEADER', data: anywhere })).body.allowedHosts).toBeNull()
  const before = (await read(id)).body
  expect((await put(id, { data: { value: 'two' } })).body).toEqual(before)
  expect(await open(id)).toEqual({ name: 'X-Key', value: 'two' })
})

test('names are unique within a team, also in a race, and free in another', async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => create('raced', 'DEMO', {})))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409, 409, 409, 409])
  const refused = answers.find(({ status }) => status === 409)!
  expect(refused.body.message).toBe('The team already has a credential named "raced"')
  expect((await create('raced', 'DEMO', {}, stranger.cookie, stranger.teamId)).status).toBe(201)
  const other = await make('not raced', 'DEMO', {})
  expect((await put(other, { name: 'raced' })).status).toBe(409)
})

test('parallel changes of different keys are all kept', async () => {
  const id = await make('parallel', 'AWS', LEAST.AWS!)
  const patches = [{ region: 'us-east-1' }, { service: 's3' }, { sessionToken: 't' }, { accessKeyId: 'b' }]
  const answers = await Promise.all(patches.map((data) => put(id, { data })))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(await open(id)).toEqual(Object.assign({ ...LEAST.AWS }, ...patches))
})

test('a team lists its credentials, the newest first, all or those of a type', async () => {
  const other = await service.otherTeam()
  const ids: string[] = []
  for (const [name, type] of [
    ['a', 'DEMO'],
    ['b', 'SLACK'],
    ['c', 'DEMO'],
  ] as const)
    ids.unshift((await create(name, type, LEAST[type], other.cookie, other.teamId)).body.id)
  const list = async (query = '') =>
    (await call('GET', `/api/credentials?teamId=${other.teamId}${query}`, other.cookie)).body
  expect((await list()).map(({ id }: { id: string }) => id)).toEqual(ids)
  expect(await list('&type=SLACK')).toEqual([
    {
      id: ids[1],
      name: 'b',
      type: 'SLACK',
      teamId: other.teamId,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      lastTestedAt: null,
      testStatus: null,
    },
  ])
  const team = await call('GET', `/api/teams/${other.teamId}`, other.cookie)
  expect(team.body.credentialCount).toBe(3)
  expect((await call('DELETE', `/api/teams/${other.teamId}`, other.cookie)).status).toBe(200)
  expect(
    await store.db.selectFrom('credentials').select('id').where('teamId', '=', other.teamId).execute(),
  ).toEqual([])
})

test('what belongs to another team is 403, what does not exist 404, and an OPERATOR may nothing', async () => {
  const id = await make('guarded', 'DEMO', {})
  const ways: [string, string, object?][] = [
    ['GET', `/api/credentials/${id}`],
    ['PUT', `/api/credentials/${id}`, { name: 'mine' }],
    ['DELETE', `/api/credentials/${id}`],
    ['GET', `/api/credentials/${id}/usage`],
    ['GET', `/api/credentials?teamId=${teamId}`],
    ['POST', '/api/credentials', { name: 'x', type: 'DEMO', teamId, data: {} }],
  ]
  for (const [method, path, json] of ways) {
    for (const as of [stranger.cookie, operator.cookie])
      expect([method, path, (await call(method, path, as, json)).status]).toEqual([method, path, 403])
    const gone = path.replace(id, randomUUID())
    if (gone !== path)
      expect([gone, (await call(method, gone, builder.cookie, json)).status]).toEqual([gone, 404])
  }
  expect((await call('GET', '/api/credentials/x', builder.cookie)).status).toBe(400)
  expect((await call('GET', `/api/credentials?teamId=${randomUUID()}`, builder.cookie)).status).toBe(404)
  expect((await call('GET', '/api/credentials', builder.cookie)).status).toBe(400)
})

test('a sealed row opens nowhere else: not in another row, team or type, nor with any bit changed', async () => {
  const mine = await make('mine', 'HTTP_BEARER', { token: 'mine' })
  const own = (await create('theirs', 'HTTP_BEARER', { token: 'theirs' }, stranger.cookie, stranger.teamId))
    .body.id
  const rowOf = (id: string) =>
    store.db
      .selectFrom('credentials')
      .select(['sealed', 'wrapped', 'type'])
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
  const set = (id: string, fields: object) =>
    store.db.updateTable('credentials').set(fields).where('id', '=', id).execute()
  const [row, theirs] = [await rowOf(mine), await rowOf(own)]
  const flip = (bytes: Buffer, at: number) => {
    const copy = Buffer.from(bytes)
    copy[at]! ^= 1
    return copy
  }
  const swaps = [
    { sealed: theirs.sealed, wrapped: theirs.wrapped },
    { sealed: theirs.sealed },
    { wrapped: theirs.wrapped },
    { type: 'SIGNATURE' },
    ...Array.from(row.sealed.keys(), (at) => ({ sealed: flip(row.sealed, at) })),
    ...Array.from(row.wrapped.keys(), (at) => ({ wrapped: flip(row.wrapped, at) })),
  ]
  for (const fields of swaps) {
    await set(mine, fields)
    await expect(open(mine)).rejects.toThrow()
    await set(mine, row)
  }
  expect(await open(mine)).toEqual({ token: 'mine' })
  await expect(open(mine, stranger.teamId)).rejects.toThrow('no longer exists')
  // What cannot be opened cannot be merged with either: a whole new credential is needed.
  await set(mine, { wrapped: theirs.wrapped })
  expect((await put(mine, { data: { token: 'new' } })).status).toBe(500)
  await set(mine, row)
})

test('what attackers send is stored as it is or refused by name, and never changes another object', async () => {
  const big = 'x'.repeat(16_384)
  const id = await make('big', 'HTTP_BEARER', { token: big })
  expect(await open(id)).toEqual({ token: big })
  const refused: [object, string][] = [
    [{ token: `${big}x` }, 'data.token must have at most 16384 characters'],
    [{ token: 'a\0b' }, 'data.token must not contain NUL or broken Unicode'],
    [{ token: '\ud800' }, 'data.token must not contain NUL or broken Unicode'],
    [{ token: { $ne: null } }, 'data.token must be a string'],
    [{ token: ' ' }, 'data.token must not be empty'],
  ]
  for (const [data, said] of refused)
    expect(faultsOf(await create('bad', 'HTTP_BEARER', data))[0]).toContain(said)
  const send = async (key: string) => {
    const body = `{"name":"${key}","type":"HTTP_BEARER","teamId":"${teamId}","data":{"token":"t","${key}":{"allowedHosts":["x"]}}}`
    const headers = { 'content-type': 'application/json' }
    return service.request('/api/credentials', { method: 'POST', as: builder.cookie, body, headers })
  }
  expect((await send('__proto__')).status).toBe(400)
  const made = await send('constructor')
  expect([made.status, made.headers.get('x-unknown-fields')]).toEqual([201, '["data.constructor"]'])
  expect(await open(((await made.json()) as Body).id)).toEqual({ token: 't' })
  expect(({} as { allowedHosts?: unknown }).allowedHosts).toBeUndefined()
  expect(faultsOf(await create('a\0', 'DEMO', {}))[0]).toContain('name must not contain NUL')
})

test('a team has at most 1,000 credentials', async () => {
  const other = await service.otherTeam()
  const id = (await create('first', 'DEMO', {}, other.cookie, other.teamId)).body.id
  await sql`insert into credentials (id, team_id, name, type, sealed, wrapped, key_id, keys)
    select gen_random_uuid(), team_id, 'copy ' || n, type, sealed, wrapped, key_id, keys
    from credentials, generate_series(1, 998) n where id = ${id}`.execute(store.db)
  const last = await Promise.all(
    ['a', 'b', 'c'].map((name) => create(name, 'DEMO', {}, other.cookie, other.teamId)),
  )
  expect(last.map(({ status }) => status).toSorted()).toEqual([201, 409, 409])
  expect(last.find(({ status }) => status === 409)!.body.message).toContain('1000 credentials already')
})

/** The keys that are required only if others are not given. */
const UNLESS: Record<string, string[]> = {
  SMTP: ['username', 'password'],
  OAUTH2: ['accessToken', 'refreshToken'],
  HTTP_CUSTOM: ['headers'],
}

test('the types are listed with what their keys are', async () => {
  const { body } = await call('GET', '/api/credential-types', operator.cookie)
  expect(body.map(({ type }: { type: string }) => type)).toEqual(CREDENTIAL_TYPE_NAMES)
  for (const { type, keys } of body as { type: string; keys: { name: string; required: boolean }[] }[])
    expect([type, keys.filter(({ required }) => required).map(({ name }) => name)]).toEqual([
      type,
      Object.keys(LEAST[type]!).filter((key) => !UNLESS[type]?.includes(key)),
    ])
  const find = (type: string) => body.find((one: Body) => one.type === type)
  const unlessNone = { required: false, requiredUnless: ['authentication'], requiredUnlessIs: 'none' }
  expect(find('SMTP').keys).toMatchObject([
    ...[{ name: 'host' }, { name: 'port' }, { name: 'username', ...unlessNone }],
    ...[{ name: 'password', ...unlessNone, secret: true }, { name: 'tls' }, { name: 'from' }],
    { name: 'authentication', kind: 'choice', options: ['password', 'none'], default: 'password' },
  ])
  expect(find('DATABASE').keys).toMatchObject([
    { name: 'host', kind: 'text', required: true, secret: false, directs: true },
    { name: 'port', kind: 'number', required: true, secret: false, directs: true },
    { name: 'database', kind: 'text' },
    { name: 'username', kind: 'text' },
    { name: 'password', kind: 'text', required: true, secret: true, directs: false },
    {
      name: 'dialect',
      kind: 'choice',
      required: false,
      options: ['postgresql', 'mysql'],
      default: 'postgresql',
    },
    { name: 'tls', kind: 'choice' },
    { name: 'ca', kind: 'lines', required: false },
  ])
  expect(find('OAUTH2').keys[2]).toEqual({
    name: 'accessToken',
    kind: 'text',
    required: false,
    requiredUnless: ['authorizationUrl', 'tokenUrl'],
    secret: true,
    directs: false,
  })
  expect(find('SLACK')).toMatchObject({ uses: ['HTTP', 'CHAT'], hosts: ['slack.com', '*.slack.com'] })
  expect(find('DEMO').keys).toEqual([
    { name: 'demo', kind: 'boolean', required: false, secret: false, directs: false },
  ])
})

test('an SMTP server may need no sign-in, but only where the credential says so', async () => {
  const server = { host: '127.0.0.1', port: 25, from: 'ada@example.com' }
  const made = await create('no sign-in', 'SMTP', { ...server, authentication: 'none' })
  expect(made.status).toBe(201)
  const path = `/api/credentials/${made.body.id}`
  const back = await call('PUT', path, builder.cookie, { data: { authentication: 'password' } })
  expect(faultsOf(back)).toEqual([
    'data.username is required unless authentication is none',
    'data.password is required unless authentication is none',
  ])
  expect(faultsOf(await create('half', 'SMTP', { ...server, authentication: 'maybe' }))).toContain(
    'data.authentication must be password or none, not "maybe"',
  )
})
