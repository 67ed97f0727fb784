import { expect, test } from 'vitest'
import { readTopics } from '../../n8n/cases.ts'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const builder = (await service.signUp('BUILDER')).cookie

const LOOPS = readTopics().flatMap(({ cases }) =>
  cases.filter(({ workflow }) => workflow.nodes.some(({ type }) => type.endsWith('.splitInBatches'))),
)

test.each([
  ['a size of batches that is computed', { parameters: { batchSize: '={{ $json.n }}' } }],
  ['a reset', { parameters: { options: { reset: true } } }],
  ['an unknown type', { type: 'n8n-nodes-base.unheardOf' }],
  ['the first version', { typeVersion: 1 }],
  ['a computed size while it is disabled', { parameters: { batchSize: '={{ $json.n }}' }, disabled: true }],
])('every loop of the corpus is imported with %s at its head, and the report tells', async (_, change) => {
  expect(LOOPS.length).toBeGreaterThan(5)
  for (const { name, workflow } of LOOPS) {
    const isHead = ({ type }: { type: string }) => type.endsWith('.splitInBatches')
    const nodes = workflow.nodes.map((node) => (isHead(node) ? { ...node, ...change } : node))
    const given = {
      teamId: service.teamId,
      name: `n8n ${crypto.randomUUID()}`,
      workflow: { ...workflow, nodes },
    }
    const { status, body } = await service.call('POST', '/api/workflows/import', builder, given)
    expect([name, status, body.errors]).toEqual([name, 201, undefined])
    expect(body.report.problems.length).toBeGreaterThan(0)
    const heads = nodes.filter((_, at) => isHead(workflow.nodes[at]!)).map((node) => node.name)
    for (const head of heads)
      expect(body.report.mapped).toContainEqual(expect.objectContaining({ node: head, as: 'STOP_AND_ERROR' }))
  }
})
