import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { pruneChats } from '../../../db/chat/purge.ts'
import { createChatting } from '../../support/chat/chatting.ts'
import { readReply, sumUp } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'

const host = await keep(startRunning())
const { credential, agent, simpleAgent, open, post, say, read, SESSIONS } = createChatting(host)
const { teamId, admin } = host
const { db } = host.store
const operator = await host.signUp('OPERATOR')
const other = await host.signUp('OPERATOR')
const viewer = await host.token('VIEWER')
const workflowId = await simpleAgent()

const call = host.call

describe('a chat', () => {
  test('begins empty, replies as a stream, and keeps what was said', async () => {
    const created = await call('POST', SESSIONS, operator.cookie, { teamId, workflowId })
    expect(created).toMatchObject({ status: 201, body: { workflowId, title: 'New chat', messages: [] } })
    const { id } = created.body
    expect(created.headers.get('location')).toBe(`${SESSIONS}/${id}`)
    const first = await say(
      id,
      'hello there, who is this and what can you do for me today please?',
      operator.cookie,
    )
    expect(first.text).toBe('Hello! I am the demo model. What can I do for you?')
    expect(first.last).toMatchObject({ type: 'done', tokenUsage: { input: expect.any(Number), output: 13 } })
    const session = await read(id, operator.cookie)
    expect(session).toMatchObject({
      title: 'hello there, who is this and what can you do for me today…',
      messageCount: 2,
      owner: { kind: 'USER', id: operator.id, name: 'Ada Byron' },
      messages: [
        { role: 'user', status: 'COMPLETE', error: null },
        { role: 'assistant', status: 'COMPLETE', content: first.text, tokenUsage: first.last!.tokenUsage },
      ],
    })
    expect(session.messages[0].tokenUsage).toBeUndefined()
    expect(session.lastMessageAt >= session.messages[0].createdAt).toBe(true)
    const executionId = session.messages[1].executionId
    const run = await host.ask<{ trigger: string; inputData: object; usage: object }>(
      'GET',
      `/api/executions/${executionId}`,
    )
    expect(run).toMatchObject({ trigger: 'CHAT', inputData: { sessionId: id, history: [] } })
    // The second message knows of the first.
    const second = await say(id, 'What did I say?', operator.cookie)
    expect(second.text).toContain('hello there, who is this')
    const again = await read(id, operator.cookie)
    const input = await host.ask<{ inputData: { history: object[] } }>(
      'GET',
      `/api/executions/${again.messages[3].executionId}`,
    )
    expect(input.inputData.history).toEqual([
      { role: 'user', content: session.messages[0].content },
      { role: 'assistant', content: first.text },
    ])
    const page = await call('GET', `${SESSIONS}/${id}/messages?size=3`, operator.cookie)
    expect(page.body).toMatchObject({ totalElements: 4, totalPages: 2 })
    expect(page.body.content.map(({ id }: { id: string }) => id)).toEqual(
      again.messages
        .slice(1)
        .map(({ id }: { id: string }) => id)
        .reverse(),
    )
    const one = await call('GET', `${SESSIONS}/${id}/messages/${again.messages[3].id}`, operator.cookie)
    expect(one.body).toEqual(again.messages[3])
  })

  test('is renamed, cleared and deleted, with its executions, and keeps what they took', async () => {
    const id = await open(workflowId, operator.cookie, 'Mine')
    await say(id, 'say one', operator.cookie)
    const renamed = await call('PUT', `${SESSIONS}/${id}`, operator.cookie, { title: ' Ours ' })
    expect(renamed.body).toEqual({ id, title: 'Ours', updatedAt: expect.any(String) })
    const before = await read(id, operator.cookie)
    expect(before.title).toBe('Ours')
    const { executionId } = before.messages[0]
    const cleared = await call('POST', `${SESSIONS}/${id}/clear`, operator.cookie)
    expect(cleared).toMatchObject({ status: 200, body: { message: 'Chat session cleared', sessionId: id } })
    expect(await read(id, operator.cookie)).toMatchObject({
      title: 'Ours',
      messages: [],
      messageCount: 0,
      lastMessageAt: null,
    })
    expect((await call('GET', `/api/executions/${executionId}`, admin)).status).toBe(404)
    const kept = await db
      .selectFrom('modelCalls')
      .select('status')
      .where('executionId', '=', executionId)
      .execute()
    expect(kept).toHaveLength(1)
    for (const table of ['nodeExecutions', 'blobs', 'agentChatChunks'] as const)
      expect(
        await db.selectFrom(table).select('executionId').where('executionId', '=', executionId).execute(),
      ).toEqual([])
    const errands = await db
      .selectFrom('outbox')
      .select('kind')
      .where('subjectId', '=', executionId)
      .execute()
    expect(errands).toEqual([{ kind: 'DELETE' }])
    expect((await say(id, 'What did I say?', operator.cookie)).text).toBe('You have said nothing before.')
    const deleted = await call('DELETE', `${SESSIONS}/${id}`, operator.cookie)
    expect(deleted).toMatchObject({ status: 200, body: { message: 'Chat session deleted' } })
    expect((await call('GET', `${SESSIONS}/${id}`, operator.cookie)).status).toBe(404)
    const left = await db.selectFrom('executions').select('id').where('chatSessionId', '=', id).execute()
    expect(left).toEqual([])
    const acts = await db
      .selectFrom('auditEntries')
      .select(['action', 'details'])
      .where('resourceId', '=', id)
      .execute()
    expect(acts.map(({ action }) => action).sort()).toEqual([
      'AGENT_CHAT_SESSION_CLEARED',
      'AGENT_CHAT_SESSION_CREATED',
      'AGENT_CHAT_SESSION_DELETED',
      'AGENT_CHAT_SESSION_UPDATED',
    ])
    expect(JSON.stringify(acts)).not.toMatch(/Mine|Ours/)
  })

  test('loses a title that was cut from a message with that message', async () => {
    const id = await open(workflowId, operator.cookie)
    await say(id, 'say secret', operator.cookie)
    expect(await read(id, operator.cookie)).toMatchObject({ title: 'say secret' })
    await call('POST', `${SESSIONS}/${id}/clear`, operator.cookie)
    expect(await read(id, operator.cookie)).toMatchObject({ title: 'New chat' })
    await say(id, 'say again', operator.cookie)
    await say(id, 'say more', operator.cookie)
    expect(await read(id, operator.cookie)).toMatchObject({ title: 'say again' })
  })

  test('is deleted while its reply is being written', async () => {
    const slow = await simpleAgent({ model: 'demo-slow' })
    const id = await open(slow, operator.cookie)
    const stream = readReply(await post(id, `say ${'word '.repeat(200)}`, operator.cookie))
    await stream.next()
    expect((await call('DELETE', `${SESSIONS}/${id}`, operator.cookie)).status).toBe(200)
    expect((await stream.all()).at(-1)).toMatchObject({ type: 'error' })
    expect(await db.selectFrom('executions').select('id').where('chatSessionId', '=', id).execute()).toEqual(
      [],
    )
  })

  test('answers 400, 403, 404 and 422 as the contract says', async () => {
    const plain = await host.create({
      nodes: [{ id: 'a', type: 'MANUAL_TRIGGER', config: {} }],
      edges: [],
    } as never)
    await host.ask('PUT', `/api/workflows/${plain}`, { active: true })
    const passive = await simpleAgent()
    await host.ask('PUT', `/api/workflows/${passive}`, { active: false })
    const stranger = await host.otherTeam()
    const body = { teamId, workflowId }
    const missing = crypto.randomUUID()
    const cases: [object, string | undefined, number][] = [
      [{}, operator.cookie, 400],
      [{ ...body, title: '' }, operator.cookie, 400],
      [{ ...body, workflowId: 'x' }, operator.cookie, 400],
      [body, undefined, 401],
      [body, viewer, 403],
      [body, stranger.cookie, 403],
      [{ ...body, workflowId: missing }, operator.cookie, 404],
      [{ ...body, teamId: missing }, operator.cookie, 404],
      [{ teamId: stranger.teamId, workflowId }, stranger.cookie, 404],
      [{ ...body, workflowId: plain }, operator.cookie, 422],
      [{ ...body, workflowId: passive }, operator.cookie, 422],
    ]
    for (const [json, as, status] of cases)
      expect([json, (await call('POST', SESSIONS, as, json)).status]).toEqual([json, status])
    const both = await call('POST', SESSIONS, operator.cookie, { title: '' })
    expect(both.body.errors.map(({ path }: { path: string }) => path).sort()).toEqual([
      'teamId',
      'title',
      'workflowId',
    ])
    const id = await open(workflowId, operator.cookie)
    const routes: [string, string, object?][] = [
      ['GET', ''],
      ['PUT', '', { title: 'x' }],
      ['DELETE', ''],
      ['POST', '/messages', { content: 'x' }],
      ['GET', '/messages'],
      ['GET', `/messages/${missing}`],
      ['GET', `/messages/${missing}/stream`],
      ['POST', '/clear'],
      ['POST', '/stop'],
    ]
    for (const [method, path, json] of routes) {
      const statuses = []
      for (const as of [undefined, viewer, other.cookie, stranger.cookie])
        statuses.push((await call(method, `${SESSIONS}/${id}${path}`, as, json)).status)
      statuses.push((await call(method, `${SESSIONS}/${missing}${path}`, operator.cookie, json)).status)
      statuses.push((await call(method, `${SESSIONS}/x${path}`, operator.cookie, json)).status)
      expect([method, path, statuses]).toEqual([method, path, [401, 403, 403, 403, 404, 400]])
    }
    for (const json of [
      {},
      { content: '' },
      { content: ' \n\t' },
      { content: 1 },
      { content: 'x'.repeat(100_001) },
    ])
      expect((await call('POST', `${SESSIONS}/${id}/messages`, operator.cookie, json)).status).toBe(400)
    expect((await call('PUT', `${SESSIONS}/${id}`, operator.cookie, {})).status).toBe(400)
    // An ADMIN reads all, and does not speak for others.
    expect((await call('GET', `${SESSIONS}/${id}`, admin)).status).toBe(200)
    expect((await call('GET', `${SESSIONS}/${id}/messages`, admin)).status).toBe(200)
    for (const [method, path, json] of [routes[1]!, routes[3]!, routes[7]!, routes[8]!])
      expect((await call(method, `${SESSIONS}/${id}${path}`, admin, json)).status).toBe(403)
    expect((await call('DELETE', `${SESSIONS}/${id}`, admin)).status).toBe(200)
  })

  test('of a workflow that is inactive now gets 422 before the stream opens', async () => {
    const mine = await simpleAgent()
    const id = await open(mine, operator.cookie)
    await host.ask('PUT', `/api/workflows/${mine}`, { active: false })
    const refused = await post(id, 'hello', operator.cookie)
    expect([refused.status, refused.headers.get('content-type')]).toEqual([422, 'application/json'])
    expect((await read(id, operator.cookie)).messages).toEqual([])
    await host.ask('DELETE', `/api/workflows/${mine}`)
    expect((await call('GET', `${SESSIONS}/${id}`, operator.cookie)).status).toBe(404)
  })

  test('belongs to the SDK token that has made it', async () => {
    const mine = await host.token('OPERATOR')
    const its = await host.token('OPERATOR')
    const id = await open(workflowId, mine)
    expect((await say(id, 'say hi', mine)).text).toBe('hi')
    expect(await read(id, mine)).toMatchObject({ owner: { kind: 'SDK_TOKEN', name: 'a OPERATOR token' } })
    for (const as of [its, operator.cookie, viewer])
      expect((await call('GET', `${SESSIONS}/${id}`, as)).status).toBe(403)
    const list = await call('GET', `${SESSIONS}?teamId=${teamId}`, mine)
    expect(list.body.content.map((item: { id: string }) => item.id)).toEqual([id])
  })
})

