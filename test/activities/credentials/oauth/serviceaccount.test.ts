import { randomUUID } from 'node:crypto'
import { exportPKCS8, generateKeyPair, jwtVerify } from 'jose'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'
import { authorizeWith } from '../../../../activities/credentials/authorize.ts'
import { createCredentials } from '../../../../activities/credentials/credentials.ts'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { createCredential } from '../../../../db/credentials/credentials.ts'
import { serviceScope } from '../../../../db/scope.ts'
import { keep } from '../../../support/keep.ts'
import { expectKind, useLoopback } from '../../../support/servers/loopback.ts'
import { type Asked, respond, startTokenServer } from '../../../support/servers/tokens.ts'
import { startService } from '../../../support/service.ts'

const outside = createOutsides({ allowLoopback: true, allow: [] })
const service = await keep(startService({ rateLimits: false, outside }))
const server = await keep(startTokenServer())
const { store, teamId } = service
const { local: http } = useLoopback()
const pair = await generateKeyPair('RS256', { extractable: true })
const privateKey = await exportPKCS8(pair.privateKey)
const clientEmail = 'robot@project.iam.gserviceaccount.com'
const scopes = ['https://www.googleapis.com/auth/drive', 'https://www.googleapis.com/auth/calendar']
const tokenUrl = `${server.url}/token`

const actor = { kind: 'SYSTEM', id: null, name: 'test' } as const
const scope = serviceScope(store, actor, [[teamId, 'ADMIN']])

/** What the server has read in the assertions that it has taken. */
const claims: Record<string, unknown>[] = []

beforeEach(() => {
  server.reset()
  claims.length = 0
  server.state.misbehave = async (res, { form, authorization }: Asked) => {
    try {
      expect([form.grant_type, authorization]).toEqual([
        'urn:ietf:params:oauth:grant-type:jwt-bearer',
        undefined,
      ])
      const { payload } = await jwtVerify(form.assertion!, pair.publicKey, {
        algorithms: ['RS256'],
        issuer: clientEmail,
        audience: tokenUrl,
        maxTokenAge: '5 minutes',
      })
      claims.push(payload)
      const accessToken = `ya29-${claims.length}`
      server.state.takes = new Set([accessToken])
      respond(res, 200, { access_token: accessToken, token_type: 'Bearer', expires_in: 3_599 })
    } catch {
      respond(res, 400, { error: 'invalid_grant' })
    }
  }
})

const least = { clientEmail, privateKey, scopes, tokenUrl, allowedHosts: ['127.0.0.1'] }

async function make(data: object = {}): Promise<string> {
  const input = { teamId, name: randomUUID(), type: 'GOOGLE_SERVICE_ACCOUNT' as const }
  return (await createCredential(scope, { ...input, data: { ...least, ...data } })).id
}

/** Asks the API with the credential as a node does. */
async function ask(id: string, url = `${server.url}/api`) {
  const credentials = createCredentials(store, http, { teamId, workflowId: crypto.randomUUID() })
  const opened = await credentials.open(id, 'HTTP')
  const { status } = await http.request({
    method: 'POST',
    url,
    ...(await authorizeWith(opened, credentials)),
  })
  return { status, secrets: credentials.secrets() }
}

const testIt = async (id: string) =>
  (await service.call('POST', `/api/credentials/${id}/test?teamId=${teamId}`, service.admin)).body

test('a token is got with what the account has signed, and kept, sealed, until a minute before its end', async () => {
  const id = await make()
  const { status, secrets } = await ask(id)
  expect([status, secrets]).toEqual([200, expect.arrayContaining(['ya29-1', privateKey])])
  expect(claims).toEqual([
    {
      ...{ iss: clientEmail, sub: clientEmail, aud: tokenUrl, scope: scopes.join(' ') },
      ...{ iat: expect.any(Number), exp: (claims[0]!.iat as number) + 3_600 },
    },
  ])
  expect((await ask(id)).status).toBe(200)
  expect(claims).toHaveLength(1)
  const { rows } = await sql<{
    row: string
  }>`select credentials::text as row from credentials where id = ${id}`.execute(store.db)
  expect(rows[0]!.row).not.toMatch(/ya29|PRIVATE/)
  await sql`update credentials set renew_at = now() where id = ${id}`.execute(store.db)
  expect((await ask(id)).secrets).toContain('ya29-2')
})

