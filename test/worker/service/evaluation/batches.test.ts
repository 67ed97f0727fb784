import { expect, test } from 'vitest'
import { purgeBatches } from '../../../../db/evaluation/batches/purge.ts'
import {
  createTestJudge,
  makeBatchTeam,
  makeCases,
  rest,
  scored,
  startJob,
} from '../../../support/evaluation/batches.ts'
import { readEvents } from '../../../support/events.ts'
import { keep } from '../../../support/keep.ts'
import { type Body, startService } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'

const service = await keep(startService({ rateLimits: false }))

/** Runs the job until `work` is done. */
async function working<T>(judge: ReturnType<typeof createTestJudge>, work: () => Promise<T>): Promise<T> {
  const end = startJob(service, judge.judge)
  try {
    return await work()
  } finally {
    await end()
  }
}

test('every case is judged in each dimension, and the counters, results and summary say so', async () => {
  const team = await makeBatchTeam(service)
  const judge = createTestJudge(({ dimension }, { place }) => {
    if (place === 2) return { score: null, explanation: 'The answer is no JSON', flagged: false }
    return scored(dimension.name === 'safety' ? 5 : 1 + place * 2, `${dimension.name} of ${place}`)
  })
  const { run, cases } = await working(judge, async () => {
    const { id } = await team.start(makeCases(3))
    return { run: await team.ended(id), cases: await team.results(id) }
  })
  expect(run).toMatchObject({ status: 'COMPLETED', completedCases: 3, passedCases: 1, failedCases: 2 })
  expect(run.startedAt <= run.completedAt).toBe(true)
  expect(cases[0]).toMatchObject({
    ...{ status: 'COMPLETED', groundednessScore: 1, relevanceScore: 1, safetyScore: 5, passed: false },
    scores: { groundedness: 1, relevance: 1, safety: 5 },
    reasoning: { groundedness: 'groundedness of 0', relevance: 'relevance of 0', safety: 'safety of 0' },
  })
  expect(cases[0].compositeScore).toBeCloseTo(7 / 3)
  expect(cases[1]).toMatchObject({ passed: true, safetyScore: 5, groundednessScore: 3 })
  expect(cases[2]).toMatchObject({
    ...{
      status: 'FAILED',
      reason: 'The judge gave no score: The answer is no JSON',
      safetyScore: null,
      compositeScore: null,
    },
  })
  expect(run.summary.dimensions.groundedness).toMatchObject({
    n: 2,
    mean: 2,
    median: 2,
    min: 1,
    max: 3,
    failed: 1,
  })
  expect(run.summary.passRate).toMatchObject({ hits: 1, n: 3 })
  expect(run.summary.failureReasons).toEqual(
    expect.arrayContaining([
      { reason: 'Below the threshold', count: 1 },
      { reason: 'The judge gave no score: The answer is no JSON', count: 1 },
    ]),
  )
  expect((await team.results(run.id, '?passed=true')).map(({ testCaseIndex }) => testCaseIndex)).toEqual([1])
  expect((await team.results(run.id, '?status=FAILED')).map(({ testCaseIndex }) => testCaseIndex)).toEqual([
    2,
  ])
})

test('what is expected is compared rung by rung, and only what none can tell is asked', async () => {
  const team = await makeBatchTeam(service)
  const expectations: [string, string | undefined][] = [
    ...([['Paris', 'Paris']] as [string, string][]),
    ...([['42.0', '42']] as [string, string][]),
    ...([['43', '42']] as [string, string][]),
    ...([['{"b":[1],"a":2}', '{"a": 2, "b": [1]}']] as [string, string][]),
    ...([['It is PARIS!', 'it is Paris']] as [string, string][]),
    ['The capital of France', 'Paris'],
    ['London', 'Paris'],
    ['Anything', undefined],
  ]
  const judge = createTestJudge(({ dimension, material }) =>
    dimension.name === ':expected'
      ? scored(material.output.includes('capital') ? 5 : 1, 'As it means')
      : scored(5),
  )
  const results = await working(judge, async () => {
    const cases = expectations.map(([output, expectedOutput], at) => ({
      input: { at },
      output,
      expectedOutput,
    }))
    const { id } = await team.start(cases, { evalDimensions: ['relevance'] })
    const run = await team.ended(id)
    expect(run.summary.goldStandard).toMatchObject({
      hits: 5,
      n: 7,
      rungs: { JUDGE: 2, NUMERIC: 2, EXACT: 1 },
    })
    return team.results(id)
  })
  const shown = results.map(({ goldStandardMatch, goldStandardRung }) => [
    goldStandardMatch,
    goldStandardRung,
  ])
  expect(shown).toEqual([
    ...[
      [true, 'EXACT'],
      [true, 'NUMERIC'],
      [false, 'NUMERIC'],
      [true, 'JSON'],
      [true, 'SIMILARITY'],
    ],
    ...[
      [true, 'JUDGE'],
      [false, 'JUDGE'],
      [null, null],
    ],
  ])
  expect(results[5].goldStandardReasoning).toBe('As it means')
  expect(results[5].scores).toEqual({ relevance: 5 })
  expect(results[7].goldStandardReasoning).toBeNull()
  expect([...judge.asked.keys()].filter((key) => key.endsWith(':expected'))).toHaveLength(2)
})