test('messages are kept for as many days as the team says, and go with their executions', async () => {
  const path = `/api/teams/${teamId}`
  for (const chatRetentionDays of [0, 1.5, '7', 3_651])
    expect((await call('PUT', path, admin, { chatRetentionDays })).status).toBe(400)
  const set = await call('PUT', path, admin, { chatRetentionDays: 7 })
  expect(set).toMatchObject({ status: 200, body: { chatRetentionDays: 7 } })
  const id = await open(workflowId, operator.cookie)
  await say(id, 'say old', operator.cookie)
  await say(id, 'say new', operator.cookie)
  const { messages } = await read(id, operator.cookie)
  const old = messages[0].executionId
  expect(await read(id, operator.cookie)).toMatchObject({ title: 'say old' })
  await sql`update agent_chat_messages set created_at = now() - interval '8 days' where execution_id = ${old}`.execute(
    db,
  )
  expect(await pruneChats(host.store)).toBe(2)
  expect(await read(id, operator.cookie)).toMatchObject({
    title: 'say new',
    messageCount: 2,
    messages: messages.slice(2),
  })
  expect((await call('GET', `/api/executions/${old}`, admin)).status).toBe(404)
  expect((await call('GET', `/api/executions/${messages[2].executionId}`, admin)).status).toBe(200)
  expect(await pruneChats(host.store)).toBe(0)
  expect((await call('PUT', path, admin, { chatRetentionDays: null })).body.chatRetentionDays).toBe(null)
})

