import { expect, test } from 'vitest'
import type { ImportReport } from '../../../workflows/n8n/report.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
type Imported = { id: string; report: ImportReport }

const node = (name: string, type: string, typeVersion: number, parameters: object = {}) => ({
  ...{ name, type: `n8n-nodes-base.${type}`, typeVersion, position: [0, 0], parameters },
})
const to = (...names: string[]) => ({ main: names.map((name) => [{ node: name, type: 'main', index: 0 }]) })

/** A workflow that counts up by executing what `workflowId` says, as long as `n` is below 3. */
function counting(workflowId: unknown, callable = true) {
  const below = {
    ...{ id: 'a', leftValue: '={{ $json.n }}', rightValue: 3, operator: { type: 'number', operation: 'lt' } },
  }
  const options = { caseSensitive: true, typeValidation: 'loose' }
  const set = {
    assignments: {
      assignments: [{ id: 'b', name: 'n', type: 'number', value: '={{ ($json.n ?? 0) + 1 }}' }],
    },
  }
  return {
    id: 'theirOwnId',
    nodes: [
      node('By hand', 'manualTrigger', 1),
      ...(callable ? [node('Called', 'executeWorkflowTrigger', 1.1, { inputSource: 'passthrough' })] : []),
      node('Add', 'set', 3.4, set),
      node('Below', 'if', 2.2, { conditions: { combinator: 'and', conditions: [below], options } }),
      node('Again', 'executeWorkflow', 1.2, { workflowId, options: {} }),
    ],
    connections: { 'By hand': to('Add'), Called: to('Add'), Add: to('Below'), Below: to('Again') },
  }
}

const bring = (workflow: object, workflows = {}) =>
  host.ask<Imported>('POST', '/api/workflows/import', {
    ...{ teamId: host.teamId, name: crypto.randomUUID(), workflow, workflows },
  })
const stopsOf = ({ report }: Imported) => report.problems.filter(({ kind }) => kind === 'node')

test.each([
  ['by an expression', { __rl: true, mode: 'id', value: '={{ $workflow.id }}' }],
  ['by its own id', 'theirOwnId'],
])('a workflow that calls itself %s does so here', async (_, workflowId) => {
  const imported = await bring(counting(workflowId))
  expect(stopsOf(imported)).toEqual([])
  const run = await host.ended(await host.execute(imported.id))
  expect([run.status, run.errorMessage]).toEqual(['SUCCESS', null])
  const { content } = await host.ask<{ content: object[] }>(
    'GET',
    `/api/executions?workflowId=${imported.id}`,
  )
  expect(content).toHaveLength(3)
})

test('one without a trigger for that stops, and another one may be named by its name in n8n', async () => {
  const [stop] = stopsOf(await bring(counting('={{ $workflow.id }}', false)))
  expect(stop).toMatchObject({ node: 'Again', message: expect.stringContaining('no trigger for that') })
  const named = { __rl: true, mode: 'list', value: 'x', cachedResultName: 'Count on' }
  const [unknown] = stopsOf(await bring(counting(named)))
  expect(unknown?.message).toContain('"x" ("Count on")')
  const { id } = await bring(counting('theirOwnId'))
  expect(stopsOf(await bring(counting(named), { 'Count on': id }))).toEqual([])
})
