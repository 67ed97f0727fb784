import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { DateTime } from 'luxon'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { startShop } from '../../workflows/n8n/shop.ts'

const shop = await keep(startShop())
const host = await keep(shareRunning())

// biome-ignore lint/suspicious/noExplicitAny: responses are read field by field
type Body = any

async function template(name: string): Promise<Body> {
  const text = await readFile(new URL(`../../workflows/n8n/${name}.json`, import.meta.url), 'utf8')
  return JSON.parse(text.replaceAll('http://api.test', shop.url))
}

let count = 0
async function bring(workflow: unknown, more: object = {}): Promise<Body> {
  const json = { teamId: host.teamId, name: `imported ${++count}`, workflow, ...more }
  const answer = await host.request('/api/workflows/import', { method: 'POST', as: host.admin, json })
  const body = (await answer.json()) as Body
  expect(answer.status, JSON.stringify(body)).toBe(201)
  expect(answer.headers.get('location')).toBe(`/api/workflows/${body.id}`)
  expect(body.active).toBe(false)
  return body
}

async function runIt(id: string, data: Record<string, unknown> = {}) {
  const run = await host.ended(await host.execute(id, data))
  expect(run.errorMessage).toBeNull()
  expect(run.status).toBe('SUCCESS')
  return run
}

test('imports an n8n workflow with a webhook that checks, calls and responds', async () => {
  const { id, report } = await bring(await template('orders'))
  expect(report).toMatchObject({ problems: [], stickyNotes: 1 })
  expect(report.mapped.map(({ node, as }: Body) => `${node}: ${as}`).sort()).toEqual([
    'Create order: HTTP_REQUEST',
    'Edit Fields: SET',
    'Is valid?: IF_ELSE',
    'Respond created: RESPOND_TO_WEBHOOK',
    'Respond refused: RESPOND_TO_WEBHOOK',
    'Webhook: WEBHOOK_TRIGGER',
  ])
  const stored = await host.ask<Body>('PUT', `/api/workflows/${id}`, {
    active: true,
    name: `Orders from n8n ${randomUUID()}`,
  })
  expect(stored.settings.timeoutMs).toBe(60_000)
  const hook = (body: object, query = '') =>
    host.request(`/hooks/${id}/order-intake${query}`, { method: 'POST', json: body })
  const good = await hook({ email: 'ADA@example.com', amount: 100 }, '?urgent=1')
  expect(await good.json()).toEqual({ id: 'o-1', for: 'Unknown' })
  expect([good.status, good.headers.get('x-order')]).toEqual([201, 'o-1'])
  const order = shop.calls.filter(({ url }) => url.startsWith('/orders')).at(-1)
  expect(order).toMatchObject({
    url: '/orders?urgent=true',
    body: { title: 'Order of 100 EUR', total: 120, customer: { email: 'ada@example.com', name: 'Unknown' } },
  })
  expect(order?.headers['x-source']).toBe(stored.name)
  const bad = await hook({ email: 'nobody', amount: 100 })
  expect([bad.status, await bad.json()]).toEqual([422, { error: 'nobody cannot order' }])
})

test('imports an n8n workflow that splits a list, makes a request for each item and aggregates', async () => {
  const { id, report } = await bring(await template('report'))
  expect(report.problems).toEqual([])
  const { nodes, settings } = await host.ask<Body>('GET', `/api/workflows/${id}`)
  expect(settings.timezone).toBe('Europe/Berlin')
  expect(nodes.find((node: Body) => node.id === 'Schedule_Trigger').config.cron).toBe('30 7 * * 1-5')
  await runIt(id)
  expect(shop.calls.at(-1)?.body).toEqual({
    text: 'Eve (Paris): 30\nAda (Paris): 10',
    count: 2,
    day: DateTime.now().setZone('Europe/Berlin').toISODate(),
  })
})

test('imports an n8n error workflow, which reports a failed execution', async () => {
  const alarm = await bring(await template('alarm'))
  expect(alarm.report.problems).toEqual([])
  const name = `Fails ${randomUUID()}`
  const failing = await host.ask<Body>('POST', '/api/workflows', {
    teamId: host.teamId,
    name,
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER' },
      { id: 'stop', type: 'STOP_AND_ERROR', name: 'The end', config: { message: 'that is it' } },
    ],
    edges: [{ source: 'start', target: 'stop' }],
    settings: { errorWorkflowId: alarm.id },
  })
  const run = await host.ended(await host.execute(failing.id))
  expect(run.status).toBe('FAILED')
  await expect
    .poll(() => shop.calls.findLast(({ url }) => url === '/alarms')?.body)
    .toEqual({ text: `Workflow ${name} failed at The end: that is it`, run: run.id })
})