test('what a deleted workflow leaves of its chats elsewhere is removed', async () => {
  const child = await host.create({
    nodes: [{ id: 'in', type: 'SUB_WORKFLOW_TRIGGER', config: {} }],
    edges: [],
  } as never)
  const config = { credentialId: await credential(), model: 'demo', prompt: 'say x' }
  const caller = await agent(
    [
      { id: 'sub', type: 'SUB_WORKFLOW', config: { workflowId: child } },
      { id: 'llm', type: 'LLM', config },
    ],
    ['chat -> sub', 'sub -> llm'],
  )
  const id = await open(caller, operator.cookie)
  expect((await say(id, 'x', operator.cookie)).text).toBe('x')
  await host.ask('DELETE', `/api/workflows/${caller}`)
  const left = () => db.selectFrom('executions').select('id').where('chatSessionId', '=', id).execute()
  expect(await left()).toHaveLength(1)
  await pruneChats(host.store)
  expect(await left()).toEqual([])
  expect(await db.selectFrom('agentChatPurges').select('sessionId').execute()).toEqual([])
})

test('a chat that is longer than the model is to remember is summarised once for many messages', async () => {
  const server = await startOpenAi(({ body }) =>
    JSON.stringify(body).includes('Summarize the conversation')
      ? { text: 'SHORT: Ada wants plums.' }
      : { text: `Noted. ${'x'.repeat(100)}` },
  )
  try {
    const credentialId = await credential('OPENAI_COMPATIBLE', { apiKey: 'sk-x', baseUrl: server.url })
    const id = await open(
      await simpleAgent({ credentialId, model: 'm' }, { chatHistoryTokens: 200 }),
      operator.cookie,
    )
    for (let n = 1; n <= 10; n++) await say(id, `Message ${n}: ${'y'.repeat(60)}`, operator.cookie)
    const asked = server.calls.map(({ body }: { body: object }) => JSON.stringify(body))
    const summaries = asked.filter((body: string) => body.includes('Summarize the conversation'))
    expect(summaries.length).toBeGreaterThan(1)
    expect(summaries.length).toBeLessThan(5)
    expect(asked.at(-1)).toContain('SHORT: Ada wants plums.')
    expect(asked.at(-1)).not.toContain('Message 1:')
    expect(asked.at(-1)).toContain('Message 10:')
    // The second summary goes on from the first one.
    expect(summaries[1]).toContain('SHORT: Ada wants plums.')
    const { messages } = await read(id, operator.cookie)
    expect(messages.filter(({ content }: { content: string }) => content.includes('SHORT'))).toEqual([])
    const calls = await db
      .selectFrom('modelCalls')
      .select('executionId')
      .where('nodeId', '=', 'llm')
      .execute()
    const counts = Map.groupBy(calls, ({ executionId }) => executionId)
    expect(messages.filter((_: object, at: number) => at % 2 === 0).length).toBe(10)
    const twice = messages.filter(
      ({ executionId, role }: { executionId: string; role: string }) =>
        role === 'user' && counts.get(executionId)?.length === 2,
    )
    expect(twice).toHaveLength(summaries.length)
  } finally {
    await server.stop()
  }
})

