import { expect, test } from 'vitest'
import { keep } from '../../../support/keep.ts'
import { shareRunning } from '../../../support/running.ts'
import { startTarget } from '../../../support/servers/target.ts'
import type { Body } from '../../../support/service.ts'

const target = await keep(startTarget())
const service = await keep(shareRunning())
const { teamId } = service
const other = await service.otherTeam()
const operator = (await service.signUp('OPERATOR')).cookie

const call = (id: string, path: string) => ({
  id,
  type: 'HTTP_REQUEST',
  retry: { maxAttempts: 1 },
  config: { url: target.url + path },
})
const link = (source: string, to: string, sourceHandle?: string) => ({
  source,
  target: to,
  ...(sourceHandle ? { sourceHandle } : {}),
})

/** start -> fetch -> big? -> (send -> after | less), and each -> inside; start -> side; hook leads to alone. */
const nodes = [
  { id: 'start', type: 'MANUAL_TRIGGER' },
  { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in' } },
  call('fetch', '/ok'),
  { id: 'big', type: 'IF_ELSE', config: { condition: '{{ $trigger.n > 1 }}' } },
  { id: 'less', type: 'NO_OP' },
  call('send', '/slow?ms=1'),
  call('after', '/big?bytes=1'),
  call('side', '/dirty'),
  { id: 'each', type: 'FOR_EACH', config: { items: '{{ [1, 2] }}' } },
  { id: 'inside', type: 'SET', parentId: 'each', config: { values: { n: '{{ $item }}' } } },
  { id: 'alone', type: 'NO_OP' },
  { id: 'off', type: 'NO_OP', disabled: true },
]
const edges = [
  link('start', 'fetch'),
  link('fetch', 'big'),
  link('big', 'send', 'true'),
  link('big', 'less', 'false'),
  link('send', 'after'),
  link('start', 'side'),
  link('start', 'each'),
  link('each', 'off'),
  link('hook', 'alone'),
]
const id = await service.create({ nodes, edges } as never)

const execute = (asked: object, as = service.admin, headers = {}, workflow = id) =>
  service.call('POST', `/api/workflows/${workflow}/execute`, as, { teamId, ...asked }, headers)

async function executed(asked: object): Promise<Body> {
  const { status, body } = await execute(asked)
  expect(status, JSON.stringify(body)).toBe(202)
  const { takenOver } = body
  return { ...(await service.ended(body.executionId)), takenOver }
}
const executedIn = (run: Body) =>
  run.nodeExecutions
    .filter(({ takenFrom }: Body) => takenFrom === null)
    .map(({ nodeId, iteration }: Body) => (iteration === null ? nodeId : `${nodeId}#${iteration}`))
const callsTo = (path: string) => target.calls.filter((one) => one.path === path).length

test('a node is executed with all that leads to it, and nothing else', async () => {
  const run = await executed({ data: { n: 2 }, until: 'send' })
  expect(run).toMatchObject({ status: 'SUCCESS', until: 'send', onlyNode: null, inputData: { n: 2 } })
  expect(executedIn(run)).toEqual(['start', 'fetch', 'big', 'send'])
  expect(run.outputData).toEqual(run.nodeExecutions.at(-1).outputData)
  expect([callsTo('/ok'), callsTo('/slow'), callsTo('/big'), callsTo('/dirty')]).toEqual([1, 1, 0, 0])
  const other = await executed({ data: { n: 1 }, until: 'send' })
  expect(executedIn(other)).toEqual(['start', 'fetch', 'big'])
  expect(executedIn(await executed({ until: 'each' }))).toEqual(['start', 'each', 'inside#0', 'inside#1'])
  expect(executedIn(await executed({ until: 'start' }))).toEqual(['start'])
  expect(executedIn(await executed({ trigger: 'hook', until: 'alone', request: {} }))).toEqual([
    'hook',
    'alone',
  ])
})

test('outputs of another execution are reused, but not that of the node itself', async () => {
  const first = await executed({ data: { n: 2 }, until: 'fetch' })
  const before = [callsTo('/ok'), callsTo('/slow'), callsTo('/big')]
  const second = await executed({ until: 'send', reuseFrom: first.id })
  expect(second).toMatchObject({
    status: 'SUCCESS',
    takenOver: ['fetch'],
    inputData: { n: 2 },
    retriedFrom: null,
  })
  expect(second.nodeExecutions.find(({ nodeId }: Body) => nodeId === 'fetch').takenFrom).toBe(first.id)
  const third = await executed({ until: 'send', reuseFrom: second.id, data: { n: 2 } })
  expect(third.takenOver).toEqual(['fetch', 'big'])
  expect(executedIn(third)).toEqual(['start', 'send'])
  expect([callsTo('/ok'), callsTo('/slow'), callsTo('/big')]).toEqual([before[0], before[1]! + 2, before[2]])
  const whole = await executed({ reuseFrom: third.id, pinned: { big: { output: {}, handle: 'false' } } })
  expect(whole.takenOver).toEqual(['fetch'])
  expect(executedIn(whole)).toContain('less')
  expect(executedIn(whole)).not.toContain('send')
  const path = `/api/workflows/${id}/execute?waitMs=20000`
  const waited = await service.call('POST', path, service.admin, {
    teamId,
    until: 'big',
    reuseFrom: third.id,
  })
  expect([waited.status, waited.body.takenOver]).toEqual([200, ['fetch']])
})

test('what has changed since is executed again, and a retry keeps to the part', async () => {
  const changed = await service.create({ nodes, edges } as never)
  const run = async (asked: object) => {
    const { body } = await execute(asked, service.admin, {}, changed)
    return service.ended(body.executionId)
  }
  const first = await run({ data: { n: 2 }, until: 'send' })
  const next = nodes.map((node) => (node.id === 'fetch' ? call('fetch', '/permanent') : node))
  await service.ask('PUT', `/api/workflows/${changed}`, { nodes: next, edges })
  const failed = (await run({ until: 'send', reuseFrom: first.id })) as Body
  expect([failed.workflowVersion, failed.status, executedIn(failed)]).toEqual([
    2,
    'FAILED',
    ['start', 'fetch'],
  ])
  await service.ask('PUT', `/api/workflows/${changed}`, { nodes, edges })
  const { body } = await service.call('POST', `/api/executions/${failed.id}/retry`, service.admin, {
    version: 'current',
  })
  const retried = (await service.ended(body.executionId)) as Body
  expect(retried).toMatchObject({ status: 'SUCCESS', until: 'send', workflowVersion: 3 })
  expect(executedIn(retried)).toEqual(['start', 'fetch', 'big', 'send'])
  await service.ask('PUT', `/api/workflows/${changed}`, {
    nodes: nodes.slice(0, 5),
    edges: edges.slice(0, 2),
  })
  const gone = await service.call('POST', `/api/executions/${retried.id}/rerun`, service.admin, {
    version: 'current',
  })
  expect([gone.status, gone.body.message]).toEqual([
    409,
    'Version 4 cannot be executed until "send": there is no such node',
  ])
})

test('a part that cannot be executed is refused, with all that is wrong', async () => {
  const first = await executed({ data: { n: 2 }, until: 'fetch' })
  const single = await service.call('POST', `/api/workflows/${id}/nodes/less/run`, service.admin, {})
  await service.ended(single.body.executionId)
  const second = await service.create({ nodes, edges } as never)
  const refusals: [asked: object, status: number, path: string | undefined, sentence: string][] = [
    [{ until: 'nope' }, 400, 'until', 'there is no such node'],
    [{ until: 'off' }, 400, 'until', 'is disabled'],
    [{ until: 'inside' }, 400, 'until', 'in the body of the loop "each"'],
    [{ until: 'alone' }, 400, 'until', 'the trigger "start" does not lead to it'],
    [{ reuseFrom: first.id, data: { n: 3 } }, 400, 'data', 'must be left out'],
    [{ reuseFrom: first.id, trigger: 'hook' }, 400, 'reuseFrom', 'started at "start"'],
    [{ reuseFrom: first.id, trigger: 'hook', request: {} }, 400, 'request', 'cannot be given together'],
    [{ reuseFrom: second }, 404, undefined, 'no such execution'],
    [{ reuseFrom: single.body.executionId }, 409, undefined, 'of a single node'],
  ]
  for (const [asked, status, path, sentence] of refusals) {
    const refused = await execute(asked)
    expect([refused.status, refused.body.errors?.[0].path], JSON.stringify(asked)).toEqual([status, path])
    expect(refused.body.message).toContain(sentence)
  }
  const mine = await execute({ reuseFrom: first.id }, service.admin, {}, second)
  expect([mine.status, mine.body.message]).toEqual([400, 'reuseFrom: is not an execution of this workflow'])
  const both = await execute({ until: 'nope', reuseFrom: first.id, data: {} })
  expect(both.body.errors.map(({ path }: Body) => path)).toEqual(['until', 'data'])
  for (const asked of [{ until: 'fetch' }, { reuseFrom: first.id }])
    expect((await execute(asked, operator)).status).toBe(403)
  const json = { teamId: other.teamId, name: 'Theirs', nodes, edges }
  const theirs = await service.call('POST', '/api/workflows', other.cookie, json)
  const asked = { teamId: other.teamId, reuseFrom: first.id }
  const path = `/api/workflows/${theirs.body.id}/execute`
  expect((await service.call('POST', path, other.cookie, asked)).status).toBe(403)
})

test('the same key executes a part once, and not another part', async () => {
  const key = { 'idempotency-key': 'part' }
  const first = await execute({ until: 'fetch' }, service.admin, key)
  const again = await execute({ until: 'fetch' }, service.admin, key)
  expect(again.body.executionId).toBe(first.body.executionId)
  expect((await execute({ until: 'big' }, service.admin, key)).status).toBe(409)
})
