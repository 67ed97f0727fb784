import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import { findAccessToken } from '../../../../activities/credentials/oauth/token.ts'
import { openDatabase } from '../../../../db/connection.ts'
import { createCredential, updateCredential } from '../../../../db/credentials/credentials.ts'
import { openTeamCredential } from '../../../../db/credentials/open.ts'
import { serviceScope } from '../../../../db/scope.ts'
import { keep } from '../../../support/keep.ts'
import { useLoopback } from '../../../support/servers/loopback.ts'
import { respond, startTokenServer } from '../../../support/servers/tokens.ts'
import { startService } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'

const service = await keep(startService())
const server = await keep(startTokenServer())
const { store, teamId } = service
const { local: http, clientOf } = useLoopback()
const tools = { store, http }
beforeEach(() => server.reset())

const actor = { kind: 'SYSTEM', id: null, name: 'test' } as const
const scope = serviceScope(store, actor, [[teamId, 'ADMIN']])

async function make(data: object = server.data, more: object = {}): Promise<string> {
  const input = { teamId, name: randomUUID(), type: 'OAUTH2' as const, data: { ...data } }
  const { id } = await createCredential(scope, input)
  if (Object.keys(more).length > 0)
    await store.db.updateTable('credentials').set(more).where('id', '=', id).execute()
  return id
}

const inS = (seconds: number) => sql<Date>`now() + ${seconds} * interval '1 second'`
const find = (id: string, refused?: string, with_ = tools) =>
  findAccessToken(with_, { id, teamId }, { refused })
const open = (id: string) => openTeamCredential(store, teamId, id)
const readRow = (id: string) =>
  store.db.selectFrom('credentials').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

/** Looks as another process does: with connections of its own, and so with nothing in common but the database. */
function anotherProcess() {
  const opened = openDatabase(service.database.url, { max: 4, name: 'another' })
  return { tools: { store: { ...store, db: opened.db }, http }, close: opened.close }
}

async function failureOf(finding: Promise<unknown>) {
  return finding.then(
    (found) => {
      throw new Error(`it found ${found}`)
    },
    ({ message, type, retryable, retryAfterMs }) => ({ message, type, retryable, retryAfterMs }),
  )
}