test('a summary that a filter has cut is not remembered', async () => {
  const server = await startOpenAi(({ body }) =>
    JSON.stringify(body).includes('Summarize the conversation')
      ? { text: 'HALF: Ada wa', finish: 'content_filter' }
      : { text: `Noted. ${'x'.repeat(100)}` },
  )
  try {
    const credentialId = await credential('OPENAI_COMPATIBLE', { apiKey: 'sk-x', baseUrl: server.url })
    const id = await open(
      await simpleAgent({ credentialId, model: 'm' }, { chatHistoryTokens: 200 }),
      operator.cookie,
    )
    for (let n = 1; n <= 10; n++) await say(id, `Message ${n}: ${'y'.repeat(60)}`, operator.cookie)
    const asked = server.calls.map(({ body }: { body: object }) => JSON.stringify(body))
    expect(asked.some((body: string) => body.includes('Summarize the conversation'))).toBe(true)
    expect(asked.filter((body: string) => body.includes('HALF'))).toEqual([])
    const { messages } = await read(id, operator.cookie)
    const run = await call('GET', `/api/executions/${messages.at(-1).executionId}`, operator.cookie)
    expect(JSON.stringify(run.body)).toContain("is left out: the summary is cut off by its vendor's filter")
  } finally {
    await server.stop()
  }
})

