import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { type Body, shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { store, teamId, admin } = service
const pathOf = (team: string) => `/api/guardrails/settings?teamId=${team}`
const get = (as = admin, team = teamId) => service.call('GET', pathOf(team), as)
const put = (json: unknown, as = admin, team = teamId) => service.call('PUT', pathOf(team), as, json)

async function makeCredential(type: string, data: object, team = teamId, as = admin): Promise<string> {
  const name = `${type} ${crypto.randomUUID().slice(0, 8)}`
  const { status, body } = await service.call('POST', '/api/credentials', as, {
    teamId: team,
    name,
    type,
    data,
  })
  expect(status, JSON.stringify(body)).toBe(201)
  return body.id
}
const openAi = (team = teamId, as = admin) =>
  makeCredential('OPENAI', { apiKey: 'sk-a-secret-key-0001' }, team, as)

const NONE = { credentialId: null, model: null, monthlyCostCap: null, checks: [] }

const readEntries = async (team = teamId) => {
  const { rows } = await sql<{
    resourceId: string
    details: Body
  }>`select resource_id, details from audit_entries
    where team_id = ${team} and action = 'GUARDRAIL_SETTINGS_UPDATED' order by seq`.execute(store.db)
  return rows
}

test('all is off until an ADMIN sets it up, null clears, and the audit says what was changed', async () => {
  expect((await get()).body).toEqual({ teamId, ...NONE, spentThisMonth: 0, updatedAt: null })
  const credentialId = await openAi()
  const whole = {
    ...{ credentialId, model: 'gpt-4o-mini' },
    ...{ monthlyCostCap: 12.5, checks: ['content', 'injection'] },
  }
  const set = await put(whole)
  expect(set.status, set.text).toBe(200)
  const shown = { ...whole, checks: ['injection', 'content'] }
  expect(set.body).toEqual({ teamId, ...shown, spentThisMonth: 0, updatedAt: expect.any(String) })
  expect((await get()).body).toEqual(set.body)
  // What it reads, a client may send back; nothing is changed by that.
  expect((await put(shown)).body).toEqual(set.body)
  expect((await put({ ...shown, model: 'gpt-4o' })).body.model).toBe('gpt-4o')
  const cleared = await put({})
  expect(cleared.body).toMatchObject(NONE)
  const entries = await readEntries()
  expect(entries).toHaveLength(3)
  expect(entries[1]).toMatchObject({
    resourceId: teamId,
    details: { changed: ['model'], before: { model: 'gpt-4o-mini' }, after: { model: 'gpt-4o' } },
  })
  expect(entries[2]!.details.changed).toEqual(Object.keys(NONE))
})

test('a BUILDER reads, only an ADMIN writes, and strangers do neither', async () => {
  const builder = await service.signUp('BUILDER')
  const operator = await service.signUp('OPERATOR')
  const stranger = await service.otherTeam()
  expect((await get(builder.cookie)).status).toBe(200)
  expect((await put({}, builder.cookie)).status).toBe(403)
  expect((await get(operator.cookie)).status).toBe(403)
  expect((await get(stranger.cookie)).status).toBe(403)
  expect((await put({}, stranger.cookie)).status).toBe(403)
  expect((await get(admin, crypto.randomUUID())).status).toBe(404)
})

test('all faults are named at once, and nothing is saved', async () => {
  const { status, body } = await put({
    credentialId: 'mine',
    model: '',
    monthlyCostCap: -1,
    checks: ['injection', 'weather'],
  })
  expect(status).toBe(400)
  expect(body.errors.map(({ path }: { path: string }) => path).sort()).toEqual([
    ...['checks[1]', 'credentialId', 'model', 'monthlyCostCap'],
  ])
  const needs = await put({ checks: ['content'] })
  expect(needs.body.errors).toEqual([
    { path: 'credentialId', message: 'is needed by checks' },
    { path: 'model', message: 'is needed by checks' },
  ])
  const credentialId = await openAi()
  expect((await put({ credentialId, model: 'm' })).body.errors).toEqual([
    { path: 'monthlyCostCap', message: 'is needed by credentialId' },
  ])
  for (const monthlyCostCap of [1e-12, 2_000_000, '5'])
    expect((await put({ monthlyCostCap })).status).toBe(400)
  expect((await get()).body).toMatchObject(NONE)
})

test('the credential must be of the team, and for models', async () => {
  const base = { model: 'm', monthlyCostCap: 1 }
  const other = await service.otherTeam()
  const messageOf = async (json: object) => {
    const { status, body } = await put({ ...base, ...json })
    expect(status).toBe(400)
    return `${body.errors[0].path} ${body.errors[0].message}`
  }
  const mine = 'credentialId must be a credential of this team'
  expect(await messageOf({ credentialId: crypto.randomUUID() })).toBe(mine)
  expect(await messageOf({ credentialId: await openAi(other.teamId, other.cookie) })).toBe(mine)
  const bearer = await makeCredential('HTTP_BEARER', { token: 'a token' })
  expect(await messageOf({ credentialId: bearer })).toMatch(/^credentialId must be a credential for models; /)
  const anthropic = await makeCredential('ANTHROPIC', { apiKey: 'sk-ant-a-secret-0001' })
  expect((await put({ ...base, credentialId: anthropic })).status).toBe(200)
  await put({})
})

test('a credential that the guardrails use is deleted only by force, and settings and deletion wait for each other', async () => {
  const credentialId = await openAi()
  await put({ credentialId, model: 'm', monthlyCostCap: 1, checks: ['injection'] })
  const path = `/api/credentials/${credentialId}`
  const refused = await service.call('DELETE', path, admin)
  expect(refused.status).toBe(409)
  expect(refused.body.message).toContain("The team's guardrails ask their model with the credential")
  expect((await service.call('DELETE', `${path}?force=true`, admin)).status).toBe(200)
  expect((await get()).body).toMatchObject({ credentialId, checks: ['injection'] })
  await put({})
  // Whichever comes first, the settings never name what was gone when they were saved.
  for (let round = 0; round < 5; round++) {
    const id = await openAi()
    const [set, gone] = await Promise.all([
      put({ credentialId: id, model: 'm', monthlyCostCap: 1 }),
      service.call('DELETE', `/api/credentials/${id}`, admin),
    ])
    expect([`${set.status} ${gone.status}`]).toEqual([expect.stringMatching(/^(?:200 409|400 200)$/)])
    await put({})
  }
})

test('settings go with their team', async () => {
  const other = await service.otherTeam()
  await put({ monthlyCostCap: 3 }, other.cookie, other.teamId)
  expect((await service.call('DELETE', `/api/teams/${other.teamId}`, other.cookie)).status).toBe(200)
  const { rows } = await sql`select from guardrail_settings where team_id = ${other.teamId}`.execute(store.db)
  expect(rows).toEqual([])
})