describe('a token', () => {
  test('is used as it is while it lasts, and while nobody knows how long', async () => {
    expect(await find(await make())).toBe('access-1')
    expect(await find(await make(server.data, { expiresAt: inS(120), renewAt: inS(60) }))).toBe('access-1')
    expect(await find(await make(server.data, { expiresAt: inS(120) }))).toBe('access-1')
    expect(server.asked).toEqual([])
  })

  test('is renewed a minute before it ends, and what the server gave is stored before it is used', async () => {
    const id = await make(server.data, { expiresAt: inS(59), renewAt: inS(-1) })
    expect(await find(id)).toBe('access-2')
    const { data, expiresAt, revision } = await open(id)
    expect(data).toMatchObject({
      accessToken: 'access-2',
      refreshToken: 'refresh-2',
      clientSecret: 'client-secret',
    })
    expect(expiresAt!.getTime() - Date.now()).toBeGreaterThan(3_500_000)
    expect(revision).toBe(2)
    expect(server.asked).toEqual([
      {
        form: { grant_type: 'refresh_token', refresh_token: 'refresh-1' },
        authorization: `Basic ${Buffer.from('client:client-secret').toString('base64')}`,
      },
    ])
    expect(await find(id)).toBe('access-2')
    expect(server.asked).toHaveLength(1)
    const { renewer, renewerUntil, keys } = await readRow(id)
    expect([renewer, renewerUntil]).toEqual([null, null])
    expect(keys.sort()).toEqual(Object.keys(data).sort())
  })

  test('is renewed when a server does not take it, but not again at once, and not one that is new by then', async () => {
    const id = await make()
    expect(await find(id, 'access-1')).toBe('access-2')
    // Somebody else still had the old one.
    expect(await find(id, 'access-1')).toBe('access-2')
    expect(await find(id, 'access-2')).toBeNull()
    expect(server.asked).toHaveLength(1)
    await store.db
      .updateTable('credentials')
      .set({ renewedAt: inS(-20) })
      .where('id', '=', id)
      .execute()
    expect(await find(id, 'access-2')).toBe('access-3')
  })

  test('of a server that does not rotate keeps its refresh token, and one that says no end has none', async () => {
    server.state.rotates = false
    server.state.expiresIn = undefined
    const id = await make(server.data, { expiresAt: inS(-1) })
    expect(await find(id)).toBe('access-2')
    const { data, expiresAt } = await open(id)
    expect([data.refreshToken, expiresAt]).toEqual(['refresh-1', null])
    expect(await find(id)).toBe('access-2')
  })

  test.each([
    ['"7200"', '7200', 7_200],
    ['0', 0, null],
    ['-5', -5, null],
    ['"soon"', 'soon', null],
    ['1e99', 1e99, 31_536_000],
    ['null', null, null],
  ])('with an expires_in of %s ends then', async (_, expiresIn, seconds) => {
    server.state.expiresIn = expiresIn
    const id = await make(server.data, { expiresAt: inS(-1) })
    expect(await find(id)).toBe('access-2')
    const { expiresAt } = await open(id)
    if (seconds === null) expect(expiresAt).toBeNull()
    else expect(Math.abs(expiresAt!.getTime() - Date.now() - seconds * 1_000)).toBeLessThan(10_000)
  })

  test('of a few seconds is renewed after half of them', async () => {
    server.state.expiresIn = 20
    const id = await make(server.data, { expiresAt: inS(-1) })
    expect(await find(id)).toBe('access-2')
    expect(await find(id)).toBe('access-2')
    const { expiresAt, renewAt } = await readRow(id)
    expect(Math.abs(expiresAt!.getTime() - renewAt!.getTime() - 10_000)).toBeLessThan(500)
  })

  test('without a tokenUrl or a refresh token is never renewed', async () => {
    const { tokenUrl: _, ...without } = server.data
    const id = await make(without, { expiresAt: inS(-100) })
    expect(await find(id)).toBe('access-1')
    expect(await find(id, 'access-1')).toBeNull()
    const { refreshToken: __, ...lasting } = server.data
    const other = await make(lasting)
    expect(await find(other, 'access-1')).toBeNull()
    expect(server.asked).toEqual([])
  })

  test('is missing before the credential is connected, and got if there is a refresh token', async () => {
    const { accessToken: _, refreshToken: __, ...unconnected } = server.data
    const id = await make(unconnected)
    expect(await failureOf(find(id))).toMatchObject({
      type: 'CredentialBroken',
      retryable: false,
      message: expect.stringMatching(/ is not connected: /),
    })
    expect(await find(await make({ ...unconnected, refreshToken: 'refresh-1' }))).toBe('access-2')
  })

  test('is asked for with the secret in the body, if the credential says so', async () => {
    await find(await make({ ...server.data, authentication: 'body' }, { expiresAt: inS(-1) }))
    expect(server.asked).toEqual([
      {
        form: expect.objectContaining({ client_id: 'client', client_secret: 'client-secret' }),
        authorization: undefined,
      },
    ])
  })

  test('is none of a credential that is gone', async () => {
    expect(await failureOf(find(randomUUID()))).toMatchObject({ type: 'CredentialMissing', retryable: false })
  })
})