test('an agent summarises a long chat in a step of its own, which is no part of the reply', async () => {
  const server = await startOpenAi(({ body }) =>
    JSON.stringify(body).includes('Summarize the conversation')
      ? { text: 'SHORT: Ada wants plums.' }
      : { text: `Noted. ${'x'.repeat(300)}` },
  )
  try {
    const credentialId = await credential('OPENAI_COMPATIBLE', { apiKey: 'sk-x', baseUrl: server.url })
    const config = { credentialId, model: 'm', instructions: 'Help.', maxSteps: 1, maxTokens: 5_000 }
    const nodes = [{ id: 'agent', type: 'AI_AGENT', config }]
    const id = await open(await agent(nodes, ['chat -> agent'], { chatHistoryTokens: 200 }), operator.cookie)
    for (let n = 1; n <= 3; n++) await say(id, `Message ${n}: ${'y'.repeat(300)}`, operator.cookie)
    const { messages } = await read(id, operator.cookie)
    const last = messages.at(-1)
    expect(last).toMatchObject({
      role: 'assistant',
      content: `Noted. ${'x'.repeat(300)}`,
      status: 'COMPLETE',
    })
    const execution = (await host.ask(
      'GET',
      `/api/executions/${last.executionId}`,
      undefined,
      operator.cookie,
    )) as {
      nodeExecutions: { nodeId: string; step: number | null; tool: string | null; outputData: object }[]
    }
    const steps = execution.nodeExecutions.filter(({ step }) => step !== null)
    expect(steps).toMatchObject([
      {
        step: 1,
        tool: null,
        inputData: { model: 'm', messages: [{ role: 'system' }, { role: 'user' }] },
        outputData: { summary: 'SHORT: Ada wants plums.', usage: { input: 100, output: 20 } },
        usage: { calls: 1 },
      },
      {
        step: 2,
        tool: null,
        inputData: {
          messages: [{}, { content: expect.stringContaining('SHORT: Ada wants plums.') }, {}, {}],
        },
        outputData: { text: `Noted. ${'x'.repeat(300)}` },
        usage: { calls: 1 },
      },
    ])
    expect(last.tokenUsage).toMatchObject({ input: 200, output: 40 })
  } finally {
    await server.stop()
  }
})

