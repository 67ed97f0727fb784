import { expect, vi } from 'vitest'
import { nodeExecutionId } from '../../../db/executions/records/projection.ts'
import { type ExecutionBody, nodeOf } from '../client.ts'
import type { Target } from '../servers/target.ts'
import { edges } from './graphs.ts'
import type { Installation } from './installation.ts'
import { checkCalls, type Scenario, WITHIN_MS } from './scenarios.ts'

type Waits = { content: { id: string; kind: string; nodeId: string; iteration: string | null }[] }

const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }

/** Checks the status of a response; a failure shows its body. */
async function expectStatus(responding: Promise<Response>, status: number): Promise<void> {
  const response = await responding
  const text = await response.text()
  expect({ status: response.status, text }).toEqual({ status, text: expect.anything() })
}

/**
 * Executions that wait for somebody: two approvals in a loop, an event, and an approval that times out during
 * the failure. One execution gets all its answers right before the failure, the other one after the recovery.
 */
export async function createPauseScenario(host: Installation, target: Target): Promise<Scenario> {
  const set = (id: string, values: Record<string, string>, parentId = {}) => ({
    id,
    type: 'SET',
    config: { values },
    ...parentId,
  })
  const inside = { parentId: 'each' }
  const workflowId = await host.create({
    nodes: [
      start,
      { id: 'each', type: 'FOR_EACH', config: { items: ['a', 'b'], concurrency: 2 } },
      { id: 'ask', ...inside, type: 'APPROVAL', config: { message: 'May {{ $item }}?' } },
      set('yes', { yes: '{{ $item }}' }, inside),
      set('no', { no: '{{ $item }}' }, inside),
      { id: 'paid', type: 'WAIT_FOR_EVENT', config: { name: 'paid' } },
      { id: 'late', type: 'APPROVAL', config: { timeoutMs: 6_000 } },
      { id: 'join', type: 'MERGE', config: { mode: 'append' } },
      { id: 'call', type: 'HTTP_REQUEST', config: { method: 'POST', url: `${target.url}/slow?ms=100` } },
      set('last', { asked: '{{ $nodes.each.items }}', paid: '{{ $nodes.paid.sum }}' }),
    ],
    edges: edges(
      'start -> each',
      'ask:approved -> yes',
      'ask:rejected -> no',
      'start -> paid',
      'start -> late',
      'each paid late:timeout -> join',
      'join -> call',
      'call -> last',
    ),
  })
  let before = ''
  let after = ''
  let open: Waits['content'] = []
  let answered: Waits['content'] = []

  const readWaits = async (id: string) =>
    (await host.ask<Waits>('GET', `/api/executions/${id}/waits`)).content.filter(
      ({ nodeId }) => nodeId !== 'late',
    )
  const areOpen = (id: string) =>
    vi.waitFor(
      async () => {
        const waits = await readWaits(id)
        expect(waits).toHaveLength(3)
        return waits
      },
      { timeout: 60_000, interval: 50 },
    )

  async function answer(id: string, waits: Waits['content']): Promise<void> {
    await Promise.all(
      waits.map(({ id: approval, kind, iteration }) => {
        if (kind === 'EVENT')
          return expectStatus(host.post(`/api/executions/${id}/events/paid`, { sum: 7 }), 200)
        const decision = iteration === '0' ? 'approved' : 'rejected'
        return expectStatus(host.post(`/api/approvals/${approval}`, { decision }), 200)
      }),
    )
  }

  async function check(id: string, brokenAt: number): Promise<ExecutionBody> {
    const run = await host.ended(id, WITHIN_MS)
    expect({ status: run.status, why: run.errorMessage }).toEqual({ status: 'SUCCESS', why: null })
    expect(run.outputData).toEqual({ asked: [{ yes: 'a' }, { no: 'b' }], paid: 7 })
    expect(run.nodeExecutions.map(({ nodeId, status }) => `${nodeId} ${status}`).sort()).toEqual(
      ['start', 'each', 'ask', 'ask', 'yes', 'no', 'paid', 'late', 'join', 'call', 'last']
        .map((nodeId) => `${nodeId} SUCCESS`)
        .sort(),
    )
    for (const node of run.nodeExecutions) checkCalls(target, id, node, brokenAt)
    expect(nodeOf(run, 'late')).toMatchObject({ outputData: { decision: 'timeout', timedOut: true } })
    expect(nodeOf(run, 'late').durationMs).toBeGreaterThan(5_990)
    expect(await readWaits(id)).toEqual([])
    return run
  }

  return {
    name: 'pauses',
    workflowIds: [workflowId],
    async early() {
      before = await host.execute(workflowId)
      after = await host.execute(workflowId)
    },
    async middle() {
      open = await areOpen(after)
      answered = await areOpen(before)
    },
    late: () => answer(before, answered),
    async check(brokenAt) {
      expect(await readWaits(after)).toEqual(open)
      await answer(after, open)
      return [await check(before, brokenAt), await check(after, brokenAt)]
    },
  }
}

