import { expect, test } from 'vitest'
import { createRuns } from '../../../support/engine/runs.ts'
import { keep } from '../../../support/keep.ts'
import { answered, GPT_4O, openMeter } from '../../../support/monitoring/usage/calls.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const runs = createRuns(service)
const pathOf = (teamId: string) => `/api/teams/${teamId}/model-prices`
const path = pathOf(service.teamId)

const put = (json: unknown, as = service.admin) => service.call('PUT', path, as, json)
const LLAMA = { model: 'llama3*', inputPerMillion: 0.1, outputPerMillion: 0.2 }
const WHOLE = { provider: null, cachedInputPerMillion: null, cacheWritePerMillion: null, validFrom: null }

test("a team's prices are read and replaced as one list, in their order", async () => {
  expect((await service.call('GET', path, service.admin)).body).toEqual({ prices: [] })
  const full = {
    provider: 'OPENAI',
    model: 'gpt-4o',
    inputPerMillion: 2.0000000001,
    cachedInputPerMillion: 1,
    cacheWritePerMillion: 2.5,
    outputPerMillion: 8,
    validFrom: '2026-01-01T00:00:00.000Z',
  }
  const { status, body } = await put({
    prices: [LLAMA, { ...full, validFrom: '2026-01-01' }, LLAMA_OF_AZURE],
  })
  expect(status).toBe(200)
  const prices = [{ ...WHOLE, ...LLAMA }, full, { ...WHOLE, ...LLAMA_OF_AZURE }]
  expect(body).toEqual({ prices })
  expect((await service.call('GET', path, service.admin)).body).toEqual({ prices })
  // What it reads, a client may send back.
  expect((await put(body)).body).toEqual({ prices })
  expect((await put({ prices: [] })).body).toEqual({ prices: [] })
  expect((await service.call('GET', path, service.admin)).body).toEqual({ prices: [] })
})
const LLAMA_OF_AZURE = { ...LLAMA, provider: 'AZURE_OPENAI' }

test("monitoring's own address reads and changes the same list", async () => {
  const own = `/api/monitoring/teams/${service.teamId}/prices`
  const saved = await service.call('PUT', own, service.admin, { prices: [LLAMA] })
  expect(saved).toMatchObject({ status: 200, body: { prices: [{ ...WHOLE, ...LLAMA }] } })
  expect((await service.call('GET', path, service.admin)).body).toEqual(saved.body)
  expect((await put({ prices: [] })).body).toEqual({ prices: [] })
  const viewer = await service.token('VIEWER')
  expect((await service.call('GET', own, viewer)).body).toEqual({ prices: [] })
  expect((await service.call('PUT', own, viewer, { prices: [] })).status).toBe(403)
})

test('all faults of a list are named at once, and none of it is saved', async () => {
  await put({ prices: [LLAMA] })
  const wrong = {
    prices: [
      LLAMA,
      { model: '', inputPerMillion: -1, outputPerMillion: '2' },
      { model: 'a*b', inputPerMillion: 1e-12, outputPerMillion: 2_000_000, provider: 'ACME' },
      { ...LLAMA, cachedInputPerMillion: -1, cacheWritePerMillion: true, validFrom: 'tomorrow' },
      { model: 'x'.repeat(201) },
    ],
  }
  const { status, body } = await put(wrong)
  expect(status).toBe(400)
  expect(body.errors.map(({ path }: { path: string }) => path).sort()).toEqual([
    'prices[1].inputPerMillion',
    'prices[1].model',
    'prices[1].outputPerMillion',
    'prices[2].inputPerMillion',
    'prices[2].model',
    'prices[2].outputPerMillion',
    'prices[2].provider',
    'prices[3].cacheWritePerMillion',
    'prices[3].cachedInputPerMillion',
    'prices[3].validFrom',
    'prices[4].inputPerMillion',
    'prices[4].model',
    'prices[4].outputPerMillion',
  ])
  const twice = await put({ prices: [LLAMA, { ...LLAMA, inputPerMillion: 3 }] })
  expect(twice.body.errors).toEqual([
    { path: 'prices[1]', message: 'is the same model, provider and time as prices[0]' },
  ])
  expect((await put({ prices: [LLAMA, 5, null] })).body.errors).toEqual([
    { path: 'prices[1]', message: 'must be an object, not a number' },
    { path: 'prices[2]', message: 'must be an object, not null' },
  ])
  for (const none of [{}, { prices: 7 }, { prices: Array(501).fill(LLAMA) }])
    expect((await put(none)).status).toBe(400)
  expect((await service.call('GET', path, service.admin)).body.prices).toEqual([{ ...WHOLE, ...LLAMA }])
})