describe('many at once', () => {
  test('in two processes renew it once, and all get the new one', async () => {
    const id = await make(server.data, { expiresAt: inS(-1) })
    const other = anotherProcess()
    server.state.hold = () => sleep(300)
    const found = await Promise.all(
      Array.from({ length: 40 }, (_, at) => find(id, undefined, at % 2 ? tools : other.tools)),
    )
    await other.close()
    expect(new Set(found)).toEqual(new Set(['access-2']))
    expect(server.asked).toHaveLength(1)
  })

  test('hold no connection while the token server is slow', async () => {
    const id = await make(server.data, { expiresAt: inS(-1) })
    const opened = openDatabase(service.database.url, { max: 1, name: 'single' })
    let isHeld = false
    server.state.hold = async () => {
      const { rows } = await sql<{ one: number }>`select 1 as one`.execute(opened.db)
      isHeld = rows[0]!.one !== 1
    }
    expect(await find(id, undefined, { store: { ...store, db: opened.db }, http })).toBe('access-2')
    await opened.close()
    expect(isHeld).toBe(false)
  })

  test('share a failure, and nobody asks a server again that has just failed', async () => {
    const id = await make(server.data, { expiresAt: inS(-1) })
    const other = anotherProcess()
    server.state.hold = () => sleep(300)
    server.state.misbehave = (res) => respond(res, 503, {}, { 'retry-after': '60' })
    const failures = await Promise.all(
      Array.from({ length: 10 }, (_, at) => failureOf(find(id, undefined, at % 2 ? tools : other.tools))),
    )
    await other.close()
    for (const failure of failures)
      expect(failure).toMatchObject({ type: 'CredentialUnavailable', retryable: true })
    expect(await failureOf(find(id))).toMatchObject({ type: 'CredentialUnavailable' })
    expect(server.asked).toHaveLength(1)
    expect((await failureOf(find(id))).retryAfterMs).toBeGreaterThan(50_000)
    expect((await readRow(id)).broken).toBeNull()
  })

  test('are not kept from a server by a failure with other data', async () => {
    const id = await make(server.data, { expiresAt: inS(-1) })
    server.state.misbehave = (res) => respond(res, 503, {}, { 'retry-after': '60' })
    expect(await failureOf(find(id))).toMatchObject({ type: 'CredentialUnavailable' })
    server.reset()
    await updateCredential(scope, id, { name: randomUUID() })
    expect(await failureOf(find(id))).toMatchObject({ type: 'CredentialUnavailable' })
    await updateCredential(scope, id, { data: { authentication: 'body' } })
    expect(await find(id)).toBe('access-2')
  })

  test('go on without a holder that has died, once its time is over', async () => {
    const dead = { renewer: randomUUID(), renewerUntil: inS(1) }
    const id = await make(server.data, { expiresAt: inS(-1), ...dead })
    const began = Date.now()
    expect(await find(id)).toBe('access-2')
    expect(Date.now() - began).toBeGreaterThan(800)
  })

  test('are not held up by it while the token still lasts', async () => {
    const id = await make(server.data, { expiresAt: inS(50), renewer: randomUUID(), renewerUntil: inS(300) })
    expect(await find(id)).toBe('access-1')
    expect(server.asked).toEqual([])
  })
})

describe('a token server that fails', () => {
  const faults: [string, (res: Parameters<typeof respond>[0]) => unknown][] = [
    ['429', (res) => respond(res, 429, { error: 'slow_down' }, { 'retry-after': '7' })],
    ['500', (res) => respond(res, 500, 'no')],
    ['garbage', (res) => res.end('<html>hello</html>')],
    ['garbage with an error status', (res) => res.writeHead(400).end('\0\0')],
    ['an empty answer', (res) => res.end()],
    ['JSON without a token', (res) => respond(res, 200, { ok: true })],
    ['a token that no header can carry', (res) => respond(res, 200, { access_token: 'a\r\nx: y' })],
    ['an error of its own', (res) => respond(res, 400, { error: 'constructor' })],
    ['no answer', () => {}],
    ['a redirect', (res) => res.writeHead(302, { location: '/elsewhere' }).end()],
    ['a broken connection', (res) => res.destroy()],
    ['a body without an end', (res) => res.write('x'.repeat(300_000))],
  ]

  test.each(faults)(
    'with %s lets the node try again later, and breaks nothing',
    { tags: 'long' },
    async (_, misbehave) => {
      server.state.misbehave = misbehave
      const id = await make(server.data, { expiresAt: inS(-1) })
      const failure = await failureOf(find(id))
      expect(failure).toMatchObject({ type: 'CredentialUnavailable', retryable: true })
      expect(failure.message).not.toMatch(/refresh-1|access-1|client-secret|hello/)
      expect(await readRow(id)).toMatchObject({ broken: null, testStatus: null, renewer: null })
      // It is not asked again before its time; then all is well.
      await store.db
        .updateTable('credentials')
        .set({ renewerUntil: inS(0) })
        .where('id', '=', id)
        .execute()
      server.state.misbehave = undefined
      expect(await find(id)).toBe('access-2')
    },
  )

  test('does not matter while the token still lasts', async () => {
    server.state.misbehave = (res) => respond(res, 503, {})
    const id = await make(server.data, { expiresAt: inS(50), renewAt: inS(-10) })
    expect(await find(id)).toBe('access-1')
    expect(server.asked).toHaveLength(1)
  })

  test('holds nobody up while the token still lasts, and its answer is taken when it comes', async () => {
    let release = () => {}
    server.state.hold = () => new Promise((resolve) => (release = () => resolve()))
    const id = await make(server.data, { expiresAt: inS(50), renewAt: inS(-10) })
    expect(await find(id)).toBe('access-1')
    release()
    await until(async () => (await open(id)).data.accessToken === 'access-2')
  })

  test('at an address that the egress rules refuse is final, and breaks nothing', async () => {
    const strict = clientOf({ allowLoopback: false, allow: [] })
    const id = await make(server.data, { expiresAt: inS(-1) })
    expect(await failureOf(find(id, undefined, { store, http: strict }))).toMatchObject({
      type: 'CredentialBroken',
      retryable: false,
      message: expect.stringMatching(/not a public address/),
    })
    expect(server.asked).toEqual([])
    expect((await readRow(id)).broken).toBeNull()
  })
})

