import { expect, test } from 'vitest'
import { createChatting } from '../../support/chat/chatting.ts'
import { readReply, sumUp } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
import { startOpenAi } from '../../support/servers/models/openai.ts'
import { until } from '../../support/until.ts'

const host = await keep(startRunning())
const { credential, agent, open, say, read, post, SESSIONS } = createChatting(host)
const { teamId, admin, call } = host
const owner = await host.signUp('OPERATOR')
const builder = await host.signUp('BUILDER')
const operator = await host.signUp('OPERATOR')
const viewer = await host.token('VIEWER')
const adminToken = await host.token('ADMIN')
const send = async (path: string, as: string) => {
  const response = await host.request(path, { as })
  return { status: response.status, text: await response.text() }
}
const others = { builder: builder.cookie, operator: operator.cookie, viewer }
const readers = { owner: owner.cookie, admin, adminToken }

const SECRET = 'kumquat'

/** A chat whose run has a sub-workflow, a file, a failed node, requests, an approval and an agent with a tool. */
const child = await host.create({
  nodes: [
    { id: 'in', type: 'SUB_WORKFLOW_TRIGGER', config: {} },
    { id: 'keep', type: 'SET', config: { values: { said: '{{ $input.message }}' } } },
  ],
  edges: [{ source: 'in', target: 'keep' }],
} as never)
const model = await startOpenAi((_call: unknown, number: number) =>
  number % 2 === 0
    ? { text: `${SECRET} `, tools: [{ name: 'note', args: { text: SECRET } }] }
    : { text: `It was ${SECRET}.` },
)
const workflowId = await agent(
  [
    { id: 'sub', type: 'SUB_WORKFLOW', config: { workflowId: child, input: '{{ $trigger }}' } },
    { id: 'code', type: 'CODE', config: { code: 'console.log($trigger.message); return $trigger' } },
    {
      id: 'fails',
      type: 'STOP_AND_ERROR',
      onError: 'CONTINUE',
      config: { message: '{{ $trigger.message }}' },
    },
    {
      id: 'file',
      type: 'CONVERT_TO_FILE',
      config: { format: 'text', data: '{{ $trigger.message }}', fileName: 'said.txt' },
    },
    {
      id: 'agent',
      type: 'AI_AGENT',
      config: {
        credentialId: await credential('OPENAI_COMPATIBLE', { apiKey: 'sk-x', baseUrl: model.url }),
        model: 'm',
        instructions: 'Help.',
        prompt: '{{ $trigger.message }}',
        maxSteps: 10,
        tools: [
          {
            type: 'CODE',
            name: 'note',
            description: 'Notes a text',
            parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
            code: 'return $args.text',
          },
        ],
      },
    },
  ],
  ['chat -> sub', 'sub -> code', 'code -> fails', 'fails -> file', 'file -> agent'],
)

