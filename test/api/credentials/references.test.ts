import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createCredentials } from '../../../activities/credentials/credentials.ts'
import { NOWHERE } from '../../../activities/egress/outside.ts'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { store, teamId, call, admin } = service
const stranger = await service.otherTeam()
const builder = await service.signUp('BUILDER')

async function make(
  type = 'HTTP_BEARER',
  data: object = { token: 't' },
  as = admin,
  team = teamId,
): Promise<string> {
  const made = await call('POST', '/api/credentials', as, {
    name: `c ${randomUUID()}`,
    type,
    teamId: team,
    data,
  })
  expect(made.status).toBe(201)
  return made.body.id
}

/** A graph that can be activated, with a request for each of the credentials. */
const graphOf = (...ids: unknown[]) => ({
  nodes: [
    { id: 'start', type: 'MANUAL_TRIGGER' },
    ...ids.map((credentialId, at) => ({
      id: `call${at}`,
      type: 'HTTP_REQUEST',
      config: { url: 'https://api.example.com/', credentialId },
    })),
  ],
  edges: ids.map((_, at) => ({ source: at === 0 ? 'start' : `call${at - 1}`, target: `call${at}` })),
})
const save = (...ids: unknown[]) =>
  call('POST', '/api/workflows', admin, { name: `w ${randomUUID()}`, teamId, ...graphOf(...ids) })
const put = (id: string, patch: object) => call('PUT', `/api/workflows/${id}`, admin, patch)

async function saved(...ids: unknown[]): Promise<string> {
  const made = await save(...ids)
  expect([made.status, made.text]).toEqual([201, expect.anything()])
  return made.body.id
}

async function activated(...ids: unknown[]): Promise<string> {
  const id = await saved(...ids)
  expect((await put(id, { active: true })).status).toBe(200)
  return id
}

const remove = (id: string, as = admin, query = '') => call('DELETE', `/api/credentials/${id}${query}`, as)
const faultsOf = ({ status, body }: Body): [string, string][] => {
  expect(status).toBe(400)
  return body.errors.map(({ path, message }: { path: string; message: string }) => [path, message])
}
const named = async (workflowId: string) => {
  const rows = await store.db
    .selectFrom('versionCredentials')
    .select(['version', 'credentialId'])
    .where('workflowId', '=', workflowId)
    .orderBy('version')
    .execute()
  return rows.map(({ version, credentialId }) => [version, credentialId])
}

test('a node names a credential of its team that fits it, by its id as it stands', async () => {
  const fits = await make()
  const foreign = await make('HTTP_BEARER', { token: 't' }, stranger.cookie, stranger.teamId)
  const mail = await make('SMTP', { host: 'h', port: 25, username: 'u', password: 'p' })
  const refused = await save(fits, foreign, mail, randomUUID())
  expect(faultsOf(refused)).toEqual([
    ['nodes[2].config.credentialId', 'must be a credential of this team'],
    [
      'nodes[3].config.credentialId',
      expect.stringMatching(/^must be a credential of the type OPENAI.*; "c .*" is of the type SMTP$/),
    ],
    ['nodes[4].config.credentialId', 'must be a credential of this team'],
  ])
  for (const id of ['{{ $vars.id }}', '={{ $vars.id }}', `{{ "${fits}" }}`, 7, ''])
    expect([id, faultsOf(await save(id))]).toEqual([
      id,
      [['nodes[1].config.credentialId', expect.stringContaining('must be the id of a credential')]],
    ])
  const id = await saved(fits.toUpperCase(), fits)
  const read = await call('GET', `/api/workflows/${id}`, admin)
  expect(read.body.nodes.slice(1).map(({ config }: Body) => config.credentialId)).toEqual([fits, fits])
  expect(await named(id)).toEqual([[1, fits]])
})

test('each version keeps what it names, and one whose credential is gone can be neither restored nor activated', async () => {
  const [first, second] = [await make(), await make()]
  const id = await saved(first)
  expect((await put(id, graphOf(second))).status).toBe(200)
  expect(await named(id)).toEqual([
    [1, first],
    [2, second],
  ])
  const usage = async (credential: string) =>
    (await call('GET', `/api/credentials/${credential}/usage`, builder.cookie)).body
  const workflow = { workflowId: id, workflowName: expect.any(String), active: false, versions: 1 }
  expect(await usage(first)).toMatchObject({ content: [{ ...workflow, nodes: [] }], totalElements: 1 })
  expect(await usage(second)).toMatchObject({
    content: [{ ...workflow, nodes: [{ id: 'call0', name: expect.any(String), type: 'HTTP_REQUEST' }] }],
  })
  expect((await remove(first, builder.cookie)).status).toBe(200)
  const restored = await call('POST', `/api/workflows/${id}/versions/1/restore`, admin)
  expect(faultsOf(restored)).toEqual([['nodes[1].config.credentialId', 'must be a credential of this team']])
  expect((await remove(second, builder.cookie)).status).toBe(200)
  expect(faultsOf(await put(id, { active: true }))).toEqual([
    ['nodes[1].config.credentialId', 'must be a credential of this team'],
  ])
  expect((await put(id, { description: 'still here' })).status).toBe(200)
})