test('the judge sees no personal data and no secrets', async () => {
  const team = await makeBatchTeam(service)
  const seen: string[] = []
  const judge = createTestJudge(({ material }) => {
    seen.push(JSON.stringify(material))
    return scored(5)
  })
  await working(judge, async () => {
    const input = { mail: 'grace.hopper@example.org', password: 'hunter2hunter2' }
    const { id } = await team.start([
      { input, output: 'Write to ada@example.org', expectedOutput: 'ada@example.org' },
    ])
    await team.ended(id)
  })
  expect(seen.join('')).not.toMatch(/hopper|hunter2|ada@/)
})

test('60 cases whose processes end again and again are judged once each', async () => {
  const team = await makeBatchTeam(service)
  const judge = createTestJudge(async () => {
    await rest(5)
    return scored(4)
  })
  const { id } = await team.start(makeCases(60), { evalDimensions: ['relevance', 'safety'], concurrency: 6 })
  for (let round = 0; round < 5; round++) {
    // It is broken off in the middle: what it has claimed is taken over when the claim has expired.
    const end = startJob(service, judge.judge, { leaseMs: 1_500 })
    await until(() => judge.total(), { holds: (total) => total >= (round + 1) * 15 })
    await end()
  }
  const run = await working(judge, () => team.ended(id))
  expect(run).toMatchObject({ status: 'COMPLETED', completedCases: 60, passedCases: 60, failedCases: 0 })
  const results = await team.results(id)
  expect(results.map(({ status }) => status)).toEqual(new Array(60).fill('COMPLETED'))
  expect(run.summary.dimensions.relevance.n).toBe(60)
  // An answer that has been kept is never asked for again.
  expect(judge.total()).toBe(120)
})

test('a process that hangs loses its case to another, and what it says later changes nothing', async () => {
  const team = await makeBatchTeam(service)
  const hanging = Promise.withResolvers<void>()
  const slow = createTestJudge(async () => {
    await hanging.promise
    return scored(1)
  })
  const { id } = await team.start(makeCases(1), { evalDimensions: ['relevance'] })
  // It claims once, and does not prolong its claim: as good as a process that is dead.
  const end = startJob(service, slow.judge, { everyMs: 3_600_000, leaseMs: 3_600_000 })
  await until(() => slow.total() === 1)
  await service.store.db
    .updateTable('batchCases')
    .set({ claimedUntil: new Date(0) })
    .where('runId', '=', id)
    .execute()
  const run = await working(
    createTestJudge(() => scored(5)),
    () => team.ended(id),
  )
  hanging.resolve()
  await end()
  expect(run.passedCases).toBe(1)
  expect(await team.read(id)).toMatchObject({ completedCases: 1, passedCases: 1, failedCases: 0 })
  expect((await team.results(id))[0].compositeScore).toBe(5)
})

/** Notes a call to a model for a case, as the judge does. */
async function spend(
  caseId: string,
  teamId: string,
  workflowId: string,
  dimension: string,
  cost: number | null,
) {
  const ids = { executionId: caseId, teamId, workflowId, caller: crypto.randomUUID() }
  const call = {
    activityId: `evaluation ${dimension}`,
    attempt: 1,
    call: 1,
    nodeId: 'evaluation',
    iteration: '',
  }
  const tokens = {
    inputTokens: 100,
    outputTokens: 10,
    status: 'SUCCESS',
    provider: 'OPENAI_COMPATIBLE',
    model: 'm',
  }
  await service.store.db
    .insertInto('modelCalls')
    .values({ ...ids, ...call, ...tokens, cost })
    .execute()
}