test('what a chat holds is seen by its owner and by ADMINs, in every view of its executions', async () => {
  const session = await open(workflowId, owner.cookie)
  const { text, last } = await say(session, `my word is ${SECRET}`, owner.cookie)
  expect([text, last]).toMatchObject([`${SECRET} It was ${SECRET}.`, { type: 'done' }])
  const { executionId: id } = (await read(session, owner.cookie)).messages[1]
  const whole = await call('GET', `/api/executions/${id}`, owner.cookie)
  expect(whole.body).toMatchObject({ hidden: false, trigger: 'CHAT', status: 'SUCCESS', usage: { calls: 2 } })
  const records: { id: string; nodeId: string; step: number | null; childExecutionId: string | null }[] =
    whole.body.nodeExecutions
  expect(records.map(({ step }) => step).filter((step) => step !== null)).toEqual([1, 2, 3])
  const childId = records.find(({ nodeId }) => nodeId === 'sub')!.childExecutionId!
  const turn = records.find(({ step }) => step === 1)!
  const files = await call('GET', `/api/executions/${id}/files`, owner.cookie)
  expect(files.body.content).toHaveLength(1)
  const file = files.body.content[0].id

  const paths = [
    `/api/executions/${id}`,
    `/api/executions/${id}/nodes?size=100`,
    `/api/executions/${id}/nodes?nodeId=agent`,
    `/api/executions/${id}/events`,
    `/api/executions/${childId}`,
    `/api/executions/${childId}/nodes`,
    `/api/executions/${childId}/events`,
    `/api/executions?workflowId=${workflowId}`,
    `/api/executions/team/${teamId}`,
    `/api/approvals?teamId=${teamId}`,
  ]
  for (const path of paths)
    for (const [who, as] of Object.entries(others)) {
      const { status, text } = await send(path, as)
      expect([path, who, status]).toEqual([path, who, 200])
      expect(text, `${path} for the ${who}`).not.toContain(SECRET)
    }
  for (const [who, as] of Object.entries(others)) {
    const { body } = await call('GET', `/api/executions/${id}`, as)
    expect(body).toMatchObject({
      hidden: true,
      status: 'SUCCESS',
      inputData: {},
      outputData: null,
      nodeExecutionsTotal: 6,
      usage: { calls: 2 },
    })
    expect(body.nodeExecutions.map(({ nodeId }: { nodeId: string }) => nodeId)).toEqual([
      'chat',
      'sub',
      'code',
      'fails',
      'file',
      'agent',
    ])
    const page = await call('GET', `/api/executions/${id}/nodes`, as)
    expect([who, page.body.totalElements]).toEqual([who, 6])
    const statuses = []
    for (const path of [
      `/api/executions/${id}/nodes/${turn.id}/requests`,
      `/api/executions/${id}/nodes/${turn.id}/attempts`,
      `/api/executions/${id}/files`,
      `/api/executions/${id}/files/${file}`,
      `/api/executions/${id}/waits`,
      `/api/executions/${childId}/files`,
    ])
      statuses.push((await send(path, as)).status)
    expect([who, statuses]).toEqual([who, [403, 403, 403, 403, 403, 403]])
    const tried = { teamId, executionId: id, nodeId: 'agent', expression: '{{ $trigger.message }}' }
    expect((await call('POST', '/api/expressions/evaluate', as, tried)).status).toBe(403)
  }
  for (const as of Object.values(readers)) {
    for (const path of paths.slice(0, 5)) expect((await send(path, as)).text).toContain(SECRET)
    expect((await send(`/api/executions/${id}/files/${file}`, as)).text).toContain(SECRET)
    expect((await send(`/api/executions/${id}/nodes/${turn.id}/requests`, as)).text).toContain(SECRET)
  }
  for (const format of ['csv', 'json']) {
    const path = `/api/executions/team/${teamId}/export?format=${format}&days=1`
    expect((await send(path, operator.cookie)).text).not.toContain(SECRET)
    expect((await send(path, operator.cookie)).text).toContain(id)
    expect((await send(path, admin)).text).toContain(SECRET)
  }
})

test('nobody else repeats what a chat has started, or takes its files', async () => {
  const session = await open(workflowId, owner.cookie)
  await say(session, `a word: ${SECRET}`, owner.cookie)
  const { executionId: id } = (await read(session, owner.cookie)).messages[1]
  const { body } = await call('GET', `/api/executions/${id}`, owner.cookie)
  const childId = body.nodeExecutions[1].childExecutionId
  for (const [what, how] of [
    [id, 'rerun'],
    [childId, 'rerun'],
    [id, 'retry'],
    [childId, 'retry'],
  ])
    expect((await call('POST', `/api/executions/${what}/${how}`, operator.cookie)).status).toBe(403)
  expect((await call('POST', `/api/executions/${id}/rerun`, owner.cookie)).status).toBe(409)
  const rerun = await call('POST', `/api/executions/${childId}/rerun`, owner.cookie)
  expect(rerun.status).toBe(202)
  await until(() => call('GET', `/api/executions/${rerun.body.executionId}`, owner.cookie), {
    holds: (answer) => answer.body.status === 'SUCCESS',
  })
  const seen = await call('GET', `/api/executions/${rerun.body.executionId}`, operator.cookie)
  expect([seen.body.hidden, seen.text.includes(SECRET)]).toEqual([true, false])

  const { body: files } = await call('GET', `/api/executions/${id}/files`, owner.cookie)
  const plain = await host.create({
    nodes: [{ id: 'a', type: 'MANUAL_TRIGGER', config: {} }],
    edges: [],
  } as never)
  const file = { fileId: files.content[0].id, file: files.content[0] }
  const taken = await call('POST', `/api/workflows/${plain}/execute`, operator.cookie, { teamId, data: file })
  expect(
    (await call('GET', `/api/executions/${taken.body.executionId}/files`, operator.cookie)).body.content,
  ).toEqual([])

  // All of it goes with the chat.
  expect((await call('DELETE', `${SESSIONS}/${session}`, owner.cookie)).status).toBe(200)
  for (const gone of [id, childId, rerun.body.executionId])
    expect((await send(`/api/executions/${gone}`, admin)).status).toBe(404)
})

