import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { teamId } = service

const note = {
  id: 'n1',
  text: 'Ask Jana before changing this.\nOr Ada.',
  position: { x: -20.5, y: 40 },
  size: { width: 240, height: 120 },
  colour: 'blue',
}
type Saved = { id: string; version: number; settings: { notes: object[] } }

async function call<T>(method: string, path: string, json?: object): Promise<{ status: number; body: T }> {
  return (await service.call(method, path, service.admin, json)) as { status: number; body: T }
}

async function create(settings?: object): Promise<Saved> {
  const made = await call<Saved>('POST', '/api/workflows', { teamId, name: randomUUID(), settings })
  expect(made.status).toBe(201)
  return (await call<Saved>('GET', `/api/workflows/${made.body.id}`)).body
}

test('notes of the canvas belong to a version: compared, restored and exported with it', async () => {
  expect((await create()).settings.notes).toEqual([])
  const { id } = await create({ notes: [note] })
  const { colour: _, ...plain } = { ...note, id: 'n2', text: '' }
  const moved = { ...note, position: { x: 0, y: 40 }, text: 'Ask Ada.' }
  const { body } = await call<Saved>('PUT', `/api/workflows/${id}`, { settings: { notes: [moved, plain] } })
  const both = [moved, { ...plain, colour: 'yellow' }]
  expect(body).toMatchObject({ version: 2, settings: { notes: both } })
  const again = await call<Saved>('PUT', `/api/workflows/${id}`, { settings: { notes: both } })
  expect(again.body.version).toBe(2)
  const { body: one } = await call<object>('GET', `/api/workflows/${id}/versions/1`)
  expect(one).toMatchObject({ notes: [note] })
  const { body: diff } = await call<object>('GET', `/api/workflows/${id}/versions/1/diff/2`)
  expect(diff).toMatchObject({
    nodes: { added: [], removed: [], changed: [] },
    notes: {
      added: [both[1]],
      removed: [],
      changed: [
        {
          id: 'n1',
          changes: [
            { path: 'text', from: note.text, to: 'Ask Ada.' },
            { path: 'position.x', from: -20.5, to: 0 },
          ],
        },
      ],
    },
  })
  const { body: document } = await call<object>('GET', `/api/workflows/${id}/export`)
  const asked = { teamId, name: randomUUID(), workflow: document }
  const copy = await call<Saved>('POST', '/api/workflows/import', asked)
  expect((await call<Saved>('GET', `/api/workflows/${copy.body.id}`)).body.settings.notes).toEqual(both)
  await call('PUT', `/api/workflows/${id}`, { settings: { timeoutMs: 9_000 } })
  const kept = (await call<Saved>('GET', `/api/workflows/${id}`)).body
  expect(kept).toMatchObject({ version: 2, settings: { notes: both } })
  const back = await call<Saved>('POST', `/api/workflows/${id}/versions/1/restore`)
  expect(back.body).toMatchObject({ version: 3, settings: { notes: [note], timeoutMs: 9_000 } })
})

test('what a process of the release before saves has the notes of the workflow', async () => {
  const { id } = await create({ notes: [note] })
  const { db } = service.store
  // It knows nothing of the column.
  await sql`insert into workflow_versions (workflow_id, version, nodes, edges, expressions, strict, node_count)
    select workflow_id, 2, nodes, edges, expressions, strict, node_count from workflow_versions
    where workflow_id = ${id}`.execute(db)
  const { body } = await call<object>('GET', `/api/workflows/${id}/versions/2`)
  expect(body).toMatchObject({ version: 2, notes: [note] })
})

test('sticky notes of n8n are notes at their places', async () => {
  const sticky = (name: string, parameters: object) => {
    return { name, type: 'n8n-nodes-base.stickyNote', typeVersion: 1, position: [-60, -200], parameters }
  }
  const workflow = {
    nodes: [
      { name: 'Start', type: 'n8n-nodes-base.manualTrigger', position: [0, 0], parameters: {} },
      sticky('a', { content: '## Orders\n[docs](https://example.com)', height: 300, width: 460, color: 4 }),
      sticky('b', { content: 'x'.repeat(6_000), color: '#9b59d0' }),
    ],
    connections: {},
  }
  const { body } = await call<{ id: string; report: { problems: object[]; stickyNotes: number } }>(
    'POST',
    '/api/workflows/import',
    { teamId, name: randomUUID(), workflow },
  )
  expect(body.report).toMatchObject({ stickyNotes: 2, problems: [{ kind: 'note', node: null }] })
  const made = (await call<Saved & { description: null }>('GET', `/api/workflows/${body.id}`)).body
  expect(made.description).toBeNull()
  expect(made.settings.notes).toEqual([
    {
      ...{ id: 'note1', text: '## Orders\n[docs](https://example.com)', colour: 'green' },
      ...{ position: { x: -60, y: -200 }, size: { width: 460, height: 300 } },
    },
    {
      ...{ id: 'note2', text: 'x'.repeat(5_000), colour: 'purple' },
      ...{ position: { x: -60, y: -200 }, size: { width: 240, height: 160 } },
    },
  ])
})

test('everything that is wrong with a note is named', async () => {
  const { id } = await create()
  const wrong = { ...note, text: 'x'.repeat(5_001), size: { width: 0, height: 1 }, colour: 'pink' }
  const put = (notes: object[]) =>
    call<{ errors: { path: string }[] }>('PUT', `/api/workflows/${id}`, { settings: { notes } })
  const refused = await put([wrong])
  expect(refused.status).toBe(400)
  expect(refused.body.errors.map(({ path }) => path)).toEqual([
    'settings.notes[0].text',
    'settings.notes[0].size.width',
    'settings.notes[0].colour',
  ])
  for (const notes of [[note, note], Array.from({ length: 101 }, (_, at) => ({ ...note, id: `n${at}` }))]) {
    const { status, body } = await put(notes)
    expect([status, body.errors.map(({ path }) => path)]).toEqual([400, ['settings.notes']])
  }
})