test('a token that is not taken is replaced once, and the request sent once more', async () => {
  const id = await make()
  await ask(id)
  server.state.takes = new Set()
  server.calls.length = 0
  await sql`update credentials set renewed_at = now() - interval '1 minute' where id = ${id}`.execute(
    store.db,
  )
  expect((await ask(id)).status).toBe(200)
  expect(server.calls.map(({ method, status }) => `${method} ${status}`)).toEqual(['POST 401', 'POST 200'])
})

test('a token that was got for somebody else, or with other scopes, is not used', async () => {
  const id = await make()
  await ask(id)
  const data = { subject: 'boss@example.com', scopes: ['https://www.googleapis.com/auth/drive'] }
  expect((await service.call('PUT', `/api/credentials/${id}`, service.admin, { data })).status).toBe(200)
  expect((await ask(id)).secrets).toContain('ya29-2')
  expect(claims[1]).toMatchObject({ sub: 'boss@example.com', scope: 'https://www.googleapis.com/auth/drive' })
})

test('it goes only to the hosts of Google, unless it says otherwise', async () => {
  const { allowedHosts: _, ...data } = least
  const input = { teamId, name: randomUUID(), type: 'GOOGLE_SERVICE_ACCOUNT' as const, data }
  const { id } = await createCredential(scope, input)
  await expectKind(ask(id), 'refused-host')
  expect(server.calls).toEqual([])
})

test('a key as it stands in the file of Google, with \\n, is read', async () => {
  expect((await ask(await make({ privateKey: privateKey.replaceAll('\n', '\\n') }))).status).toBe(200)
})

test.each([
  ['no PEM', 'not a key'],
  [
    'a key that the server does not know',
    await exportPKCS8((await generateKeyPair('RS256', { extractable: true })).privateKey),
  ],
  [
    'a key of another kind',
    await exportPKCS8((await generateKeyPair('ES256', { extractable: true })).privateKey),
  ],
])('%s breaks the credential, until it is changed', async (_, wrong) => {
  const id = await make({ privateKey: wrong })
  await expect(ask(id)).rejects.toMatchObject({ type: 'CredentialBroken', retryable: false })
  await expect(ask(id)).rejects.toMatchObject({ type: 'CredentialBroken' })
  expect(server.asked.length).toBeLessThanOrEqual(1)
  const { body } = await service.call('GET', `/api/credentials/${id}`, service.admin)
  expect(body).toMatchObject({ testStatus: 'FAILED', broken: expect.stringMatching(/Look at its keys$/) })
  await service.call('PUT', `/api/credentials/${id}`, service.admin, { data: { privateKey } })
  expect((await ask(id)).status).toBe(200)
})

test('a clock that is wrong does not look like a wrong key', async () => {
  server.state.misbehave = (res) =>
    respond(res, 400, { error: 'invalid_grant' }, { date: new Date(Date.now() + 600_000).toUTCString() })
  const id = await make()
  await expect(ask(id)).rejects.toMatchObject({
    type: 'CredentialUnavailable',
    message: expect.stringMatching(/the clock of this machine is (599|600|601) s behind the token server's/),
  })
  const { body } = await service.call('GET', `/api/credentials/${id}`, service.admin)
  expect(body.broken).toBeNull()
})

test('it is tested by getting a token', async () => {
  const id = await make({ testUrl: `${server.url}/api` })
  const said = await testIt(id)
  expect(`${said.status} ${said.message}`).toMatch(
    /^SUCCESS robot@project.* got an access token; it ends at .*127\.0\.0\.1:\d+ takes it$/,
  )
  expect(await testIt(await make({ privateKey: 'none' }))).toMatchObject({ status: 'FAILED' })
})