describe('the list', () => {
  test('has the own sessions, finds parts of titles and messages, and is paged', async () => {
    const me = await host.signUp('OPERATOR')
    const [a, b, c] = [
      await open(workflowId, me.cookie, 'Über 100% Parcels'),
      await open(workflowId, me.cookie),
      await open(await simpleAgent(), me.cookie, 'Other'),
    ]
    await say(b, 'Where is the_parcel of Ölaf?', me.cookie)
    const find = async (query = '', as = me.cookie) => {
      const { status, body } = await call('GET', `${SESSIONS}?teamId=${teamId}${query}`, as)
      expect(status).toBe(200)
      return body.content.map((item: { id: string }) => item.id)
    }
    expect(await find()).toEqual([b, c, a])
    expect(await find('&size=1&page=1')).toEqual([c])
    expect(await find(`&workflowId=${workflowId}`)).toEqual([b, a])
    expect(await find('&search=PARCEL')).toEqual([b, a])
    expect(await find('&search=the_p')).toEqual([b])
    expect(await find('&search=he%25p')).toEqual([])
    expect(await find('&search=0%25')).toEqual([a])
    expect(await find('&search=%C3%96laf')).toEqual([b])
    expect(await find('&search=x')).toEqual([])
    expect(await find('&search=')).toEqual([b, c, a])
    const { body } = await call('GET', `${SESSIONS}?teamId=${teamId}&size=1`, me.cookie)
    expect(body).toMatchObject({
      totalElements: 3,
      totalPages: 3,
      number: 0,
      size: 1,
      content: [
        { id: b, title: 'Where is the_parcel of Ölaf?', messageCount: 2, lastMessageAt: expect.any(String) },
      ],
    })
    expect(await find('', other.cookie)).not.toContain(a)
    expect(await find('&search=the_p', other.cookie)).toEqual([])
    expect(await find('', admin)).not.toContain(a)
    expect(await find('&all=true&search=the_p', admin)).toEqual([b])
    expect((await call('GET', `${SESSIONS}?teamId=${teamId}&all=true`, me.cookie)).status).toBe(403)
    expect((await call('GET', `${SESSIONS}?teamId=${teamId}`, viewer)).status).toBe(403)
    expect((await call('GET', SESSIONS, me.cookie)).status).toBe(400)
    expect((await call('GET', `${SESSIONS}?teamId=${teamId}&size=101`, me.cookie)).status).toBe(400)
  })

  test('is searched by its indexes', async () => {
    const plans: string[] = []
    const session = await open(workflowId, other.cookie)
    await db.transaction().execute(async (tx) => {
      // Many of the same team and owner: only the text tells them apart.
      await sql`insert into agent_chat_messages (id, session_id, team_id, owner_id, role, status, content, execution_id)
        select gen_random_uuid(), ${session}, ${teamId}, ${operator.id}, 'user', 'COMPLETE', md5(n::text) || n,
          gen_random_uuid() from generate_series(1, 20000) n`.execute(tx)
      await sql`insert into agent_chat_sessions (id, team_id, workflow_id, owner_kind, owner_id, title, untitled)
        select gen_random_uuid(), ${teamId}, ${workflowId}, 'USER', ${operator.id}, md5(n::text) || n, false
        from generate_series(1, 20000) n`.execute(tx)
      // What an index has not merged yet makes it dearer, by how much is left to chance: vacuum would merge it.
      for (const index of ['agent_chat_messages_search', 'agent_chat_sessions_search'])
        await sql`select gin_clean_pending_list(${index})`.execute(tx)
      await sql`analyze agent_chat_messages, agent_chat_sessions`.execute(tx)
      for (const table of ['agent_chat_messages where content', 'agent_chat_sessions where title']) {
        const { rows } = await sql<Record<string, string>>`explain select id from ${sql.raw(
          table.replace('where ', `where team_id = '${teamId}' and owner_id = '${operator.id}' and `),
        )} ilike '%parcel%'`.execute(tx)
        plans.push(rows.map((row) => Object.values(row)[0]).join('\n'))
      }
      await sql`delete from agent_chat_sessions where title ~ '^[0-9a-f]{32}'`.execute(tx)
    })
    await call('DELETE', `${SESSIONS}/${session}`, other.cookie)
    expect(plans[0]).toContain('agent_chat_messages_search')
    expect(plans[1]).toContain('agent_chat_sessions_search')
    for (const plan of plans) expect(plan).toMatch(/Index Cond.*~~\*/)
  })
})