test('a credential that active workflows use is deleted only by an ADMIN who forces it', async () => {
  const id = await make()
  const workflows = [await activated(id), await activated(id), await saved(id)]
  const refused = await remove(id)
  expect([refused.status, refused.body.message]).toEqual([
    409,
    expect.stringMatching(/^Active workflows use the credential "c .*": "w .*", "w .*"\. /),
  ])
  expect((await remove(id, builder.cookie, '?force=true')).status).toBe(403)
  expect((await remove(id, admin, '?force=yes')).status).toBe(400)
  await put(workflows[0]!, { active: false })
  expect((await remove(id, builder.cookie)).status).toBe(409)
  // A version that does not name it any more does not count.
  await put(workflows[1]!, graphOf())
  expect((await call('GET', `/api/workflows/${workflows[1]}`, admin)).body.active).toBe(true)
  const forced = await activated(id)
  expect((await remove(id, admin, '?force=true')).status).toBe(200)
  expect((await call('GET', `/api/workflows/${forced}`, admin)).body.active).toBe(true)
  const { rows } = await sql<{ details: Body }>`select details from audit_entries
    where action = 'CREDENTIAL_DELETED' and resource_id = ${id}`.execute(store.db)
  expect(rows[0]!.details).toMatchObject({ type: 'HTTP_BEARER', activeWorkflows: 1 })
})

test('an attempt that needs a credential which is gone, foreign, broken or of another kind fails for good', async () => {
  const credentials = createCredentials(store, NOWHERE, { teamId, workflowId: crypto.randomUUID() })
  const foreign = await make('HTTP_BEARER', { token: 't' }, stranger.cookie, stranger.teamId)
  for (const id of [randomUUID(), foreign])
    await expect(credentials.open(id, 'HTTP')).rejects.toMatchObject({
      type: 'CredentialMissing',
      retryable: false,
    })
  const id = await make()
  expect((await credentials.open(id, 'HTTP')).data).toEqual({ token: 't' })
  expect(credentials.secrets()).toEqual(['t'])
  await expect(credentials.open(id, 'MAIL', 'CHAT')).rejects.toMatchObject({
    type: 'InvalidConfig',
    retryable: false,
  })
  await store.db.updateTable('credentials').set({ broken: 'ended' }).where('id', '=', id).execute()
  await expect(credentials.open(id, 'HTTP')).rejects.toMatchObject({
    type: 'CredentialBroken',
    retryable: false,
  })
  await remove(id)
  await expect(credentials.open(id, 'HTTP')).rejects.toMatchObject({
    type: 'CredentialMissing',
    retryable: false,
  })
})

test('of a save and a delete at the same time, one is refused: no version names what was deleted before it', async () => {
  for (let round = 0; round < 10; round++) {
    const id = await make()
    const workflow = await saved()
    const [put1, deleted] = await Promise.all([
      put(workflow, { ...graphOf(id), active: true }),
      remove(id, builder.cookie),
    ])
    expect([
      [200, 409],
      [400, 200],
    ]).toContainEqual([put1.status, deleted.status])
    const exists = (await call('GET', `/api/credentials/${id}`, admin)).status === 200
    expect(exists).toBe(put1.status === 200)
  }
})

test('an import keeps the credentials of its team, maps others, and leaves out the rest with a report', async () => {
  const [own, other] = [await make(), await make()]
  const foreign = await make('HTTP_BEARER', { token: 't' }, stranger.cookie, stranger.teamId)
  const mail = await make('SMTP', { host: 'h', port: 25, username: 'u', password: 'p' })
  const elsewhere = randomUUID()
  const exported = await call('GET', `/api/workflows/${await saved(own)}/export`, admin)
  expect(exported.body.nodes[1].config.credentialId).toBe(own)
  const workflow = { ...exported.body, ...graphOf(own, foreign, elsewhere, mail, randomUUID()) }
  const imported = await call('POST', '/api/workflows/import', admin, {
    teamId,
    name: `i ${randomUUID()}`,
    workflow,
    credentials: { [elsewhere]: other },
  })
  expect([imported.status, imported.text]).toEqual([201, expect.anything()])
  const problems = imported.body.report.problems.filter(({ kind }: Body) => kind === 'credential')
  expect(problems.map(({ path, original }: Body) => [path, original])).toEqual([
    ['nodes[2].config.credentialId', foreign],
    ['nodes[4].config.credentialId', mail],
    ['nodes[5].config.credentialId', workflow.nodes[5].config.credentialId],
  ])
  expect(problems[0].message).toContain('must be a credential of this team, so it was left out')
  const { body } = await call('GET', `/api/workflows/${imported.body.id}`, admin)
  expect(body.nodes.slice(1).map(({ config }: Body) => config.credentialId ?? null)).toEqual([
    own,
    null,
    other,
    null,
    null,
  ])
  // Those that have lost theirs are not sent without one.
  const needing = body.nodes.slice(1).map(({ config }: Body) => config.needsCredential !== undefined)
  expect(needing).toEqual([false, true, false, true, true])
  expect((await named(imported.body.id)).map(([, id]) => id).toSorted()).toEqual([own, other].toSorted())
})

test('the rows of a workflow go with it, and those of a version too', async () => {
  const [first, second] = [await make(), await make()]
  const id = await saved(first)
  await put(id, graphOf(second))
  expect((await call('DELETE', `/api/workflows/${id}/versions/1`, admin)).status).toBe(200)
  expect(await named(id)).toEqual([[2, second]])
  expect((await call('DELETE', `/api/workflows/${id}`, admin)).status).toBe(200)
  expect(await named(id)).toEqual([])
})