describe('a refusal for good', () => {
  test.each(['invalid_grant', 'invalid_client', 'unauthorized_client'])(
    '%s breaks the credential, which then asks nobody any more',
    async (error) => {
      server.state.misbehave = (res) => respond(res, 400, { error, error_description: 'refresh-1 is bad' })
      const id = await make(server.data, { expiresAt: inS(-1) })
      const failure = await failureOf(find(id))
      expect(failure).toMatchObject({ type: 'CredentialBroken', retryable: false })
      expect(failure.message).toContain(error)
      expect(failure.message).not.toContain('refresh-1')
      const { broken, testStatus, testMessage } = await readRow(id)
      expect(broken).toMatch(/Connect it again$/)
      expect([testStatus, testMessage]).toEqual(['FAILED', broken])
      expect(await failureOf(find(id))).toMatchObject({ type: 'CredentialBroken' })
      expect(server.asked).toHaveLength(1)
    },
  )

  test('also breaks it if it comes with the status 200, or in a form', async () => {
    for (const type of ['application/json', 'application/x-www-form-urlencoded']) {
      const body = type.endsWith('json') ? '{"error":"invalid_grant"}' : 'error=invalid_grant&x=1'
      server.state.misbehave = (res) => res.writeHead(200, { 'content-type': type }).end(body)
      expect((await failureOf(find(await make(server.data, { expiresAt: inS(-1) })))).type).toBe(
        'CredentialBroken',
      )
    }
  })

  test('of what somebody has meanwhile changed says nothing', async () => {
    const id = await make({ ...server.data, refreshToken: 'refresh-0' }, { expiresAt: inS(-1) })
    server.state.hold = async () => {
      server.state.hold = async () => {}
      const put = { data: { refreshToken: 'refresh-1' } }
      const { status } = await service.call('PUT', `/api/credentials/${id}`, service.admin, put)
      expect(status).toBe(200)
    }
    expect(await find(id)).toBe('access-2')
    expect(server.asked.map(({ form }) => form.refresh_token)).toEqual(['refresh-0', 'refresh-1'])
    expect((await readRow(id)).broken).toBeNull()
  })

  test('after a renewal that nobody heard of again says what may have happened', async () => {
    // The server has given the next token to a process that died before it could store it.
    server.state.number = 2
    const id = await make(server.data, { expiresAt: inS(-1), renewer: randomUUID(), renewerUntil: inS(-1) })
    const { message } = await failureOf(find(id))
    expect(message).toMatch(
      /invalid_grant.*An earlier renewal was interrupted, and may have lost the next token/,
    )
    await failureOf(find(id))
    expect(server.asked).toHaveLength(1)
  })

  test('that is no fault of the keys fails the node for good, and breaks nothing', async () => {
    server.state.misbehave = (res) => respond(res, 400, { error: 'invalid_scope' })
    const id = await make(server.data, { expiresAt: inS(-1) })
    expect(await failureOf(find(id))).toMatchObject({ type: 'CredentialBroken', retryable: false })
    expect((await readRow(id)).broken).toBeNull()
  })
})

test('what a slow process has got is not lost if its claim has ended, and does not replace what is newer', async () => {
  const id = await make(server.data, { expiresAt: inS(-1) })
  server.state.hold = async () => {
    server.state.hold = async () => {}
    await store.db
      .updateTable('credentials')
      .set({ renewer: randomUUID(), renewerUntil: inS(0) })
      .where('id', '=', id)
      .execute()
  }
  expect(await find(id)).toBe('access-2')
  expect((await open(id)).data.refreshToken).toBe('refresh-2')

  const other = await make({ ...server.data, refreshToken: 'refresh-2' }, { expiresAt: inS(-1) })
  server.state.hold = async () => {
    server.state.hold = async () => {}
    const data = { accessToken: 'from a person', refreshToken: 'of a person' }
    await service.call('PUT', `/api/credentials/${other}`, service.admin, { data })
  }
  server.state.misbehave = undefined
  // The answer to the first request is dropped; the person's refresh token is none that the server knows.
  expect((await failureOf(find(other))).message).toContain('invalid_grant')
  expect((await open(other)).data).toMatchObject({
    accessToken: 'from a person',
    refreshToken: 'of a person',
  })
})