describe('a message', () => {
  test('is refused while a reply is being written, and a repeated one starts nothing', async () => {
    const id = await open(await simpleAgent({ model: 'demo-slow' }), operator.cookie)
    const key = { 'idempotency-key': 'one' }
    const answers = await Promise.all([
      post(id, 'say a b c d e f', operator.cookie, key),
      post(id, 'say a b c d e f', operator.cookie, key),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect((await post(id, 'another', operator.cookie)).status).toBe(409)
    expect((await post(id, 'another', operator.cookie, { 'idempotency-key': 'two' })).status).toBe(409)
    expect((await post(id, 'another', operator.cookie, key)).status).toBe(409)
    for (const answer of answers)
      expect(sumUp(await readReply(answer).all())).toMatchObject({
        text: 'a b c d e f',
        last: { type: 'done' },
      })
    const later = await post(id, 'say a b c d e f', operator.cookie, key)
    expect(sumUp(await readReply(later).all()).text).toBe('a b c d e f')
    expect((await read(id, operator.cookie)).messages).toHaveLength(2)
    expect((await say(id, 'say x', operator.cookie)).text).toBe('x')
  })

  test('that is new gets its reply from the beginning, whatever the client has read before', async () => {
    const id = await open(await simpleAgent(), operator.cookie)
    for (const last of ['end', '3-saved']) {
      const key = { 'idempotency-key': `after ${last}` }
      const fresh = await post(id, 'say a b c', operator.cookie, { ...key, 'last-event-id': last })
      expect(fresh.status).toBe(200)
      expect(sumUp(await readReply(fresh).all()).text).toBe('a b c')
      const again = await post(id, 'say a b c', operator.cookie, { ...key, 'last-event-id': '3-saved' })
      expect(sumUp(await readReply(again).all()).text).toBe(' c')
      const over = await post(id, 'say a b c', operator.cookie, { ...key, 'last-event-id': 'end' })
      expect(sumUp(await readReply(over).all()).text).toBe('a b c')
    }
  })

  test('that got no reply is FAILED, and later ones do not know of it', async () => {
    const server = await startOpenAi((_call: unknown, number: number) =>
      number === 0 ? { status: 400, json: { error: { message: 'no such thing' } } } : { text: 'fine' },
    )
    try {
      const credentialId = await credential('OPENAI_COMPATIBLE', { apiKey: 'sk-x', baseUrl: server.url })
      const id = await open(await simpleAgent({ credentialId, model: 'm' }), operator.cookie)
      const failed = await say(id, 'first', operator.cookie)
      expect(failed.last).toMatchObject({ type: 'error', message: expect.stringContaining('no such thing') })
      const { messages, messageCount } = await read(id, operator.cookie)
      expect([messageCount, messages]).toMatchObject([
        1,
        [
          {
            role: 'user',
            status: 'FAILED',
            content: 'first',
            error: expect.stringContaining('no such thing'),
          },
        ],
      ])
      expect((await say(id, 'second', operator.cookie)).text).toBe('fine')
      expect(JSON.stringify(server.calls[1]!.body.messages)).not.toContain('first')
      const run = messages[0].executionId
      expect((await call('POST', `/api/executions/${run}/retry`, operator.cookie)).status).toBe(409)
    } finally {
      await server.stop()
    }
  })

  test('is stopped: what has come is kept, and the next message knows it', async () => {
    const id = await open(await simpleAgent({ model: 'demo-slow' }), operator.cookie)
    const stream = readReply(await post(id, `say ${'word '.repeat(300)}`, operator.cookie))
    let text = ''
    for (let chunks = 0; chunks < 10; chunks++) text += (await stream.next())!.content
    const stopped = await call('POST', `${SESSIONS}/${id}/stop`, operator.cookie)
    expect(stopped).toMatchObject({ status: 200, body: { message: 'The reply is being stopped' } })
    const rest = await stream.all()
    const { messages } = await read(id, operator.cookie)
    expect(messages[1]).toMatchObject({ id: stopped.body.messageId, status: 'STOPPED' })
    expect(messages[1].content).toBe(text + sumUp(rest).text)
    expect(messages[1].content.length).toBeLessThan(1_400)
    expect(rest.at(-1)).toMatchObject({ type: 'done' })
    expect(messages[0].status).toBe('COMPLETE')
    const again = await call('POST', `${SESSIONS}/${id}/stop`, operator.cookie)
    expect(again.body).toEqual({ message: 'No reply is being written', messageId: null })
  })

  test('without a text in the end is FAILED with the reason', async () => {
    const config = { credentialId: await credential(), model: 'demo', prompt: 'say x' }
    const id = await open(
      await agent(
        [
          { id: 'if', type: 'IF_ELSE', config: { condition: '{{ $trigger.message = "yes" }}' } },
          { id: 'llm', type: 'LLM', config },
        ],
        ['chat -> if', 'if:true -> llm'],
      ),
      operator.cookie,
    )
    expect((await say(id, 'no', operator.cookie)).last).toMatchObject({
      type: 'error',
      message: expect.stringContaining('without the node "LLM 1"'),
    })
    expect((await say(id, 'yes', operator.cookie)).text).toBe('x')
  })

  test('of a workflow that keeps no outputs gets its reply, and the outputs go then', async () => {
    const id = await open(
      await simpleAgent({}, { saveData: { inputs: false, outputs: false } }),
      operator.cookie,
    )
    expect((await say(id, 'say a secret', operator.cookie)).text).toBe('a secret')
    const { messages } = await read(id, operator.cookie)
    expect(messages[1]).toMatchObject({ status: 'COMPLETE', content: 'a secret' })
    const rows = await db
      .selectFrom('nodeExecutions')
      .select('output')
      .where('executionId', '=', messages[1].executionId)
      .execute()
    expect(rows.map(({ output }) => output)).toEqual(rows.map(() => null))
  })
})

test('what a vendor does not report is unknown, for the reply, the execution and the totals', async () => {
  const server = await startOpenAi({ text: 'Not counted.', usage: null })
  try {
    const credentialId = await credential('OPENAI_COMPATIBLE', { apiKey: 'sk-x', baseUrl: server.url })
    const id = await open(await simpleAgent({ credentialId, model: 'uncounted' }), operator.cookie)
    const { last } = await say(id, 'Hello', operator.cookie)
    expect(last).toEqual({ id: 'end', type: 'done', tokenUsage: { input: 0, output: 0 }, usageKnown: false })
    const { messages } = await read(id, operator.cookie)
    expect(messages.at(-1)).toMatchObject({ content: 'Not counted.', tokenUsage: null })
    const run = await call('GET', `/api/executions/${messages.at(-1).executionId}`, operator.cookie)
    expect(run.body.usage).toMatchObject({ cost: null, calls: 1, unpricedCalls: 1 })
    const models = await call('GET', `/api/monitoring/teams/${teamId}/token-usage/by-model`, operator.cookie)
    const own = models.body.models.find(({ model }: { model: string }) => model === 'uncounted')
    expect(own).toMatchObject({ cost: null, calls: 1, unpricedCalls: 1 })
  } finally {
    await server.stop()
  }
})
