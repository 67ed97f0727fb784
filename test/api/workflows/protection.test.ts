import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const builder = (await service.signUp('BUILDER')).cookie

type Node = Record<string, unknown>

async function post(nodes: Node[], more: Node = {}) {
  const name = `w ${crypto.randomUUID()}`
  return service.call('POST', '/api/workflows', builder, { teamId: service.teamId, name, nodes, ...more })
}

const hook = (config: Node): Node => ({
  id: 'hook',
  type: 'WEBHOOK_TRIGGER',
  config: { path: 'in', ...config },
})
const agent = (config: Node): Node => ({
  id: 'agent',
  type: 'AI_AGENT',
  config: { credentialId: crypto.randomUUID(), model: 'm', instructions: 'i', ...config },
})
const approval = (config: Node): Node => ({ id: 'ask', type: 'APPROVAL', config })
const run = { type: 'RUN', nodes: ['x'] }

test.each<[string, Node, string, string]>([
  ['a webhook', hook({ signatures: {} }), 'signatures', 'signature'],
  ['a header', hook({ secretheader: { name: 'X', value: 'v' } }), 'secretheader', 'secretHeader'],
  [
    'a signature',
    hook({ signature: { header: 'X', secret: 's', timestampheader: 'T' } }),
    'signature.timestampheader',
    'timestampHeader',
  ],
  ['files', hook({ files: { maxByte: 1 } }), 'files.maxByte', 'maxBytes'],
  ['approvers', approval({ approver: ['ADMIN'] }), 'approver', 'approvers'],
  [
    'a guardrail',
    { id: 'g', type: 'GUARDRAIL', config: { text: 't', redactPii: true, filterContents: true } },
    'filterContents',
    'filterContent',
  ],
  ['a budget', agent({ maxTokns: 5 }), 'maxTokns', 'maxTokens'],
  ['guardrails', agent({ guardrail: {} }), 'guardrail', 'guardrails'],
  [
    'checks',
    agent({ guardrails: { input: { redactPii: true, redactPi: true } } }),
    'guardrails.input.redactPi',
    'redactPii',
  ],
  [
    'a tool',
    agent({ tools: [{ ...run, aproval: true, descripton: 'd' }] }),
    'tools[0].descripton',
    'description',
  ],
])('an unknown key of %s is refused with its path and the one that was meant', async (_, node, at, meant) => {
  const { status, body } = await post([node])
  expect(status).toBe(400)
  const found = body.errors.find(({ path }: Node) => path === `nodes[0].config.${at}`)
  expect(found?.message).toBe(`the key "${at.split('.').at(-1)}" is unknown here; did you mean "${meant}"?`)
})

test('it is named together with what else is wrong, and in a chat, and when a stored node is changed', async () => {
  const { body } = await post([
    hook({ path: '/', signatures: {} }),
    { id: 'c', type: 'CHAT_TRIGGER', config: { x: 1 } },
  ])
  expect(body.errors.map(({ path }: Node) => path).sort()).toEqual([
    'nodes[0].config.path',
    'nodes[0].config.signatures',
    'nodes[1].config.x',
  ])
  const stored = await post([hook({})])
  expect(stored.status).toBe(201)
  const put = await service.call('PUT', `/api/workflows/${stored.body.id}`, builder, {
    nodes: [hook({ method: 'POST', signatures: {} })],
    edges: [],
  })
  expect(put.status).toBe(400)
})

test('other types drop what they do not know, with a warning', async () => {
  const { status, body } = await post([{ id: 's', type: 'SET', config: { values: {}, valus: {} } }])
  expect(status).toBe(201)
  expect(body.warnings).toHaveLength(1)
})

test('activating a webhook that asks for nothing says that anybody may call it', async () => {
  const open = await post([hook({})])
  expect(open.body.warnings).toBeUndefined()
  const url = `/api/workflows/${open.body.id}`
  const active = await service.call('PUT', url, builder, { active: true })
  expect(active.body.warnings).toEqual([
    { path: 'nodes[0].config', message: expect.stringContaining('anybody who knows the address') },
  ])
  expect((await service.call('PUT', url, builder, { description: 'd' })).body.warnings).toBeUndefined()
  const closed = await post([
    hook({ path: 'other', secretHeader: { name: 'X-Key', value: 'a secret value' } }),
  ])
  const other = await service.call('PUT', `/api/workflows/${closed.body.id}`, builder, { active: true })
  expect(other.status).toBe(200)
  expect(other.body.warnings).toBeUndefined()
})