test('imports an n8n workflow that merges two sources, sets fields and switches', async () => {
  const { id, report } = await bring(await template('sources'))
  expect(report.problems).toEqual([])
  const run = await runIt(id)
  expect((run.outputData as Body).items).toEqual([
    { id: 1, city: 'Paris', points: 10, score: 61, label: 'PARIS #1', grade: 1, verdict: 'good' },
  ])
})

test('a loop over items is imported, and its report, which stays with it, names the pair that is lost', async () => {
  const { id, report } = await bring(await template('batches'))
  expect(report.problems).toMatchObject([{ node: 'Note it', kind: 'expression' }])
  expect(report.totals).toMatchObject({ stopped: 0, noted: 1 })
  expect(report.groups).toMatchObject([{ kind: 'expression', nodes: ['Note it'], count: 1 }])
  expect(await host.ask<Body>('GET', `/api/workflows/${id}/import-report`)).toEqual(report)
  const { nodes } = await host.ask<Body>('GET', `/api/workflows/${id}`)
  expect(nodes.find((node: Body) => node.id === 'Loop_Over_Items').type).toBe('FOR_EACH')
})

test('a placeholder says what it stands for, and a workflow that was not imported has no report', async () => {
  const hubspot = {
    id: '1',
    name: 'Tell',
    type: 'n8n-nodes-base.hubspot',
    typeVersion: 2,
    position: [0, 0],
    parameters: { text: '={{ $json.a }}' },
  }
  const { id, report } = await bring({ nodes: [hubspot], connections: {} })
  expect(report.totals).toEqual({ nodes: 1, works: 0, noted: 0, stopped: 1 })
  expect(report.problems[0]).toMatchObject({ node: 'Tell', kind: 'node', original: hubspot })
  const { nodes } = await host.ask<Body>('GET', `/api/workflows/${id}`)
  expect(nodes[0]).toMatchObject({
    name: 'Tell',
    type: 'STOP_AND_ERROR',
    config: {
      replaces: { type: 'n8n-nodes-base.hubspot', version: 2, parameters: '{"text":"={ { $json.a }}"}' },
    },
  })
  const made = await host.ask<Body>('POST', '/api/workflows', {
    teamId: host.teamId,
    name: `Made here ${randomUUID()}`,
    nodes: [{ id: 'start', type: 'MANUAL_TRIGGER' }],
    edges: [],
  })
  const answer = await host.request(`/api/workflows/${made.id}/import-report`, { as: host.admin })
  expect(answer.status).toBe(404)
})

test('an exported workflow is imported as the same graph', async () => {
  const [there, back] = [`To take away ${randomUUID()}`, `Brought back ${randomUUID()}`]
  const made = await host.ask<Body>('POST', '/api/workflows', {
    teamId: host.teamId,
    name: there,
    description: 'With a secret',
    nodes: [
      {
        id: 'hook',
        type: 'WEBHOOK_TRIGGER',
        config: { path: 'in', secretHeader: { name: 'X-Key', value: 'topsecret' } },
      },
      { id: 'set', type: 'SET', config: { values: { a: '{{ $input.body.a }}' } }, position: { x: 1, y: 2 } },
    ],
    edges: [{ source: 'hook', target: 'set' }],
    settings: { timeoutMs: 9_000 },
  })
  const viewer = await host.token('VIEWER')
  const answer = await host.request(`/api/workflows/${made.id}/export`, { as: viewer })
  const text = await answer.text()
  expect(text).not.toContain('topsecret')
  const document = JSON.parse(text)
  expect(document).toMatchObject({
    format: 'perdure.workflow',
    formatVersion: 1,
    name: there,
    secrets: ['nodes[0].config.secretHeader.value'],
  })
  const { id, report } = await bring(document, {
    name: undefined,
    workflow: { ...document, name: back },
  })
  expect(report.problems).toEqual([
    {
      node: 'Webhook trigger 1',
      path: 'nodes[0].config.secretHeader.value',
      kind: 'secret',
      message: 'The secret was not exported: set it on the node.',
      original: null,
    },
  ])
  const [before, after] = [made.id, id].map((one) => host.ask<Body>('GET', `/api/workflows/${one}`))
  const [old, young] = [await before, await after]
  expect(young).toMatchObject({
    name: back,
    description: 'With a secret',
    settings: old.settings,
    edges: old.edges,
  })
  expect(young.nodes[1]).toEqual(old.nodes[1])
  expect(young.nodes[0].config.secretHeader).toEqual({ name: 'X-Key', credentialId: expect.any(String) })
  expect(young.nodes[0].config.secretHeader).not.toEqual(old.nodes[0].config.secretHeader)
  await host.ask('PUT', `/api/workflows/${id}`, { active: true })
  const call = await host.request(`/hooks/${id}/in`, {
    method: 'POST',
    json: {},
    headers: { 'X-Key': 'topsecret' },
  })
  expect(call.status).toBe(401)
})

