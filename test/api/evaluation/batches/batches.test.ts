import { expect, test } from 'vitest'
import { makeBatchTeam, makeCases } from '../../../support/evaluation/batches.ts'
import { keep } from '../../../support/keep.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))

test('a batch is PENDING at first, with the fields of the spec', async () => {
  const team = await makeBatchTeam(service)
  const { status, body } = await team.send('POST', team.path, { ...team.judge, testCases: makeCases(3) })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    ...{ workflowId: team.workflowId, status: 'PENDING', totalCases: 3, completedCases: 0, passedCases: 0 },
    ...{
      failedCases: 0,
      passThreshold: 3,
      evalDimensions: ['groundedness', 'relevance', 'safety'],
      maxCost: null,
    },
    ...{
      judgeProvider: 'custom',
      judgeModel: 'm',
      judgeCredentialId: team.credentialId,
      cost: 0,
      reason: null,
    },
  })
  expect(body.name).toMatch(/^Batch of 20/)
  const named = await team.start(makeCases(1), {
    name: ' Second ',
    passThreshold: 4.5,
    evalDimensions: ['safety'],
  })
  const list = await team.send('GET', `${team.path}?size=1`)
  expect(list.body).toMatchObject({ totalElements: 2, totalPages: 2, number: 0, size: 1 })
  expect(list.body.content).toMatchObject([{ id: named.id, name: 'Second', passThreshold: 4.5 }])
  const results = await team.results(body.id)
  expect(results).toHaveLength(3)
  expect(results[1]).toMatchObject({
    ...{
      testCaseIndex: 1,
      testInput: { question: 'Q 1' },
      actualOutput: 'A 1',
      expectedOutput: null,
      status: 'PENDING',
    },
    ...{ groundednessScore: null, compositeScore: null, reasoning: {}, goldStandardMatch: null },
  })
})

test('everything that is wrong with a request is told at once', async () => {
  const team = await makeBatchTeam(service)
  const cases = [
    { input: { a: 1 } },
    { input: 'x', output: 'y' },
    { output: 'z' },
    { input: {}, output: 5 },
    null,
  ]
  const { status, body } = await team.send('POST', team.path, { passThreshold: 9, testCases: cases })
  expect(status).toBe(400)
  expect(body.errors.map(({ path }: { path: string }) => path)).toEqual([
    ...[
      'passThreshold',
      'testCases[0].output',
      'testCases[1].input',
      'testCases[2].input',
      'testCases[3].output',
    ],
    'testCases[4]',
  ])
  const none = await team.send('POST', team.path, { testCases: makeCases(1), evalDimensions: ['wit'] })
  expect(none.body.errors.map(({ path }: { path: string }) => path)).toEqual([
    ...['judgeProvider', 'judgeModel', 'judgeCredentialId', 'evalDimensions[0]'],
  ])
  const empty = await team.send('POST', team.path, { ...team.judge, testCases: [] })
  expect([empty.status, empty.body.message]).toEqual([400, 'testCases: must not be empty'])
  const wrong = await team.send('POST', team.path, {
    ...team.judge,
    judgeProvider: 'openai',
    testCases: makeCases(1),
  })
  expect(wrong.body.message).toContain('judgeCredentialId: must be a credential of the type OPENAI')
  const tooMany = await team.send('POST', team.path, { ...team.judge, testCases: makeCases(10_001) })
  expect(tooMany.body.message).toContain('must have at most 10000 entries')
  const faulty = makeCases(300).map(({ input }) => ({ input }))
  const many = await team.send('POST', team.path, { ...team.judge, testCases: faulty })
  expect(many.body.errors).toHaveLength(100)
})

test('10,000 cases of several megabytes are taken, and more than 16 MB are not', async () => {
  const team = await makeBatchTeam(service)
  const output = 'long '.repeat(200)
  const run = await team.start(makeCases(10_000, { output }))
  expect(run.totalCases).toBe(10_000)
  const last = await team.results(run.id, '?page=99&size=100')
  expect(last).toHaveLength(100)
  expect(last[99]).toMatchObject({ testCaseIndex: 9_999, actualOutput: output })
  const large = await team.send('POST', team.path, {
    ...team.judge,
    testCases: makeCases(200, { output: 'x'.repeat(90_000) }),
  })
  expect(large.status).toBe(413)
  const broken = await service.request(team.path, {
    ...{ method: 'POST', as: team.cookie, headers: { 'content-type': 'application/json' } },
    body: `{"testCases": [${'{"input": {}, "output": "x"},'.repeat(4_000)}]}`,
  })
  expect(broken.status).toBe(400)
})

test('a repeated request with the same key starts no second batch', async () => {
  const team = await makeBatchTeam(service)
  const key = { 'idempotency-key': 'once' }
  const first = await team.start(makeCases(2), {}, key)
  expect((await team.start(makeCases(2), {}, key)).id).toBe(first.id)
  const other = await team.send('POST', team.path, { ...team.judge, testCases: makeCases(3) }, key)
  expect(other.status).toBe(409)
})

test('a BUILDER starts, cancels and deletes; others of the team read', async () => {
  const team = await makeBatchTeam(service)
  const operator = await service.signUp('OPERATOR', team.teamId)
  const refused = await service.call('POST', team.path, operator.cookie, {
    ...team.judge,
    testCases: makeCases(1),
  })
  expect(refused.status).toBe(403)
  const { id } = await team.start(makeCases(2))
  expect((await service.call('GET', `${team.path}/${id}`, operator.cookie)).status).toBe(200)
  expect((await service.call('POST', `${team.path}/${id}/cancel`, operator.cookie)).status).toBe(403)
  const stranger = await service.otherTeam()
  expect((await service.call('GET', `${team.path}/${id}`, stranger.cookie)).status).toBe(403)
  for (const _ of [1, 2]) {
    const cancelled = await team.send('POST', `${team.path}/${id}/cancel`)
    expect(cancelled.body).toMatchObject({ status: 'CANCELLED', reason: 'Somebody has cancelled it' })
  }
  expect((await team.results(id)).map(({ status }) => status)).toEqual(['CANCELLED', 'CANCELLED'])
  // Another workflow of the team does not have it.
  const other = await makeBatchTeam(service)
  expect((await other.send('GET', `${other.path}/${id}`)).status).toBe(404)
  expect((await team.send('DELETE', `${team.path}/${id}`)).status).toBe(200)
  expect((await team.send('GET', `${team.path}/${id}`)).status).toBe(404)
})

test('a team has at most 20 batches under way', async () => {
  const team = await makeBatchTeam(service)
  for (let n = 0; n < 20; n++) await team.start(makeCases(1))
  const more = await team.send('POST', team.path, { ...team.judge, testCases: makeCases(1) })
  expect(more.status).toBe(409)
})

test('a deleted workflow takes its batches along', async () => {
  const team = await makeBatchTeam(service)
  const { id } = await team.start(makeCases(2))
  expect((await team.send('DELETE', `/api/workflows/${team.workflowId}`)).status).toBe(200)
  expect(await service.store.db.selectFrom('batchRuns').where('id', '=', id).select('id').execute()).toEqual(
    [],
  )
  expect((await team.send('GET', `${team.path}/${id}`)).status).toBe(404)
})