test('an approval is shown to those who are asked', async () => {
  const asking = async (approvers: string[]) => {
    const config = { credentialId: await credential(), model: 'demo', prompt: 'say done' }
    const workflow = await agent(
      [
        { id: 'ask', type: 'APPROVAL', config: { message: 'May I? {{ $trigger.message }}', approvers } },
        { id: 'llm', type: 'LLM', config },
      ],
      ['chat -> ask', 'ask:approved -> llm'],
    )
    const session = await open(workflow, owner.cookie)
    const stream = readReply(await post(session, SECRET, owner.cookie))
    const list = await until(
      () => call('GET', `/api/approvals?teamId=${teamId}&workflowId=${workflow}`, admin),
      {
        holds: ({ body }) => body.content.length === 1,
      },
    )
    return { stream, path: `/api/approvals/${list.body.content[0].id}` }
  }
  const anybody = await asking([])
  const named = await asking([builder.email])
  const see = async (path: string, as: string) => {
    const { body } = await call('GET', path, as)
    return [body.message, body.mayDecide]
  }
  for (const as of [operator.cookie, viewer]) {
    const { body, text } = await call('GET', named.path, as)
    expect(body).toMatchObject({ hidden: true, approvers: [], decisions: [], form: null })
    expect(text).not.toContain(builder.email)
  }
  for (const as of [owner.cookie, admin, builder.cookie])
    expect((await call('GET', named.path, as)).body).toMatchObject({
      hidden: false,
      approvers: [builder.email],
    })
  expect(await see(anybody.path, builder.cookie)).toEqual([null, false])
  expect(await see(anybody.path, admin)).toEqual([`May I? ${SECRET}`, true])
  expect(await see(named.path, operator.cookie)).toEqual([null, false])
  expect(await see(named.path, builder.cookie)).toEqual([`May I? ${SECRET}`, true])
  const decision = { decision: 'approved', comment: SECRET }
  expect((await call('POST', anybody.path, builder.cookie, decision)).status).toBe(403)
  expect((await call('POST', anybody.path, admin, decision)).status).toBe(200)
  expect((await call('POST', named.path, builder.cookie, decision)).status).toBe(200)
  for (const { stream } of [anybody, named])
    expect((await stream.all()).at(-1)).toMatchObject({ type: 'done' })
  const after = await call('GET', named.path, operator.cookie)
  expect(after.text).not.toContain(SECRET)
  const audited = await host.store.db.selectFrom('auditEntries').select('details').execute()
  expect(JSON.stringify(audited)).not.toContain(SECRET)
})

test('only the owner and ADMINs send events to the executions of a chat; an OPERATOR may cancel them', async () => {
  const waiting = { id: 'wait', type: 'WAIT_FOR_EVENT', config: { name: 'go' } }
  const config = {
    credentialId: await credential(),
    model: 'demo',
    prompt: 'say {{ $input.word }}',
  }
  const workflow = await agent([waiting, { id: 'llm', type: 'LLM', config }], ['chat -> wait', 'wait -> llm'])
  const begin = async () => {
    const session = await open(workflow, owner.cookie)
    const stream = readReply(await post(session, SECRET, owner.cookie))
    const { executionId } = (await read(session, owner.cookie)).messages[1]
    await until(() => call('GET', `/api/executions/${executionId}/waits`, owner.cookie), {
      holds: ({ body }) => body.content?.length === 1,
    })
    return { stream, executionId, path: `/api/executions/${executionId}/events/go` }
  }
  const event = { word: 'plum' }
  for (const as of [owner.cookie, admin]) {
    const { stream, path } = await begin()
    for (const other of Object.values(others)) {
      const { status } = await call('POST', path, other, event)
      expect(status).toBe(403)
    }
    const statuses = [await call('POST', path, as, event), await call('POST', path, operator.cookie, event)]
    expect(statuses.map(({ status }) => status)).toEqual([200, 403])
    expect(sumUp(await stream.all())).toMatchObject({ text: 'plum', last: { type: 'done' } })
  }
  const { stream, executionId } = await begin()
  expect((await call('POST', `/api/executions/${executionId}/cancel`, viewer)).status).toBe(403)
  const cancelled = await call('POST', `/api/executions/${executionId}/cancel`, operator.cookie)
  expect(cancelled.status).toBe(200)
  expect(cancelled.text).not.toContain(SECRET)
  expect(sumUp(await stream.all())).toMatchObject({ text: '', last: { type: 'done' } })
})

