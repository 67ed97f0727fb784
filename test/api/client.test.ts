import { expect, test } from 'vitest'
import { createClient } from '../../api/client.ts'
import { keep } from '../support/keep.ts'
import { shareRunning } from '../support/running.ts'

const host = await keep(shareRunning())
const address = await host.listen()
const token = await host.token('BUILDER')

test('the typed client creates a workflow, executes it and reads the execution, over real HTTP', async () => {
  const { api } = createClient(address, { token })
  const made = await api.workflows.$post({
    json: {
      teamId: host.teamId,
      name: 'typed',
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER' },
        { id: 'sum', type: 'SET', config: { values: { sum: '{{ $input.a + 1 }}' } } },
      ],
      edges: [{ source: 'start', target: 'sum' }],
    },
  })
  if (!made.ok) throw new Error((await made.json()).message)
  const workflow = await made.json()
  const name: string = workflow.name
  expect(name).toBe('typed')
  // @ts-expect-error: a workflow has no such field
  expect(workflow.colour).toBeUndefined()

  const started = await api.workflows[':id'].execute.$post({
    param: { id: workflow.id },
    json: { teamId: host.teamId, data: { a: 1 } },
  })
  if (!started.ok) throw new Error((await started.json()).message)
  const { executionId } = await started.json()
  const read = await api.executions[':id'].$get({ param: { id: executionId }, query: { waitMs: '60000' } })
  if (!read.ok) throw new Error((await read.json()).message)
  const execution = await read.json()
  const [, sum] = execution.nodeExecutions
  // Times are strings in JSON, and the types say so.
  const began: string | null = execution.startedAt
  expect([execution.status, sum?.outputData, typeof began]).toEqual(['SUCCESS', { sum: 2 }, 'string'])
})

test('the compiler checks the input of a route', async () => {
  const { api } = createClient(address, { token })
  // @ts-expect-error: the body must have a teamId and a name
  expect((await api.workflows.$post({ json: { title: 'x' } })).status).toBe(400)
  // @ts-expect-error: the query must have a teamId
  expect((await api.workflows.$get({ query: { page: '0' } })).status).toBe(400)
  const list = await api.workflows.$get({ query: { teamId: host.teamId, size: '1' } })
  if (!list.ok) throw new Error((await list.json()).message)
  const count: number = (await list.json()).totalElements
  expect(count).toBeGreaterThan(0)
})

test('errors are typed too, and a custom fetch can send the cookie', async () => {
  const { api } = createClient(address, {
    fetch: (input, init) => fetch(input, { ...init, headers: { ...init?.headers, cookie: host.admin } }),
  })
  const response = await api.workflows[':id'].$get({ param: { id: crypto.randomUUID() } })
  if (response.ok) throw new Error('the workflow should not exist')
  const { status, error, message } = await response.json()
  expect([status, error, message]).toEqual([404, 'Not Found', 'There is no such workflow'])
  const stranger = await createClient(address).api.workflows[':id'].$get({
    param: { id: crypto.randomUUID() },
  })
  expect(stranger.status).toBe(401)
})
