import { expect, test } from 'vitest'
import { completeReport, type ImportReport } from '../../../workflows/n8n/report.ts'

type Problem = ImportReport['problems'][number]

test('what several nodes have in common is said once, with their types and the way out', () => {
  const lost = (node: string, message: string): Problem => ({
    ...{ node, path: 'type', kind: 'node', message, original: null },
  })
  const named = (node: string) => `It executes the workflow "${node}": name it in "workflows".`
  const problems = [
    lost('Ask', 'It runs a command.'),
    ...['Read', 'Write'].map((node) => lost(node, 'It uses the disk: take files by a webhook.')),
    ...['One', 'Two', 'Three'].map((node) => lost(node, named(node))),
    { ...lost('Read', 'Pass it.'), kind: 'pinned' as const },
  ]
  const types = { Ask: 'executeCommand', Read: 'readFile', Write: 'writeFile' }
  const nodes = [...new Set(problems.map(({ node }) => node!))]
  const mapped = nodes.map((node) => ({
    ...{ node, id: node, as: 'STOP_AND_ERROR', state: 'stopped' as const },
    type: types[node as keyof typeof types] ?? 'executeWorkflow',
  }))
  const { groups } = completeReport({ mapped, problems, stickyNotes: 0, credentials: [] })
  expect(groups.map(({ kind, count }) => [kind, count])).toEqual([
    ['node', 6],
    ['pinned', 1],
  ])
  expect(groups[0]!.causes).toEqual([
    {
      cause: 'It executes the workflow "...": name it in "...".',
      ...{ types: ['executeWorkflow'], nodes: ['One', 'Two', 'Three'], count: 3 },
    },
    {
      cause: 'It uses the disk: take files by a webhook.',
      ...{ types: ['readFile', 'writeFile'], nodes: ['Read', 'Write'], count: 2 },
    },
    { cause: 'It runs a command.', types: ['executeCommand'], nodes: ['Ask'], count: 1 },
  ])
})