test('a called workflow is replaced by the one that `workflows` maps it to', async () => {
  const parent = await template('parent')
  const text = JSON.stringify(await template('batches'))
  const child = JSON.parse(text.replace("$('Split Out').item.json.id", '$json.id'))
  child.nodes[0].type = 'n8n-nodes-base.executeWorkflowTrigger'
  const { id: childId, report } = await bring(child)
  expect(report.problems).toEqual([])
  const lost = await bring(parent)
  expect(lost.report.problems).toMatchObject([{ node: 'Execute Workflow', kind: 'node' }])
  const { id, report: clean } = await bring(parent, { workflows: { kQ3child: childId } })
  expect(clean.problems).toEqual([])
  const run = await runIt(id, { ids: [1, 3] })
  expect((run.outputData as Body).items).toEqual([{ points: 40 }])
})

test('a dry run creates nothing, and responds with what would be created', async () => {
  const name = 'only looked at'
  const json = { teamId: host.teamId, name, workflow: await template('report') }
  const ask = () =>
    host.request('/api/workflows/import?dryRun=true', { method: 'POST', as: host.admin, json })
  const answer = await ask()
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({
    name,
    settings: { timezone: 'Europe/Berlin' },
    report: { problems: [], stickyNotes: 0 },
  })
  const { totalElements } = await host.ask<Body>('GET', `/api/workflows?teamId=${host.teamId}&search=${name}`)
  expect(totalElements).toBe(0)
})

test.each([
  ['nothing', {}, ['workflow']],
  ['a string', { workflow: 'x' }, ['workflow']],
  ['another document', { workflow: { kind: 'app' } }, ['workflow']],
  ['nodes that are not objects of a known kind', { workflow: { nodes: [1, { type: 3 }] } }, ['workflow']],
  [
    'far too many nodes and connections',
    {
      workflow: {
        nodes: Array.from({ length: 20_000 }, () => ({ type: 'x' })),
        connections: { a: { main: [Array.from({ length: 2_001 }, () => ({ node: 'b' }))] } },
      },
    },
    ['workflow.nodes', 'workflow.connections'],
  ],
  ['an array of several workflows', { workflow: [{ nodes: [] }, { nodes: [] }] }, ['workflow']],
  ['a workflow without nodes', { workflow: { nodes: [], connections: {} } }, ['workflow.nodes']],
  ['an empty array', { workflow: [] }, ['workflow.nodes']],
  [
    'an export that lost its nodes',
    { workflow: { format: 'perdure.workflow', formatVersion: 1 } },
    ['workflow.nodes'],
  ],
  [
    'a later version of the format',
    { workflow: { format: 'perdure.workflow', formatVersion: 2, nodes: [{ type: 'NO' }] } },
    ['workflow.formatVersion', 'workflow.nodes[0].type'],
  ],
  [
    'an export without its secret',
    {
      workflow: {
        format: 'perdure.workflow',
        formatVersion: 1,
        nodes: [{ id: 'h', type: 'WEBHOOK_TRIGGER', config: { path: 'x', secretHeader: { name: 'X' } } }],
      },
    },
    ['workflow.nodes[0].config.secretHeader.value'],
  ],
  ['`workflows` as an array', { workflow: { nodes: [] }, workflows: [] }, ['workflows']],
  [
    '`workflows` with a value that is not an id',
    { workflow: { nodes: [] }, workflows: { a: 'b' } },
    ['workflows.a'],
  ],
])('refuses %s', async (_what, json, paths) => {
  const answer = await host.request('/api/workflows/import', {
    method: 'POST',
    as: host.admin,
    json: { teamId: host.teamId, ...json },
  })
  const body = (await answer.json()) as Body
  expect([answer.status, body.errors.map(({ path }: Body) => path)]).toEqual([400, paths])
})

test('refuses a name that is already taken, and callers with a role below BUILDER', async () => {
  const workflow = { nodes: [{ name: 'Start', type: 'n8n-nodes-base.manualTrigger' }], connections: {} }
  const json = { teamId: host.teamId, name: `Twice ${randomUUID()}`, workflow }
  const ask = async (as: string) =>
    (await host.request('/api/workflows/import', { method: 'POST', as, json })).status
  expect(await ask(host.admin)).toBe(201)
  expect(await ask(host.admin)).toBe(409)
  expect(await ask((await host.signUp('OPERATOR')).cookie)).toBe(403)
})
