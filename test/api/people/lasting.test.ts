import { expect, test, vi } from 'vitest'
import { describeApi, type Operation } from '../../../api/docs/openapi.ts'
import { createBatchRun } from '../../../db/evaluation/batches/create.ts'
import { storeFile } from '../../../db/files/store.ts'
import { serviceScope } from '../../../db/scope.ts'
import { addApi, createChats } from '../../support/chat/replies.ts'
import { createRuns } from '../../support/engine/runs.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

/** No look but the first one and those that follow a loss: the streams' own checks come too late for these tests. */
const UNCHECKED = { rateLimits: false, streams: { checkMs: 600_000 } } as const

/** A second or so, on a machine that others use too; without the watch nothing ends within ten minutes. */
const SOON_MS = 4_000

const service = await keep(startService(UNCHECKED))
const another = await keep(addApi(service, UNCHECKED))
const { teamId } = service
const { db } = service.store
const runs = createRuns(service)

/** How each response that lasts is asked for. Chats are for people, not for tokens, and MCP is for tokens only. */
type Lasting = { path: string; json?: object; people?: true; tokens?: true }

async function* writeBytes() {
  yield Buffer.alloc(300_000, 'a')
}

async function makeWorld(owner: { id: string; cookie: string }): Promise<Record<string, Lasting>> {
  const post = async (path: string, json: object) => {
    const made = await service.call('POST', path, owner.cookie, json)
    if (made.status > 201) throw new Error(`${path}: ${made.text}`)
    return made.body
  }
  const run = await runs.addRun()
  await runs.setRun(run, { status: 'RUNNING' })
  const name = crypto.randomUUID()
  const file = await storeFile(service.store, { executionId: run }, { name: 'a.txt' }, writeBytes())
  const workflow = await post('/api/workflows', {
    ...{ teamId, name, nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }], edges: [] },
  })
  await service.call('PUT', `/api/workflows/${workflow.id}`, owner.cookie, { active: true })
  const credential = await post('/api/credentials', { teamId, name, type: 'DEMO', data: {} })
  const llm = { credentialId: credential.id, model: 'demo', prompt: 'x' }
  const agent = await post('/api/workflows', {
    ...{ teamId, name: `agent ${name}` },
    nodes: [
      { id: 'chat', type: 'CHAT_TRIGGER', config: {} },
      { id: 'llm', type: 'LLM', config: llm },
    ],
    edges: [{ source: 'chat', target: 'llm' }],
  })
  await service.call('PUT', `/api/workflows/${agent.id}`, owner.cookie, { active: true })
  const chat = await post('/api/agent-chat/sessions', { teamId, workflowId: agent.id })
  const tool = `tool_${name.replaceAll('-', '')}`
  const offered = await post('/api/workflows', {
    ...{ teamId, name: tool },
    nodes: [{ id: 'tool', type: 'MCP_TRIGGER', config: { name: tool, description: 'Waits' } }],
    edges: [],
  })
  await service.call('PUT', `/api/workflows/${offered.id}`, owner.cookie, { active: true })
  const actor = { kind: 'USER', id: owner.id, name: 'Ada Byron' } as const
  const scope = serviceScope(service.store, actor, [[teamId, 'ADMIN']], { userId: owner.id })
  const settings = {
    ...{ name, provider: 'openai' as const, model: 'm', credentialId: credential.id, dimensions: [] },
    ...{ passThreshold: 3, maxCost: null, runWorkflow: false, concurrency: 1 },
  }
  const cases = [{ input: {}, output: 'a', expected: null }]
  const batch = await createBatchRun(scope, workflow.id, settings, {
    ...{ cases, idempotencyKey: undefined, asked: {} },
  })
  const reportId = crypto.randomUUID()
  const files = JSON.stringify({ html: { bytes: 2, sha256: '00'.repeat(32) } })
  const period = { fromAt: new Date(0), toAt: new Date(), expiresAt: new Date('2100-01-01') }
  await db
    .insertInto('auditReports')
    .values({
      ...{ id: reportId, teamId, name, type: 'ACTIVITY', status: 'COMPLETED', files, ...period },
      createdByName: 'ADMIN',
    })
    .execute()
  await db
    .insertInto('auditReportParts')
    .values([{ reportId, format: 'html', part: 0, bytes: Buffer.from('{}') }])
    .execute()
  const columns = [{ name: 'text', type: 'text' }]
  const table = await post('/api/tables', { teamId, name, columns })
  await post(`/api/tables/${table.id}/rows`, { rows: [{ text: 'a' }, { text: 'b' }] })
  const reply = await createChats(service, owner).addReply()
  const ofBatch = `/api/workflows/${workflow.id}/batch-eval/${batch.id}`
  return {
    executeWorkflow: { path: `/api/workflows/${workflow.id}/execute?waitMs=60000`, json: { teamId } },
    readExecution: { path: `/api/executions/${run}?waitMs=60000` },
    followExecution: { path: `/api/executions/${run}/events` },
    downloadFile: { path: `/api/executions/${run}/files/${file.id}` },
    exportExecutions: { path: `/api/executions/team/${teamId}/export?format=csv` },
    postChatMessage: {
      path: `/api/agent-chat/sessions/${chat.id}/messages`,
      json: { content: 'Hello?' },
      people: true,
    },
    followChatReply: { path: reply.path, people: true },
    exportTokenUsage: { path: `/api/monitoring/teams/${teamId}/export?format=csv` },
    exportBatch: { path: `${ofBatch}/export?format=csv` },
    followBatch: { path: `${ofBatch}/events` },
    readAuditForSiem: { path: `/api/audit/team/${teamId}/siem` },
    downloadAuditReport: { path: `/api/audit/team/${teamId}/reports/${reportId}/download?format=html` },
    exportRows: { path: `/api/tables/${table.id}/csv` },
    exportAudit: { path: `/api/audit/team/${teamId}/export` },
    callMcp: {
      path: '/api/mcp',
      json: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: {} } },
      tokens: true,
    },
  }
}