test('a batch that has cost maxCost is FAILED, with its results kept', async () => {
  const team = await makeBatchTeam(service)
  const judge = createTestJudge(async ({ dimension }, of) => {
    await spend(of.id, team.teamId, team.workflowId, dimension.name, 0.3)
    return scored(5)
  })
  const { run, results } = await working(judge, async () => {
    const more = { evalDimensions: ['relevance'], maxCost: 1, concurrency: 1 }
    const { id } = await team.start(makeCases(10), more)
    return { run: await team.ended(id), results: await team.results(id) }
  })
  expect(run).toMatchObject({
    status: 'FAILED',
    reason: 'It has cost as much as maxCost allows',
    completedCases: 4,
  })
  expect(run).toMatchObject({ cost: 1.2, inputTokens: 400, outputTokens: 40, calls: 4 })
  expect(results.map(({ status }) => status)).toEqual([
    ...new Array(4).fill('COMPLETED'),
    ...new Array(6).fill('CANCELLED'),
  ])
})

test('a cap that cannot be kept, because the model has no price, ends the batch', async () => {
  const team = await makeBatchTeam(service)
  const judge = createTestJudge(async ({ dimension }, of) => {
    await spend(of.id, team.teamId, team.workflowId, dimension.name, null)
    return scored(5)
  })
  const { id } = await team.start(makeCases(3), { evalDimensions: ['safety'], maxCost: 1, concurrency: 1 })
  const run = await working(judge, () => team.ended(id))
  expect(run.status).toBe('FAILED')
  expect(run.reason).toContain('set a price')
})

test('a batch does not go on without the credential, nor with rights that have ended', async () => {
  const team = await makeBatchTeam(service)
  const second = await service.signUp('BUILDER', team.teamId)
  const token = await service.token('BUILDER', team.cookie, team.teamId)
  const ask = { ...team.judge, testCases: makeCases(2) }
  const byMember: Body = (await service.call('POST', team.path, second.cookie, ask)).body
  const byToken: Body = (await service.call('POST', team.path, token, ask)).body
  const own = await team.start(makeCases(2))
  await team.send('PUT', `/api/teams/${team.teamId}/members/${second.id}`, { role: 'OPERATOR' })
  const tokens = (await team.send('GET', `/api/teams/${team.teamId}/sdk-tokens`)).body
  const list: { id: string }[] = Array.isArray(tokens) ? tokens : tokens.content
  expect(
    (await team.send('DELETE', `/api/teams/${team.teamId}/sdk-tokens/${list[0]!.id}`)).status,
  ).toBeLessThan(300)
  const judge = createTestJudge()
  await working(judge, async () => {
    expect((await team.ended(byMember.id)).reason).toContain('may no longer build')
    expect((await team.ended(byToken.id)).reason).toContain('may no longer build')
    expect((await team.ended(own.id)).status).toBe('COMPLETED')
  })
  expect(judge.total()).toBe(6)
  const last = await team.start(makeCases(2))
  await team.send('DELETE', `/api/credentials/${team.credentialId}`)
  const run = await working(judge, () => team.ended(last.id))
  expect(run).toMatchObject({ status: 'FAILED', reason: 'The credential of its judge no longer exists' })
})

test('a team whose judge hangs does not hold up another', async () => {
  const [slow, quick] = [await makeBatchTeam(service), await makeBatchTeam(service)]
  const hanging = Promise.withResolvers<void>()
  const judge = createTestJudge(async (_, { teamId }) => {
    if (teamId === slow.teamId) await hanging.promise
    return scored(5)
  })
  await working(judge, async () => {
    const held = [await slow.start(makeCases(40), { concurrency: 10 }), await slow.start(makeCases(40))]
    await until(() => judge.total() >= 8)
    const { id } = await quick.start(makeCases(30))
    expect(await quick.ended(id)).toMatchObject({ status: 'COMPLETED', passedCases: 30 })
    for (const { id } of held) await slow.send('POST', `${slow.path}/${id}/cancel`)
    hanging.resolve()
  })
})

