import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { makeSigned } from '../../../api/people/signed.ts'
import { pruneChats } from '../../../db/chat/purge.ts'
import { createChatting } from '../../support/chat/chatting.ts'
import { readReply } from '../../support/chat/replies.ts'
import { createVisiting, PAGE } from '../../support/chat/visiting.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'

const host = await keep(shareRunning())
const { agent, credential, simpleAgent, SESSIONS } = createChatting(host)
const { addWidget, pathOf, visit, arrive, post, say, readChat } = createVisiting(host)
const { teamId, admin, call } = host
const { db } = host.store
const operator = await host.signUp('OPERATOR')

describe('a page', () => {
  test('of an allowed origin reads theme and texts, and nothing else of the team', async () => {
    const widget = await addWidget({ name: 'INTERNAL', theme: { title: 'Hi' } })
    const response = await visit('GET', pathOf(widget.key))
    expect(response.headers.get('access-control-allow-origin')).toBe(PAGE)
    expect(response.headers.get('access-control-allow-credentials')).toBeNull()
    expect(response.headers.get('vary')).toContain('Origin')
    expect(await response.json()).toEqual({ theme: widget.theme, collectEmail: false })
  })

  test('of another origin, of part of one, or of none gets nothing', async () => {
    const widget = await addWidget()
    for (const origin of [
      null,
      'null',
      'https://evil.example.com',
      `${PAGE}:8443`,
      'http://www.example.com',
      `${PAGE}.evil.org`,
    ])
      for (const [method, rest] of [
        ['GET', ''],
        ['POST', '/sessions'],
        ['POST', '/messages'],
        ['GET', '/messages'],
      ] as const) {
        const json = method === 'POST' ? { json: { content: 'Hello' } } : {}
        const response = await visit(method, pathOf(widget.key, rest), { origin, ...json })
        expect([origin, rest, response.status]).toEqual([origin, rest, 403])
        expect(response.headers.get('access-control-allow-origin')).toBeNull()
      }
    const entries = await db
      .selectFrom('auditEntries')
      .select('teamId')
      .where('action', '=', 'ACCESS_DENIED')
      .where(sql`details->>'operation'`, '=', 'openVisitorSession')
      .execute()
    expect(new Set(entries.map((entry) => entry.teamId))).toEqual(new Set([teamId]))
  })

  test('asks before it posts, and is told exactly whether it may', async () => {
    const widget = await addWidget()
    const ask = (origin: string) =>
      visit('OPTIONS', pathOf(widget.key, '/messages'), {
        origin,
        headers: {
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,content-type,idempotency-key',
        },
      })
    const allowed = await ask(PAGE)
    expect(allowed.status).toBe(204)
    expect(allowed.headers.get('access-control-allow-origin')).toBe(PAGE)
    expect(allowed.headers.get('access-control-allow-headers')).toBe(
      'Authorization, Content-Type, Idempotency-Key',
    )
    const refused = await ask('https://evil.example.com')
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([403, null])
    expect(refused.headers.get('access-control-allow-methods')).toBeNull()
  })

  test('finds no widget that is disabled, whose workflow is inactive or no chat, or that is not there', async () => {
    const widget = await addWidget()
    const statuses = async () =>
      Promise.all([
        visit('GET', pathOf(widget.key)).then(({ status }) => status),
        visit('POST', pathOf(widget.key, '/sessions'), { json: {} }).then(({ status }) => status),
        host.request(`/widget/${widget.key}`).then(({ status }) => status),
      ])
    expect(await statuses()).toEqual([200, 201, 200])
    await host.ask('PUT', `/api/widgets/${widget.id}`, { enabled: false })
    expect(await statuses()).toEqual([404, 404, 404])
    await host.ask('PUT', `/api/widgets/${widget.id}`, { enabled: true })
    await host.ask('PUT', `/api/workflows/${widget.workflowId}`, { active: false })
    expect(await statuses()).toEqual([404, 404, 404])
    expect((await visit('GET', pathOf('wk_none'))).status).toBe(404)
    await host.ask('PUT', `/api/workflows/${widget.workflowId}`, { active: true })
    expect(await statuses()).toEqual([200, 201, 200])
    // Its team has made something else of the workflow.
    const nodes = [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }]
    await host.ask('PUT', `/api/workflows/${widget.workflowId}`, { nodes, edges: [] })
    expect(await statuses()).toEqual([404, 404, 404])
  })
})

