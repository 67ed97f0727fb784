import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())
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

test('notes of the canvas are kept with the settings, make no version, and go along with an export', async () => {
  expect((await create()).settings.notes).toEqual([])
  const { id } = await create({ notes: [note] })
  const { colour: _, ...plain } = { ...note, id: 'n2', text: '' }
  const { body } = await call<Saved>('PUT', `/api/workflows/${id}`, { settings: { notes: [note, plain] } })
  const both = [note, { ...plain, colour: 'yellow' }]
  expect(body).toMatchObject({ version: 1, settings: { notes: both } })
  const { body: document } = await call<object>('GET', `/api/workflows/${id}/export`)
  const asked = { teamId, name: randomUUID(), workflow: document }
  const copy = await call<Saved>('POST', '/api/workflows/import', asked)
  expect((await call<Saved>('GET', `/api/workflows/${copy.body.id}`)).body.settings.notes).toEqual(both)
  await call('PUT', `/api/workflows/${id}`, { settings: { timeoutMs: 9_000 } })
  expect((await call<Saved>('GET', `/api/workflows/${id}`)).body.settings.notes).toEqual(both)
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