/** Answers with something else than JSON, but only once all of it is known. */
const WHOLE = new Set(['receiveTraces'])

/** The operations whose responses last, by the OpenAPI document: streams, downloads, exports, and what waits. */
function findLasting(): string[] {
  const operations = Object.values(describeApi(service.app.routes, '0').paths).flatMap((methods) =>
    Object.values(methods as Record<string, Operation>),
  )
  const lasts = (operation: Operation) => {
    const { security, parameters, responses } = JSON.parse(JSON.stringify(operation))
    const isSignedIn = (security ?? []).some((one: object) => 'session' in one || 'sdkToken' in one)
    const types = Object.entries<{ content?: object }>(responses)
      .filter(([status]) => status.startsWith('2'))
      .flatMap(([, { content }]) => Object.keys(content ?? {}))
    const waits = (parameters ?? []).some(({ name }: { name: string }) => name === 'waitMs')
    return isSignedIn && (waits || types.some((type) => type !== 'application/json'))
  }
  return operations
    .filter(lasts)
    .map(({ operationId }) => operationId)
    .filter((id) => !WHOLE.has(id))
}

/** Only a few of these are under way at once, so that each is tried alone. */
const SLOTS = new Set(['exportExecutions', 'exportTokenUsage'])

type Open = { id: string; begun: Promise<unknown>; end: Promise<string>; isOver: () => boolean }

/** Asks for a response that lasts, and says how it ends: `closed`, `cut`, or the status of one that waited. */
function open(id: string, { path, json, tokens }: Lasting, as: Record<string, string>): Open {
  const accept = { accept: 'application/json, text/event-stream' }
  const headers = {
    ...as,
    ...(json ? { 'content-type': 'application/json' } : {}),
    ...(tokens ? accept : {}),
  }
  const init = json ? { method: 'POST', body: JSON.stringify(json), headers } : { headers }
  const asked = Promise.resolve(service.app.request(path, init))
  let over = false
  const begun = Promise.withResolvers<void>()
  const follow = async () => {
    const waits = path.includes('waitMs')
    if (waits || tokens) begun.resolve()
    const response = await asked
    // A tool that fails is an answer of the protocol.
    if (tokens) return /"isError":true/.test(await response.text()) ? 'refused' : 'whole'
    if (waits) {
      if (response.status < 400)
        throw new Error(`${id} did not wait: ${response.status} ${await response.text()}`)
      return `${response.status}`
    }
    if (response.status !== 200) throw new Error(`${id}: ${response.status} ${await response.text()}`)
    if (!response.body) throw new Error(`${id} has no body`)
    const reader = response.body.getReader()
    if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
      for (;;) {
        const { done } = await reader.read()
        begun.resolve()
        if (done) return 'closed'
      }
    }
    // Nothing is read of a download, so that it is still under way.
    begun.resolve()
    return reader.closed.then(
      () => 'whole',
      () => 'cut',
    )
  }
  const end = follow().finally(() => {
    over = true
  })
  end.catch(begun.reject)
  return { id, begun: begun.promise, end, isOver: () => over }
}

/** How each should end. */
const ENDS: Record<string, RegExp> = {
  executeWorkflow: /^40[134]$/,
  readExecution: /^40[134]$/,
  followExecution: /^closed$/,
  followBatch: /^closed$/,
  postChatMessage: /^closed$/,
  followChatReply: /^closed$/,
  callMcp: /^refused$/,
}