describe('a visitor', () => {
  test('chats, and is shown the text alone', async () => {
    const model = await startOpenAi(({ body }, number) =>
      number % 2 === 0
        ? { text: 'Let me look. ', tools: [{ name: 'peek', args: { secret: 'kumquat' } }] }
        : { text: `I was told of ${(body.messages as unknown[]).length} messages.` },
    )
    const workflowId = await agent(
      [
        {
          id: 'agent',
          type: 'AI_AGENT',
          config: {
            credentialId: await credential('OPENAI_COMPATIBLE', { apiKey: 'sk-x', baseUrl: model.url }),
            model: 'm',
            instructions: 'Help.',
            prompt: '{{ $trigger.message }}',
            tools: [
              {
                type: 'CODE',
                name: 'peek',
                description: 'Peeks',
                parameters: { type: 'object', properties: { secret: { type: 'string' } } },
                code: 'return "durian"',
              },
            ],
          },
        },
      ],
      ['chat -> agent'],
    )
    const { key, id: widgetId } = await addWidget({ workflowId })
    const visitor = await arrive(key)
    expect(Object.keys(visitor).sort()).toEqual(['expiresAt', 'expiresIn', 'sessionId', 'token'])
    const reply = await say(key, visitor.token, 'Hello')
    expect(reply.text).toMatch(/^Let me look\. I was told of \d+ messages\.$/)
    expect(reply.last).toEqual({ type: 'done', id: undefined })
    for (const hidden of ['kumquat', 'durian', 'peek', 'token', 'id:', 'input', workflowId, teamId, widgetId])
      expect([hidden, reply.raw.includes(hidden)]).toEqual([hidden, false])
    const chat = await readChat(key, visitor.token)
    expect(chat).toEqual({
      sessionId: visitor.sessionId,
      messages: [
        { role: 'user', status: 'COMPLETE', content: 'Hello', createdAt: expect.any(String) },
        { role: 'assistant', status: 'COMPLETE', content: reply.text, createdAt: expect.any(String) },
      ],
    })
  })

  test('does not learn why there is no reply', async () => {
    const secret = 'the vendor said durian'
    const workflowId = await agent(
      [
        { id: 'stop', type: 'STOP_AND_ERROR', config: { message: secret } },
        { id: 'llm', type: 'LLM', config: { credentialId: await credential(), model: 'demo', prompt: 'x' } },
      ],
      ['chat -> stop', 'stop -> llm'],
    )
    const { key } = await addWidget({ workflowId })
    const { token } = await arrive(key)
    const reply = await say(key, token, 'Hello')
    expect(reply.last).toMatchObject({ type: 'error', message: expect.stringContaining('no reply') })
    expect(reply.raw).not.toContain('durian')
    const chat = await readChat(key, token)
    expect(chat.messages).toMatchObject([{ role: 'user', status: 'FAILED', content: 'Hello' }])
    expect(JSON.stringify(chat)).not.toContain('durian')
  })

  test('reads only what is their own, whatever they send', async () => {
    const { key } = await addWidget()
    const other = await addWidget()
    const [ada, bob] = [await arrive(key), await arrive(key)]
    expect(bob.sessionId).not.toBe(ada.sessionId)
    await say(key, ada.token, 'say mine')
    expect((await readChat(key, bob.token)).messages).toEqual([])
    const read = async (at: string, token?: string) =>
      (await visit('GET', pathOf(at, '/messages'), token === undefined ? {} : { token })).status
    const { keys } = host.store
    const at = new Date(Date.now() + 60_000)
    const claims = { widget: key, page: false }
    const sign = (change: object) =>
      makeSigned(keys, {
        purpose: 'visitor',
        subject: ada.sessionId,
        claims,
        expiresAt: at,
        ...change,
      } as never)
    expect(await read(key, await sign({}))).toBe(200)
    const sdk = await host.token('ADMIN')
    for (const [what, token] of Object.entries({
      none: undefined,
      nonsense: 'nonsense',
      'another alphabet': `${ada.token.slice(0, -2)}xx`,
      expired: await sign({ expiresAt: new Date(Date.now() - 1_000) }),
      'for another widget': await sign({ claims: { widget: other.key, page: false } }),
      'for another purpose': await sign({ purpose: 'session' }),
      'of nobody': await sign({ subject: crypto.randomUUID() }),
      'of the team': sdk,
    }))
      expect([what, await read(key, token)]).toEqual([what, 401])
    expect(await read(other.key, ada.token)).toBe(401)
    // Nothing of the team's own chats can be reached with it.
    expect(
      (
        await call('GET', `${SESSIONS}/${ada.sessionId}`, undefined, undefined, {
          authorization: `Bearer ${ada.token}`,
        })
      ).status,
    ).toBe(401)
  })

  test('goes on with a new token, and begins anew after the key or the workflow was changed', async () => {
    const widget = await addWidget()
    const { key } = widget
    const visitor = await arrive(key)
    await say(key, visitor.token, 'say one')
    const renewed = await visit('POST', pathOf(key, '/sessions'), { token: visitor.token, json: {} })
    const next = (await renewed.json()) as typeof visitor
    expect([renewed.status, next.sessionId]).toEqual([201, visitor.sessionId])
    expect((await readChat(key, next.token)).messages).toHaveLength(2)
    const rotated = await host.ask<{ key: string }>('POST', `/api/widgets/${widget.id}/rotate-key`)
    expect(rotated.key).not.toBe(key)
    expect((await visit('GET', pathOf(key))).status).toBe(404)
    expect((await visit('GET', pathOf(key, '/messages'), { token: next.token })).status).toBe(404)
    expect((await visit('GET', pathOf(rotated.key, '/messages'), { token: next.token })).status).toBe(401)
    const again = await arrive(rotated.key)
    await host.ask('PUT', `/api/widgets/${widget.id}`, { workflowId: await simpleAgent() })
    expect((await visit('GET', pathOf(rotated.key, '/messages'), { token: again.token })).status).toBe(401)
  })

  test('gives an e-mail address if they are asked for one, and only then', async () => {
    const asking = await addWidget({ collectEmail: true })
    const sessions = pathOf(asking.key, '/sessions')
    for (const json of [{}, { email: 'nonsense' }])
      expect((await visit('POST', sessions, { json })).status).toBe(400)
    const { sessionId, token } = await arrive(asking.key, { email: 'ada@example.com' })
    await say(asking.key, token, 'say x')
    const seen = await call('GET', `${SESSIONS}/${sessionId}`, admin)
    expect(seen.body.owner).toEqual({ kind: 'VISITOR', id: sessionId, name: 'ada@example.com' })
    const run = await call('GET', `/api/executions/${seen.body.messages[0].executionId}`, admin)
    expect(run.body.inputData).toMatchObject({ message: 'say x', visitor: { email: 'ada@example.com' } })
    const quiet = await addWidget()
    const other = await arrive(quiet.key, { email: 'ada@example.com' })
    expect((await call('GET', `${SESSIONS}/${other.sessionId}`, admin)).body.owner.name).toBeNull()
  })

  test('gets the same reply for a message that is posted again', async () => {
    const { key } = await addWidget()
    const { token } = await arrive(key)
    const first = await (await post(key, token, 'say once', { 'idempotency-key': 'k1' })).text()
    const again = await (await post(key, token, 'say once', { 'idempotency-key': 'k1' })).text()
    expect(first).toContain('"content":"once"')
    expect(again).toContain('"content":"once"')
    expect((await readChat(key, token)).messages).toHaveLength(2)
    const other = await post(key, token, 'say another', { 'idempotency-key': 'k1' })
    expect(other.status).toBe(409)
  })

  test('waits for the reply before, is heard by no other, and hears no more once the widget is closed', async () => {
    const begun = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const model = await startOpenAi({
      text: ['One ', 'two '],
      before: async (event) => {
        if (event < 2) return
        begun.resolve()
        await goOn.promise
      },
    })
    const config = {
      credentialId: await credential('OPENAI_COMPATIBLE', { apiKey: 'sk-x', baseUrl: model.url }),
      ...{ model: 'm', prompt: '{{ $trigger.message }}' },
    }
    const workflowId = await agent([{ id: 'llm', type: 'LLM', config }], ['chat -> llm'])
    const widget = await addWidget({ workflowId })
    const { token } = await arrive(widget.key)
    const response = await post(widget.key, token, 'Count')
    const reply = readReply(response)
    await reply.until('One ')
    await begun.promise
    const busy = await post(widget.key, token, 'Again')
    expect([busy.status, ((await busy.json()) as { message: string }).message]).toEqual([
      409,
      'The reply to the message before is still being written',
    ])
    expect((await readChat(widget.key, token)).messages).toMatchObject([
      { role: 'user', content: 'Count' },
      { role: 'assistant', status: 'STREAMING', content: '' },
    ])
    await host.ask('PUT', `/api/widgets/${widget.id}`, { enabled: false })
    // The stream ends without a last event, as for somebody who has lost their right.
    expect(await reply.next()).toBeUndefined()
    goOn.resolve()
    await host.ask('PUT', `/api/widgets/${widget.id}`, { enabled: true })
    await expect
      .poll(async () => (await readChat(widget.key, token)).messages[1])
      .toMatchObject({
        status: 'COMPLETE',
        content: 'One two ',
      })
  })
})