test('what an active workflow becomes by its edges or an earlier version says so too', async () => {
  const nodes = [hook({ path: 'drawn' }), { id: 'n', type: 'NO_OP' }]
  const edges = [{ source: 'hook', target: 'n' }]
  const made = await post(nodes, { edges })
  const url = `/api/workflows/${made.body.id}`
  const said = [{ path: 'nodes[0].config', message: expect.stringContaining('anybody who knows') }]
  expect((await service.call('PUT', url, builder, { active: true })).body.warnings).toEqual(said)
  const again = { edges: [{ id: 'named', source: 'hook', target: 'n' }] }
  expect((await service.call('PUT', url, builder, again)).body.warnings).toEqual(said)
  const restored = await service.call('POST', `${url}/versions/1/restore`, builder)
  expect([restored.status, restored.body.warnings]).toEqual([200, said])
  await service.call('PUT', url, builder, { active: false })
  const quiet = await service.call('POST', `${url}/versions/2/restore`, builder)
  expect([quiet.status, quiet.body.warnings]).toEqual([200, undefined])
})

test('an unknown key that an earlier release has stored at the same place is only a warning', async () => {
  const made = await post([hook({ path: 'kept' })])
  const url = `/api/workflows/${made.body.id}`
  const stored = hook({ path: 'kept', signatures: { header: 'X' } })
  // A release before this one could have stored it; no request can.
  const row = await service.store.db
    .selectFrom('workflowVersions')
    .select('nodes')
    .where('workflowId', '=', made.body.id)
    .executeTakeFirstOrThrow()
  const [node] = row.nodes as unknown as { config: Node }[]
  const nodes = JSON.stringify([{ ...node, config: stored.config }])
  await service.store.db
    .updateTable('workflowVersions')
    .set({ nodes: nodes as never })
    .where('workflowId', '=', made.body.id)
    .execute()
  const more = hook({ path: 'kept', signatures: {}, secretheader: {} })
  const refused = await service.call('PUT', url, builder, { nodes: [more], edges: [] })
  expect(refused.status).toBe(400)
  expect(refused.body.errors.map(({ path }: Node) => path)).toEqual(['nodes[0].config.secretheader'])
  const kept = await service.call('PUT', url, builder, { nodes: [stored], edges: [] })
  expect(kept.status).toBe(200)
  expect(kept.body.warnings).toContainEqual({
    path: 'nodes[0].config.signatures',
    message: expect.stringContaining('did you mean "signature"?'),
  })
  // Saving has dropped it, so that the next one would be new.
  expect((await service.call('PUT', url, builder, { nodes: [stored], edges: [] })).status).toBe(400)
})

test.each([
  ['YYYY-MM-DD', 'yyyy-MM-dd'],
  ['DD/MM/YYYY', 'dd/MM/yyyy'],
  ['yyyy-mm-dd', 'yyyy-MM-dd'],
  ['dd.MM.YYYY HH:mm', 'dd.MM.yyyy HH:mm'],
  ['yyyy-MM-ddTHH:mm', "yyyy-MM-dd'T'HH:mm"],
])('DATE refuses the format %s and offers %s', async (format, right) => {
  const date = (given: string) => ({
    id: 'd',
    type: 'DATE',
    config: { operation: 'format', value: '2026-01-02', format: given },
  })
  const { status, body } = await post([date(format)])
  expect(status).toBe(400)
  expect(body.errors[0].path).toBe('nodes[0].config.format')
  expect(body.errors[0].message).toMatch(new RegExp(`did you mean ${right.replaceAll('.', '\\.')}\\?$`))
  expect((await post([date(right)])).status).toBe(201)
})

test.each([
  'D',
  'DDDD',
  'f',
  'D t',
  'DD T',
  'HH:mm',
  'mm:ss',
  "EEEE 'the' d",
  'LLL yyyy',
  "yyyy-MM-dd'T'HH:mm:ss.SSSZZ",
])('DATE takes the format %s', async (format) => {
  const config = { operation: 'format', value: '2026-01-02', format }
  expect((await post([{ id: 'd', type: 'DATE', config }])).status).toBe(201)
})

test('a text that loses its = says so, with the way to keep it', async () => {
  const nodes = [
    { id: 's', type: 'SET', config: { values: { a: '=1+1', b: "'=1+1", c: '={{ 1 }}', d: ['==x'] } } },
  ]
  const { status, body } = await post(nodes, { expressions: 2 })
  expect(status).toBe(201)
  expect(body.warnings.map(({ path }: Node) => path)).toEqual([
    'nodes[0].config.values.a',
    'nodes[0].config.values.d[0]',
  ])
  expect(body.warnings[0].message).toMatch(/'=1\+1$/)
  expect((await post(nodes, { expressions: 1 })).body.warnings).toBeUndefined()
})