test('two batches are compared by the cases that both have', async () => {
  const team = await makeBatchTeam(service)
  const judge = createTestJudge((_, { place, input }) => scored(input.better ? 5 : 2 + (place % 2)))
  await working(judge, async () => {
    const cases = makeCases(20)
    const dims = { evalDimensions: ['relevance'] }
    const before = await team.start([...cases, { input: { only: 1 }, output: 'x' }], dims)
    await team.ended(before.id)
    const same = await team.start(cases, dims)
    await team.ended(same.id)
    const { body } = await team.send('GET', `${team.path}/${before.id}/compare?with=${same.id}`)
    expect(body).toMatchObject({ paired: 20, unpaired: { before: 1, after: 0 } })
    expect(body.compositeScore).toMatchObject({ n: 20, meanDifference: 0, pValue: 1, better: 0, worse: 0 })
    expect(body.pass).toMatchObject({ before: 0.5, after: 0.5, gained: 0, lost: 0, pValue: 1 })
  })
  const better = createTestJudge(() => scored(5))
  await working(better, async () => {
    const [, first] = (await team.send('GET', `${team.path}?size=2`)).body.content
    const after = await team.start(makeCases(20), { evalDimensions: ['relevance'] })
    await team.ended(after.id)
    const { body } = await team.send('GET', `${team.path}/${first.id}/compare?with=${after.id}`)
    expect(body.compositeScore).toMatchObject({
      before: 2.5,
      after: 5,
      meanDifference: 2.5,
      better: 20,
      worse: 0,
    })
    expect(body.compositeScore.pValue).toBeLessThan(0.001)
    expect(body.pass).toMatchObject({ gained: 10, lost: 0, pValue: 2 / 2 ** 10 })
  })
})

test('the export is masked, and guarded against formulas', async () => {
  const team = await makeBatchTeam(service)
  const output = '=HYPERLINK("x") from grace.hopper@example.org'
  const { id } = await team.start([
    { input: { a: 1 }, output },
    { input: { a: 2 }, output: 'plain' },
  ])
  await working(createTestJudge(), () => team.ended(id))
  const csv = await team.send('GET', `${team.path}/${id}/export?format=csv`).catch((error) => error)
  expect(csv).toBeInstanceOf(SyntaxError)
  const text = await (
    await service.request(`${team.path}/${id}/export?format=csv`, { as: team.cookie })
  ).text()
  expect(text.split('\r\n')).toHaveLength(4)
  expect(text).toContain(`"'=HYPERLINK(""x"")`)
  expect(text).not.toContain('hopper')
  const { body } = await team.send('GET', `${team.path}/${id}/export`)
  expect(body).toHaveLength(2)
  expect(body[0]).toMatchObject({ testCaseIndex: 0, passed: true })
  expect(JSON.stringify(body)).not.toContain('hopper')
})

test('its events tell how far it is, and end with it', async () => {
  const team = await makeBatchTeam(service)
  const { id } = await team.start(makeCases(3))
  const path = `${team.path}/${id}/events`
  const stream = readEvents(await service.request(path, { as: team.cookie }))
  expect(await stream.next()).toMatchObject({
    event: 'progress',
    data: { status: 'PENDING', completedCases: 0 },
  })
  await working(createTestJudge(), () => team.ended(id))
  const rest = await stream.all()
  expect(rest.at(-1)).toMatchObject({ event: 'end', data: { status: 'COMPLETED' } })
  expect(rest.at(-2)).toMatchObject({ event: 'progress', data: { status: 'COMPLETED', completedCases: 3 } })
  const again = await service.request(path, {
    as: team.cookie,
    headers: { 'last-event-id': rest.at(-1)!.id },
  })
  expect(again.status).toBe(204)
  const late = readEvents(
    await service.request(path, { as: team.cookie, headers: { 'last-event-id': rest.at(-2)!.id } }),
  )
  expect((await late.all()).map(({ event }) => event)).toEqual(['end'])
})

test('the events end when the team is deleted', async () => {
  const team = await makeBatchTeam(service)
  const { id } = await team.start(makeCases(3))
  const stream = readEvents(await service.request(`${team.path}/${id}/events`, { as: team.cookie }))
  await stream.next()
  expect((await team.send('DELETE', `/api/teams/${team.teamId}`)).status).toBe(200)
  expect(await stream.all()).toEqual([])
})

test('batches that ended 180 days ago, and all but the last 200 of a workflow, are removed', {
  tags: 'long',
}, async () => {
  const team = await makeBatchTeam(service)
  const old = await team.start(makeCases(3))
  const open = await team.start(makeCases(3))
  await team.send('POST', `${team.path}/${old.id}/cancel`)
  const long = new Date(Date.now() - 181 * 86_400_000)
  await service.store.db
    .updateTable('batchRuns')
    .set({ createdAt: long })
    .where('workflowId', '=', team.workflowId)
    .execute()
  for (let n = 0; n < 202; n++) {
    const { id } = await team.start(makeCases(1))
    await team.send('POST', `${team.path}/${id}/cancel`)
  }
  expect(await purgeBatches(service.store, new AbortController().signal)).toBe(3)
  const { body } = await team.send('GET', `${team.path}?size=1&page=200`)
  // One that is under way stays, however old it is.
  expect([body.totalElements, body.content[0].id]).toEqual([201, open.id])
  expect((await team.send('GET', `${team.path}/${old.id}`)).status).toBe(404)
})