describe('the team', () => {
  test('has visitors in no list but that of their widget, for ADMINs', async () => {
    const { key, id: widgetId } = await addWidget()
    const { token, sessionId } = await arrive(key)
    await say(key, token, 'say kumquat')
    const list = (query: string, as: string) => call('GET', `${SESSIONS}?teamId=${teamId}${query}`, as)
    const idsOf = (answer: Awaited<ReturnType<typeof list>>) =>
      answer.body.content.map(({ id }: { id: string }) => id)
    for (const query of ['', '&all=true', '&all=true&search=kumquat', '&search=kumquat'])
      expect(idsOf(await list(query, admin))).not.toContain(sessionId)
    expect(idsOf(await list(`&widgetId=${widgetId}`, admin))).toEqual([sessionId])
    expect(idsOf(await list(`&widgetId=${widgetId}&search=kumquat`, admin))).toEqual([sessionId])
    expect(idsOf(await list(`&widgetId=${widgetId}&search=nothing`, admin))).toEqual([])
    expect((await list(`&widgetId=${widgetId}`, operator.cookie)).status).toBe(403)
    const path = `${SESSIONS}/${sessionId}`
    expect((await call('GET', path, operator.cookie)).status).toBe(403)
    const seen = await call('GET', path, admin)
    expect(seen.body.messages).toHaveLength(2)
    expect((await call('POST', `${path}/messages`, admin, { content: 'x' })).status).toBe(403)
    const run = `/api/executions/${seen.body.messages[0].executionId}`
    expect((await call('GET', run, operator.cookie)).text).not.toContain('kumquat')
    expect((await call('GET', run, admin)).text).toContain('kumquat')
    expect((await call('DELETE', path, admin)).status).toBe(200)
    expect((await visit('GET', pathOf(key, '/messages'), { token })).status).toBe(401)
  })

  test('keeps what visitors say for thirty days, whatever it keeps of its own', async () => {
    const { key } = await addWidget({ collectEmail: true })
    const visitor = await arrive(key, { email: 'old@example.com' })
    await say(key, visitor.token, 'say old')
    await say(key, visitor.token, 'say new')
    const { rows } = await sql<{ executionId: string }>`select execution_id from agent_chat_messages
      where session_id = ${visitor.sessionId} and role = 'user' order by seq`.execute(db)
    const [old, young] = rows.map(({ executionId }) => executionId)
    await sql`update agent_chat_sessions set created_at = now() - interval '31 days' where id = ${visitor.sessionId}`.execute(
      db,
    )
    await sql`update agent_chat_messages set created_at = now() - interval '31 days' where execution_id = ${old!}`.execute(
      db,
    )
    expect(await pruneChats(host.store)).toBe(2)
    const { messages } = await readChat(key, visitor.token)
    expect(messages.map(({ content }: { content: string }) => content)).toEqual(['say new', 'new'])
    expect((await call('GET', `/api/executions/${old}`, admin)).status).toBe(404)
    expect((await call('GET', `/api/executions/${young}`, admin)).status).toBe(200)
    await sql`update agent_chat_messages set created_at = now() - interval '31 days' where session_id = ${visitor.sessionId}`.execute(
      db,
    )
    await sql`update agent_chat_sessions set active_at = now() - interval '31 days' where id = ${visitor.sessionId}`.execute(
      db,
    )
    expect(await pruneChats(host.store)).toBe(2)
    const left = await db
      .selectFrom('agentChatSessions')
      .select('id')
      .where('id', '=', visitor.sessionId)
      .execute()
    expect(left).toEqual([])
  })

  test('ends the chats of a widget that it deletes, with their executions', async () => {
    const widget = await addWidget()
    const { token, sessionId } = await arrive(widget.key)
    await say(widget.key, token, 'say x')
    await host.ask('DELETE', `/api/widgets/${widget.id}`)
    expect((await call('GET', `${SESSIONS}/${sessionId}`, admin)).status).toBe(404)
    await pruneChats(host.store)
    const left = await db
      .selectFrom('executions')
      .select('id')
      .where('chatSessionId', '=', sessionId)
      .execute()
    expect(left).toEqual([])
  })
})
