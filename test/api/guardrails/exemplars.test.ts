import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { teamId } = service
const builder = await service.token('BUILDER')
const operator = await service.token('OPERATOR')
const viewer = await service.token('VIEWER')
const LIST = `/api/guardrails/exemplars?teamId=${teamId}`
const one = (id: string) => `/api/guardrails/exemplars/${id}`
const TEXT = 'Book a room for me without charging my credit card.'

async function create(json: object) {
  const { status, body } = await service.call('POST', LIST, builder, json)
  expect(status, JSON.stringify(body)).toBe(201)
  return body
}

async function check(text: string, team = teamId, as = viewer) {
  const json = { text, detectSemanticManipulation: true }
  const { status, body } = await service.call('POST', `/api/guardrails/check?teamId=${team}`, as, json)
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}

test("a team's exemplar is found in other words, by its name, until it is deleted", async () => {
  const asked = 'Hello there. Please book a room for me and do not charge my credit card.'
  expect((await check(asked)).violations).toEqual([])
  const made = await create({ name: 'Free rooms', text: TEXT, category: 'social_pressure' })
  expect(made).toMatchObject({ teamId, name: 'Free rooms', text: TEXT, category: 'social_pressure' })
  const body = await check(asked)
  expect(body.passed).toBe(false)
  expect(body.violations).toMatchObject([
    {
      type: 'SEMANTIC_SIMILARITY',
      severity: expect.stringMatching(/LOW|MEDIUM/),
      details: {
        category: 'social_pressure',
        exemplarId: made.id,
        exemplarName: 'Free rooms',
        corroborated: false,
      },
    },
  ])
  expect(JSON.stringify(body)).not.toContain('charging')
  expect((await check('The hotel has a room with a view of the lake.')).violations).toEqual([])
  const other = await service.otherTeam()
  expect((await check(asked, other.teamId, other.cookie)).violations).toEqual([])

  const changed = await service.call('PUT', one(made.id), builder, {
    text: 'Tell me the score of the match.',
  })
  expect(changed.body).toMatchObject({ name: 'Free rooms', text: 'Tell me the score of the match.' })
  expect((await check(asked)).violations).toEqual([])
  expect((await check('What is the score of the match? Tell me.')).violations).toHaveLength(1)
  await service.call('PUT', one(made.id), builder, { name: 'Scores' })
  expect((await check('Tell me the score of the match.')).violations).toMatchObject([
    { details: { exemplarName: 'Scores', similarity: expect.closeTo(1, 1) } },
  ])
  expect((await service.call('DELETE', one(made.id), builder)).body).toEqual({ message: 'Exemplar deleted' })
  expect((await check('Tell me the score of the match.')).violations).toEqual([])
  expect((await service.call('GET', one(made.id), builder)).status).toBe(404)
})

test('exemplars are listed by name, in pages, to those who may read them', async () => {
  const b = await create({ name: 'b of the list', text: 'Pay me twice.' })
  const a = await create({ name: 'a of the list', text: 'Pay me three times.' })
  expect(a.category).toBe('other')
  const { body } = await service.call('GET', `${LIST}&size=1`, operator)
  expect(body).toMatchObject({ content: [a], totalElements: 2, totalPages: 2, number: 0, size: 1 })
  expect((await service.call('GET', `${LIST}&size=1&page=1`, operator)).body.content).toEqual([b])
  expect((await service.call('GET', one(a.id), operator)).body).toEqual(a)
  expect((await service.call('GET', LIST, viewer)).status).toBe(403)
  expect((await service.call('POST', LIST, operator, { name: 'x', text: 'y' })).status).toBe(403)
  const other = await service.otherTeam()
  for (const [method, json] of [['GET'], ['PUT', { name: 'x' }], ['DELETE']] as [string, object?][])
    expect([403, 404]).toContain((await service.call(method, one(a.id), other.cookie, json)).status)
  expect((await service.call('PUT', one(randomUUID()), builder, { name: 'x' })).status).toBe(404)
  for (const { id } of [a, b]) await service.call('DELETE', one(id), builder)
})

test('all that is wrong is told at once, and a name is given once', async () => {
  const bad = await service.call('POST', LIST, builder, {
    name: ' ',
    text: 'x'.repeat(2_001),
    category: 'spam',
  })
  expect(bad.status).toBe(400)
  for (const word of ['name', 'text', 'category', '2000']) expect(JSON.stringify(bad.body)).toContain(word)
  for (const text of ['', '   ', '\0', '\ud800', 5, null, '日本語。'.repeat(500), '😀'])
    expect((await service.call('POST', LIST, builder, { name: 'x', text })).status).toBe(400)
  const first = await create({ name: 'Once', text: TEXT })
  const second = await create({ name: 'Twice', text: 'Another one.' })
  expect((await service.call('POST', LIST, builder, { name: 'Once', text: 'other' })).status).toBe(409)
  expect((await service.call('PUT', one(second.id), builder, { name: 'Once' })).status).toBe(409)
  // What the model cannot read means nothing to it: it must not be like all other texts that it cannot read.
  expect((await check('これはテストです。')).violations).toEqual([])
  for (const { id } of [first, second]) await service.call('DELETE', one(id), builder)
})

test('the audit says who changed which exemplar, and never its text', async () => {
  const made = await create({ name: 'Audited', text: TEXT })
  await service.call('PUT', one(made.id), builder, { text: 'Another secret text.', name: 'Audited still' })
  await service.call('DELETE', one(made.id), builder)
  const { body } = await service.call('GET', `/api/audit/team/${teamId}?size=100`, service.admin)
  const entries = body.content.filter(({ resourceId }: { resourceId: string }) => resourceId === made.id)
  expect(entries.map(({ action }: { action: string }) => action).sort()).toEqual([
    'GUARDRAIL_EXEMPLAR_CREATED',
    'GUARDRAIL_EXEMPLAR_DELETED',
    'GUARDRAIL_EXEMPLAR_UPDATED',
  ])
  expect(JSON.stringify(entries)).toContain('"textChanged":true')
  expect(JSON.stringify(entries)).not.toMatch(/charging|secret text/)
})

test('a team has at most 200 exemplars, also if two are added at once', async () => {
  const rows = Array.from({ length: 199 }, (_, at) => ({
    id: randomUUID(),
    teamId,
    name: `filled ${at}`,
    category: 'other',
    text: 'x',
    embeddingModel: 'another',
    embedding: Buffer.alloc(0),
  }))
  await service.store.db.insertInto('guardrailExemplars').values(rows).execute()
  const made = await Promise.all(
    [1, 2, 3].map((at) => service.call('POST', LIST, builder, { name: `more ${at}`, text: 'One more.' })),
  )
  expect(made.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  // Those that another model has made are passed over.
  expect((await check(HARMLESS)).violations).toEqual([])
})

const HARMLESS = 'The museum is open from nine to five.'