/**
 * Executions that wait for their children, executions of another workflow; and one, with children, whose
 * cancel is accepted right before the failure.
 */
export async function createFamilyScenario(host: Installation, target: Target): Promise<Scenario> {
  const createChild = (path: string) =>
    host.create({
      nodes: [
        { id: 'called', type: 'SUB_WORKFLOW_TRIGGER', config: {} },
        { id: 'call', type: 'HTTP_REQUEST', config: { method: 'POST', url: target.url + path } },
        { id: 'key', type: 'SET', config: { values: { key: '{{ $input.body.key }}' } } },
      ],
      edges: edges('called -> call', 'call -> key'),
    })
  const createParent = (child: string) =>
    host.create({
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: ['a', 'b'], concurrency: 2 } },
        {
          id: 'sub',
          parentId: 'each',
          type: 'SUB_WORKFLOW',
          config: { workflowId: child, input: { key: '{{ $item }}' } },
        },
      ],
      edges: edges('start -> each'),
    })
  const child = await createChild('/slow?ms=1000&key={{ $trigger.key }}')
  const hanging = await createChild('/hang')
  const parent = await createParent(child)
  const cancelled = await createParent(hanging)
  let ids: string[] = []
  let ending = ''

  const childrenOf = (id: string) => ['0', '1'].map((iteration) => nodeExecutionId(id, 'sub', iteration))

  async function check(id: string, brokenAt: number): Promise<ExecutionBody[]> {
    const run = await host.ended(id, WITHIN_MS)
    expect({ status: run.status, why: run.errorMessage }).toEqual({ status: 'SUCCESS', why: null })
    expect(run.outputData).toEqual({ items: [{ key: 'a' }, { key: 'b' }] })
    expect(run.nodeExecutions.map(({ nodeId, status }) => `${nodeId} ${status}`)).toEqual(
      ['start', 'each', 'sub', 'sub'].map((nodeId) => `${nodeId} SUCCESS`),
    )
    const children = await Promise.all(childrenOf(id).map((one) => host.read(one)))
    for (const one of children) {
      expect({ status: one.status, why: one.errorMessage }).toEqual({ status: 'SUCCESS', why: null })
      expect(one.trigger).toBe('SUB_WORKFLOW')
      for (const node of one.nodeExecutions) checkCalls(target, one.id, node, brokenAt)
    }
    return [run, ...children]
  }

  return {
    name: 'families',
    workflowIds: [child, hanging, parent, cancelled],
    async early() {
      ending = await host.execute(cancelled)
    },
    async middle() {
      ids.push(await host.execute(parent))
      const calls = childrenOf(ending).map((id) => `${id}:call`)
      await target.until(() => calls.every((key) => target.calls.some((call) => call.key === key)))
    },
    async late() {
      ids.push(await host.execute(parent))
      await expectStatus(host.post(`/api/executions/${ending}/cancel`), 200)
    },
    async check(brokenAt) {
      const ended: ExecutionBody[] = []
      for (const id of ids) ended.push(...(await check(id, brokenAt)))
      ids = []
      for (const id of [ending, ...childrenOf(ending)]) {
        const run = await host.ended(id, WITHIN_MS)
        expect(run.status).toBe('CANCELLED')
        expect(new Set(run.nodeExecutions.map(({ status }) => status))).toEqual(
          new Set(['SUCCESS', 'CANCELLED']),
        )
        ended.push(run)
      }
      return ended
    },
  }
}