async function expectEnds(lasting: Open[], since: number): Promise<void> {
  const late = vi.waitFor(
    () => expect(lasting.filter(({ isOver }) => !isOver()).map(({ id }) => id)).toEqual([]),
    { timeout: SOON_MS - (performance.now() - since), interval: 20 },
  )
  await late
  for (const { id, end } of lasting)
    expect([id, await end]).toEqual([id, expect.stringMatching(ENDS[id] ?? /^cut$/)])
}

/** Opens all that last, and waits until the first look of each at the caller's rights is over. */
async function openAll(
  world: Record<string, Lasting>,
  as: Record<string, string>,
  only?: string,
): Promise<Open[]> {
  const isToken = 'authorization' in as
  const wanted = Object.entries(world).filter(
    ([id, { people, tokens }]) => !(isToken ? people : tokens) && (only ? id === only : !SLOTS.has(id)),
  )
  const lasting = wanted.map(([id, how]) => open(id, how, as))
  await Promise.all(lasting.map(({ begun }) => begun))
  const opened = performance.now()
  await vi.waitFor(() => expect(performance.now() - opened).toBeGreaterThan(700), { timeout: 2_000 })
  const over = lasting.filter(({ isOver }) => isOver())
  expect(await Promise.all(over.map(async ({ id, end }) => [id, await end]))).toEqual([])
  return lasting
}

/** Sends a request to the other process. */
async function elsewhere(method: string, path: string, cookie = service.admin): Promise<void> {
  const { status } = await another.app.request(path, { method, headers: { cookie } })
  expect([path, status]).toEqual([path, expect.toBeOneOf([200, 204])])
}

const members = `/api/teams/${teamId}/members`
const tokens = `/api/teams/${teamId}/sdk-tokens`

async function makeToken(cookie: string, expiresAt?: Date): Promise<{ id: string; token: string }> {
  const { status, body } = await service.call('POST', tokens, cookie, {
    ...{ name: 'a token', role: 'ADMIN' },
    ...(expiresAt ? { expiresAt: expiresAt.toISOString() } : {}),
  })
  expect(status).toBe(201)
  return body
}

test('every response that lasts, by the OpenAPI document, has a case here', async () => {
  const world = await makeWorld(await service.signUp('ADMIN'))
  expect(findLasting().sort()).toEqual(Object.keys(world).sort())
})

test.each(['', ...SLOTS])(
  'each ends when another process revokes the token %s',
  { timeout: 90_000 },
  async (only) => {
    const owner = await service.signUp('ADMIN')
    const { id, token } = await makeToken(owner.cookie)
    const lasting = await openAll(await makeWorld(owner), { authorization: `Bearer ${token}` }, only)
    const since = performance.now()
    await elsewhere('DELETE', `${tokens}/${id}`)
    await expectEnds(lasting, since)
  },
)

test.each([
  ['removes the member', (owner: { id: string }) => elsewhere('DELETE', `${members}/${owner.id}`)],
  ['ends the session', (owner: { cookie: string }) => elsewhere('POST', '/api/auth/logout', owner.cookie)],
])('each ends when another process %s', { timeout: 90_000 }, async (_, lose) => {
  const owner = await service.signUp('ADMIN')
  const lasting = await openAll(await makeWorld(owner), { cookie: owner.cookie })
  // What somebody else in the team reads goes on.
  const colleague = await service.signUp('ADMIN')
  const run = await runs.addRun()
  const other = open(
    'followExecution',
    { path: `/api/executions/${run}/events` },
    { cookie: colleague.cookie },
  )
  await other.begun
  const since = performance.now()
  await lose(owner)
  await expectEnds(lasting, since)
  expect(other.isOver()).toBe(false)
  await runs.setRun(run, { status: 'SUCCESS' })
  expect(await other.end).toBe('closed')
})

/** So long it takes at most, on a crowded machine, to open all that last. */
const OPENING_MS = 15_000

test('each ends by itself when the token expires', { tags: 'long', timeout: 90_000 }, async () => {
  const owner = await service.signUp('ADMIN')
  const world = await makeWorld(owner)
  const expiresAt = new Date(Date.now() + OPENING_MS)
  const { token } = await makeToken(owner.cookie, expiresAt)
  const lasting = await openAll(world, { authorization: `Bearer ${token}` })
  await expectEnds(lasting, performance.now() + (expiresAt.getTime() - Date.now()))
})

test('each ends by itself when the session expires', { tags: 'long', timeout: 90_000 }, async () => {
  const owner = await service.signUp('ADMIN')
  const world = await makeWorld(owner)
  const expiresAt = new Date(Date.now() + OPENING_MS)
  await db.updateTable('sessions').set({ expiresAt }).where('userId', '=', owner.id).execute()
  const lasting = await openAll(world, { cookie: owner.cookie })
  await expectEnds(lasting, performance.now() + (expiresAt.getTime() - Date.now()))
})