test('a bulk retry leaves out what replies in chats, and what others have said there', async () => {
  const handler = await host.create({
    nodes: [
      { id: 'in', type: 'SUB_WORKFLOW_TRIGGER', config: {} },
      { id: 'stop', type: 'STOP_AND_ERROR', config: { message: '{{ $input.message }}' } },
    ],
    edges: [{ source: 'in', target: 'stop' }],
  } as never)
  const config = { credentialId: await credential(), model: 'demo', prompt: 'x' }
  const failing = await agent(
    [
      { id: 'sub', type: 'SUB_WORKFLOW', config: { workflowId: handler, input: '{{ $trigger }}' } },
      { id: 'llm', type: 'LLM', config },
    ],
    ['chat -> sub', 'sub -> llm'],
  )
  const session = await open(failing, owner.cookie)
  expect((await say(session, SECRET, owner.cookie)).last).toMatchObject({ type: 'error' })
  const { executionId: id } = (await read(session, owner.cookie)).messages[0]
  const { body } = await call('GET', `/api/executions/${id}`, owner.cookie)
  const childId = body.nodeExecutions[1].childExecutionId
  const retry = async (as: string, filter: object) =>
    (await call('POST', `/api/executions/team/${teamId}/retry`, as, { filter })).body
  expect(await retry(operator.cookie, { workflowId: failing })).toMatchObject({ matched: 0, retried: 0 })
  for (const as of [operator.cookie, owner.cookie, admin])
    expect(await retry(as, { ids: [id] })).toMatchObject({
      matched: 0,
      retried: 0,
      skipped: [{ id, reason: expect.stringContaining('post the message again') }],
    })
  const refused = await retry(operator.cookie, { ids: [childId] })
  expect(refused).toMatchObject({
    retried: 0,
    skipped: [{ id: childId, reason: expect.stringContaining('private chat') }],
  })
  const own = await retry(owner.cookie, { ids: [childId] })
  expect(own).toMatchObject({ retried: 1, executions: [{ retriedFrom: childId }] })
  const again = own.executions[0].executionId
  await until(() => call('GET', `/api/executions/${again}`, owner.cookie), {
    holds: (answer) => answer.body.status === 'FAILED',
  })
  const seen = await call('GET', `/api/executions/${again}`, operator.cookie)
  expect([seen.body.hidden, seen.text.includes(SECRET)]).toEqual([true, false])
})

test('the error workflow of a chat is private too', async () => {
  const handler = await host.create({
    nodes: [{ id: 'error', type: 'ERROR_TRIGGER', config: {} }],
    edges: [],
  } as never)
  const failing = await agent(
    [
      { id: 'stop', type: 'STOP_AND_ERROR', config: { message: '{{ $trigger.message }}' } },
      {
        id: 'llm',
        type: 'LLM',
        config: { credentialId: await credential(), model: 'demo', prompt: 'x' },
      },
    ],
    ['chat -> stop', 'stop -> llm'],
    { errorWorkflowId: handler },
  )
  const session = await open(failing, owner.cookie)
  expect((await say(session, SECRET, owner.cookie)).last).toMatchObject({ type: 'error', message: SECRET })
  const list = await until(() => call('GET', `/api/executions?workflowId=${handler}`, admin), {
    holds: ({ body }) => body.content[0]?.status === 'SUCCESS',
  })
  const { id } = list.body.content[0]
  expect((await send(`/api/executions/${id}`, admin)).text).toContain(SECRET)
  for (const as of Object.values(others)) {
    expect((await send(`/api/executions/${id}`, as)).text).not.toContain(SECRET)
    expect((await send(`/api/executions?workflowId=${failing}`, as)).text).not.toContain(SECRET)
  }
})
