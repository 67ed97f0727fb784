import { expect, test } from 'vitest'
import { createTestJudge, makeBatchTeam, scored, startJob } from '../../../support/evaluation/batches.ts'
import { keep } from '../../../support/keep.ts'
import { shareRunning } from '../../../support/running.ts'
import type { Body } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'

const host = await keep(shareRunning())

const NODES = [
  { id: 'start', type: 'MANUAL_TRIGGER' },
  { id: 'set', type: 'SET', config: { values: { said: '{{ $trigger.question & "!" }}' } } },
]
const EDGES = [{ source: 'start', target: 'set' }]

test('cases without an output get it from an execution of the workflow, one each', async () => {
  const team = await makeBatchTeam(host, NODES, EDGES)
  const seen: string[] = []
  const judge = createTestJudge(({ material }) => {
    seen.push(material.output)
    return scored(5)
  })
  const end = startJob(host, judge.judge)
  try {
    const cases = [0, 1, 2].map((at) => ({ input: { question: `Q ${at}` } }))
    const refused = await team.send('POST', team.path, { ...team.judge, testCases: cases })
    expect(refused.status).toBe(400)
    const { id } = await team.start([...cases, { input: { question: 'given' }, output: 'given' }], {
      runWorkflow: true,
      evalDimensions: ['relevance'],
    })
    expect(await team.ended(id)).toMatchObject({ status: 'COMPLETED', passedCases: 4 })
    const results = await team.results(id)
    expect(results.map(({ actualOutput }) => actualOutput)).toEqual([
      ...['{"said":"Q 0!"}', '{"said":"Q 1!"}', '{"said":"Q 2!"}', 'given'],
    ])
    expect(results[3].executionId).toBeNull()
    const run = (await team.send('GET', `/api/executions/${results[0].executionId}`)).body
    expect(run).toMatchObject({ trigger: 'EVALUATION', status: 'SUCCESS', workflowId: team.workflowId })
    const { total } = await host.store.db
      .selectFrom('executions')
      .where('workflowId', '=', team.workflowId)
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow()
    expect(Number(total)).toBe(3)
  } finally {
    await end()
  }
})

test('a run that fails fails its case, and starts no error workflow', async () => {
  const errors = await makeBatchTeam(host)
  const failing = [NODES[0]!, { id: 'set', type: 'SET', config: { values: { said: '{{ $error("no") }}' } } }]
  const alarm = {
    nodes: [{ id: 'failed', type: 'ERROR_TRIGGER' }],
    edges: [],
    name: 'Alarm',
    teamId: errors.teamId,
  }
  const alarmId = (await errors.send('POST', '/api/workflows', alarm)).body.id
  const graph = { nodes: failing, edges: EDGES, settings: { errorWorkflowId: alarmId } }
  expect((await errors.send('PUT', `/api/workflows/${errors.workflowId}`, graph)).status).toBe(200)
  const end = startJob(host, createTestJudge().judge)
  try {
    const { id } = await errors.start([{ input: {} }], { runWorkflow: true })
    expect(await errors.ended(id)).toMatchObject({ status: 'COMPLETED', failedCases: 1, passedCases: 0 })
    const [one] = await errors.results(id)
    expect(one).toMatchObject({ status: 'FAILED', passed: false, actualOutput: null })
    expect(one.reason).toContain('The execution ended FAILED')
    const alarms = await errors.send('GET', `/api/executions?workflowId=${alarmId}`)
    expect(alarms.body.content).toEqual([])
  } finally {
    await end()
  }
})

test('sub-workflows of a case are of the evaluation too: they are not judged, and start no error workflow', async () => {
  const team = await makeBatchTeam(host)
  const make = async (name: string, more: object): Promise<string> =>
    (await team.send('POST', '/api/workflows', { name, teamId: team.teamId, edges: [], ...more })).body.id
  const errorWorkflowId = await make('Alarm', { nodes: [{ id: 'failed', type: 'ERROR_TRIGGER' }] })
  const child = await make('Child', {
    nodes: [
      { id: 'in', type: 'SUB_WORKFLOW_TRIGGER' },
      { id: 'set', type: 'SET', config: { values: { said: '{{ $trigger.bad ? $error("no") : "fine" }}' } } },
    ],
    edges: [{ source: 'in', target: 'set' }],
    settings: { errorWorkflowId },
  })
  const nodes = [
    NODES[0]!,
    {
      id: 'set',
      type: 'SUB_WORKFLOW',
      config: { workflowId: child, input: { bad: '{{ $trigger.bad }}' } },
    },
  ]
  await team.send('PUT', `/api/workflows/${team.workflowId}`, { nodes, edges: EDGES })
  const { judgeProvider: evalProvider, judgeModel: evalModel } = team.judge
  const config = { evalProvider, evalModel, evalCredentialId: team.credentialId }
  const path = `/api/monitoring/workflow/${child}`
  const sampled = { ...config, evalEnabled: true, evalSamplingRate: 100 }
  expect((await team.send('PUT', `${path}/eval-config`, sampled)).status).toBe(200)
  const end = startJob(host, createTestJudge().judge)
  try {
    const cases = [{ input: { bad: false } }, { input: { bad: true } }]
    const { id } = await team.start(cases, { runWorkflow: true, evalDimensions: ['relevance'] })
    expect(await team.ended(id)).toMatchObject({ passedCases: 1, failedCases: 1 })
    const { content } = (await team.send('GET', `/api/executions?workflowId=${child}`)).body
    const runs = await Promise.all(
      content.map(async ({ id }: Body) => (await team.send('GET', `/api/executions/${id}`)).body),
    )
    expect(runs.map(({ trigger, status }) => [trigger, status]).sort()).toEqual([
      ['EVALUATION', 'FAILED'],
      ['EVALUATION', 'SUCCESS'],
    ])
    expect((await team.send('GET', `${path}/evaluations`)).body.content).toEqual([])
    const alarms = await team.send('GET', `/api/executions?workflowId=${errorWorkflowId}`)
    expect(alarms.body.content).toEqual([])
  } finally {
    await end()
  }
})

test('a batch that is cancelled cancels the executions that it waits for', async () => {
  const waiting = [NODES[0]!, { id: 'set', type: 'WAIT', config: { durationMs: 600_000 } }]
  const team = await makeBatchTeam(host, waiting, EDGES)
  const end = startJob(host, createTestJudge().judge)
  try {
    const { id } = await team.start([{ input: {} }, { input: {} }], { runWorkflow: true, concurrency: 1 })
    const executionId = await until(async () => (await team.results(id))[0].executionId)
    await team.send('POST', `${team.path}/${id}/cancel`)
    const ended = await until(async () => {
      const run = (await team.send('GET', `/api/executions/${executionId}`)).body
      return run.status === 'CANCELLED' && run
    })
    expect(ended.status).toBe('CANCELLED')
    expect((await team.results(id)).map(({ status }) => status)).toEqual(['CANCELLED', 'CANCELLED'])
  } finally {
    await end()
  }
})