test('only an ADMIN changes them, every role reads them, and strangers do neither', async () => {
  const builder = await service.signUp('BUILDER')
  const viewer = await service.token('VIEWER')
  const stranger = await service.otherTeam()
  expect((await put({ prices: [] }, builder.cookie)).status).toBe(403)
  expect((await service.call('GET', path, builder.cookie)).status).toBe(200)
  expect((await service.call('GET', path, viewer)).status).toBe(200)
  expect((await put({ prices: [] }, stranger.cookie)).status).toBe(403)
  expect((await service.call('GET', path, stranger.cookie)).status).toBe(403)
  expect((await service.call('GET', pathOf(crypto.randomUUID()), service.admin)).status).toBe(404)
})

test('a change is in the audit, and no change is not', async () => {
  await put({ prices: [] })
  const list = async () => {
    const rows = await service.store.db
      .selectFrom('auditEntries')
      .select(['details', 'resourceId'])
      .where('action', '=', 'MODEL_PRICES_UPDATED')
      .orderBy('seq')
      .execute()
    return rows
  }
  const before = (await list()).length
  await put({ prices: [LLAMA] })
  await put({ prices: [LLAMA] })
  const after = await list()
  expect(after).toHaveLength(before + 1)
  expect(after.at(-1)).toMatchObject({
    resourceId: service.teamId,
    details: { after: { prices: [{ ...WHOLE, ...LLAMA }] } },
  })
})

test('a price counts for the next call; what earlier ones cost stays as it was', async () => {
  await put({ prices: [] })
  const executionId = await runs.addRun()
  const meter = openMeter(service, { executionId, workflowId: crypto.randomUUID(), activityId: 'llm' })
  const mine = { ...GPT_4O, provider: 'OPENAI_COMPATIBLE', model: 'llama3:8b' }
  expect(await meter.isPriced('OPENAI_COMPATIBLE', 'llama3:8b')).toBe(false)
  const begun = await meter.begin(mine)
  await put({ prices: [LLAMA] })
  expect(await begun.end(answered({ input: 1_000_000 }))).toBeNull()
  expect(await meter.isPriced('OPENAI_COMPATIBLE', 'llama3:8b')).toBe(true)
  expect(await (await meter.begin(mine)).end(answered({ input: 1_000_000, output: 1_000_000 }))).toBe(0.3)
  await put({ prices: [{ ...LLAMA, inputPerMillion: 1, outputPerMillion: 1 }] })
  expect(await (await meter.begin(mine)).end(answered({ input: 1_000_000, output: 1_000_000 }))).toBe(2)
  const { body } = await service.call(
    'GET',
    `/api/monitoring/teams/${service.teamId}/token-usage`,
    service.admin,
  )
  expect(body).toMatchObject({ totalCost: 2.3, calls: 3, unpricedCalls: 1 })
})

test('prices of one team are not those of another, and go with their team', async () => {
  const other = await service.otherTeam()
  await put({ prices: [LLAMA] })
  expect((await service.call('GET', pathOf(other.teamId), other.cookie)).body).toEqual({ prices: [] })
  await service.call('PUT', pathOf(other.teamId), other.cookie, { prices: [LLAMA, LLAMA_OF_AZURE] })
  expect((await service.call('DELETE', `/api/teams/${other.teamId}`, other.cookie)).status).toBe(200)
  const rows = await service.store.db.selectFrom('modelPrices').select('teamId').execute()
  expect(rows).toEqual([{ teamId: service.teamId }])
})
