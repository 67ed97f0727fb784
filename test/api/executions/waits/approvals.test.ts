import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import type { Approval } from '../../../../db/executions/waits/approvals.ts'
import { nodeOf } from '../../../support/client.ts'
import { ask, asked, start, useApprovals } from '../../../support/engine/approvals.ts'
import { edges } from '../../../support/engine/graphs.ts'
import { keep } from '../../../support/keep.ts'
import { startRunning } from '../../../support/running.ts'
import { until } from '../../../support/until.ts'

const running = await keep(startRunning())

const { list, waitFor, begin, decide } = useApprovals(running)

describe('a decision', () => {
  test('needs an approver and a valid form; the execution follows it, and it is audited', async () => {
    const boss = await running.signUp('OPERATOR')
    const other = await running.signUp('BUILDER')
    const form = {
      properties: {
        cost: { type: 'integer', minimum: 1, maximum: 10 },
        center: { type: 'string', enum: ['north', 'south'] },
        note: { type: 'string', maxLength: 5 },
      },
      required: ['cost', 'center'],
    }
    const { id, approval } = await begin(
      asked({ approvers: ['ADMIN', '{{ $trigger.boss }}'], form, timeoutMs: 60_000 }),
      { amount: 7, boss: boss.email.toUpperCase() },
    )
    expect(approval).toMatchObject({
      executionId: id,
      nodeId: 'ask',
      iteration: null,
      message: 'Pay 7?',
      status: 'OPEN',
      required: 1,
      approvers: ['ADMIN', boss.email.toUpperCase()],
      mayDecide: true,
      decisions: [],
    })
    expect(Date.parse(String(approval.deadline))).toBeGreaterThan(Date.now() + 50_000)
    expect((await list(`executionId=${id}`, other.cookie))[0]!.mayDecide).toBe(false)
    const approved = { decision: 'approved', comment: 'fine', form: { cost: 3, center: 'north' } }
    expect((await decide(approval.id, approved, other.cookie)).status).toBe(403)
    const token = await running.token('OPERATOR')
    expect((await decide(approval.id, approved, token)).status).toBe(403)

    const wrong = await decide(
      approval.id,
      { ...approved, form: { cost: 0.5, note: 'too long' } },
      boss.cookie,
    )
    expect(wrong.status).toBe(400)
    expect(wrong.body.errors).toEqual([
      { path: 'form.cost', message: 'must be a whole number, not 0.5' },
      { path: 'form.cost', message: 'must be at least 1, not 0.5' },
      { path: 'form.center', message: 'is required' },
      { path: 'form.note', message: 'must have at most 5 characters' },
    ])
    const right = await decide(approval.id, approved, boss.cookie)
    expect(right).toMatchObject({ status: 200, body: { status: 'APPROVED', mayDecide: false } })
    expect((await decide(approval.id, approved, boss.cookie)).status).toBe(409)

    const run = await running.ended(id)
    expect(run.outputData).toEqual({ way: 'yes', amount: 7 })
    const by = { id: boss.id, name: 'Ada Byron', email: boss.email }
    expect(nodeOf(run, 'ask').outputData).toMatchObject({
      amount: 7,
      decision: 'approved',
      approved: true,
      comment: 'fine',
      decidedBy: by,
      form: { cost: 3, center: 'north' },
    })
    const audit = await running.store.db
      .selectFrom('auditEntries')
      .selectAll()
      .where('action', '=', 'APPROVAL_DECIDED')
      .execute()
    expect(audit).toHaveLength(1)
    expect(audit[0]).toMatchObject({ resourceId: approval.id, actorId: boss.id })
    const { mayDecide: _, ...settled } = right.body
    expect(await running.ask('GET', `/api/approvals/${approval.id}`)).toMatchObject(settled)
    expect(await list(`executionId=${id}`)).toEqual([])
    expect(await list(`executionId=${id}&status=APPROVED`)).toHaveLength(1)
  })

  test('to reject needs no form, and the node leaves by its own handle', async () => {
    const form = { properties: { cost: { type: 'number' } }, required: ['cost'] }
    const { id, approval } = await begin(asked({ form }))
    expect(approval.approvers).toEqual([])
    const token = await running.token('OPERATOR')
    expect((await decide(approval.id, { decision: 'rejected', comment: 'too much' }, token)).status).toBe(200)
    const run = await running.ended(id)
    expect(run.outputData).toEqual({ way: 'no', why: 'too much' })
  })

  test('may bring files, which are sent before it and belong to the execution from then on', async () => {
    const form = {
      properties: {
        contract: { type: 'file', accept: ['.pdf'], maxBytes: 20 },
        more: { type: 'file', multiple: true },
      },
      required: ['contract'],
    }
    const { id, approval } = await begin(asked({ form }))
    const send = (text: string, name: string) =>
      running.request(`/api/approvals/${approval.id}/files`, {
        method: 'POST',
        as: running.admin,
        headers: {
          'content-type': 'application/pdf',
          'content-disposition': `attachment; filename="${name}"`,
        },
        body: text,
      })
    const sent = await send('%PDF-1', 'deal.pdf')
    expect(sent.status).toBe(200)
    const contract = (await sent.json()) as { file: { id: string } }
    expect(contract).toMatchObject({ file: { name: 'deal.pdf', mimeType: 'application/pdf', bytes: 6 } })
    const other = await (await send('%PDF-2', 'deal.exe')).json()
    const yes = (values: unknown) => decide(approval.id, { decision: 'approved', form: values })
    expect((await yes({ contract: other })).body.errors).toMatchObject([{ path: 'form.contract' }])
    const strange = { file: { ...contract.file, id: crypto.randomUUID() } }
    expect((await yes({ contract: strange })).status).toBe(409)
    const larger = { file: { ...contract.file, bytes: 7 } }
    expect((await yes({ contract: larger })).status).toBe(409)
    expect((await yes({ contract, more: [other] })).status).toBe(200)
    expect((await send('%PDF-3', 'late.pdf')).status).toBe(409)
    const run = await running.ended(id)
    expect(nodeOf(run, 'ask').outputData).toMatchObject({ form: { contract, more: [other] } })
    const owned = await running.ask<{ content: { name: string }[] }>('GET', `/api/executions/${id}/files`)
    expect(owned.content.map(({ name }) => name).sort()).toEqual(['deal.exe', 'deal.pdf'])
    const bytes = await running.request(`/api/executions/${id}/files/${contract.file.id}`, {
      as: running.admin,
    })
    expect(await bytes.text()).toBe('%PDF-1')
    const plain = await begin(asked({ form: { properties: { a: { type: 'string' } } } }))
    const path = `/api/approvals/${plain.approval.id}/files`
    expect((await running.request(path, { method: 'POST', as: running.admin, body: 'a' })).status).toBe(409)
  })

  test('may have a form of any shape if the approval defines none', async () => {
    const { id, approval } = await begin(asked())
    const form = { note: 'half now', parts: [1, { of: 2 }] }
    const { body } = await decide(approval.id, { decision: 'approved', form })
    expect(body.decisions).toMatchObject([{ form }])
    expect(nodeOf(await running.ended(id), 'ask').outputData).toMatchObject({ form })
  })

  test('counts only once if two people decide at the same time', async () => {
    const { id, approval } = await begin(asked())
    const both = await Promise.all([
      decide(approval.id, { decision: 'approved' }),
      decide(approval.id, { decision: 'rejected' }),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    const way = both[0]!.status === 200 ? 'yes' : 'no'
    expect((await running.ended(id)).outputData).toMatchObject({ way })
  })

  test('may need several people, and exclude the one who started the execution', async () => {
    const [one, two] = [await running.signUp('OPERATOR'), await running.signUp('OPERATOR')]
    const { id, approval } = await begin(asked({ required: 2, selfApproval: false }))
    const approved = { decision: 'approved' }
    expect((await decide(approval.id, approved)).status).toBe(403)
    expect(await decide(approval.id, approved, one.cookie)).toMatchObject({
      status: 200,
      body: { status: 'OPEN' },
    })
    expect((await decide(approval.id, approved, one.cookie)).status).toBe(409)
    expect((await running.read(id)).status).toBe('RUNNING')
    expect(await decide(approval.id, approved, two.cookie)).toMatchObject({
      status: 200,
      body: { status: 'APPROVED' },
    })
    const run = await running.ended(id)
    expect(nodeOf(run, 'ask').outputData!.decisions).toHaveLength(2)
  })

  test('is 403 for strangers, 404 for an unknown approval, and 400 for a wrong body', async () => {
    const { id, approval } = await begin(asked())
    const stranger = await running.otherTeam()
    expect((await decide(approval.id, { decision: 'approved' }, stranger.cookie)).status).toBe(403)
    expect((await decide(crypto.randomUUID(), { decision: 'approved' })).status).toBe(404)
    const wrong = await decide(approval.id, { decision: 'maybe', form: [], comment: 1 })
    expect(wrong.status).toBe(400)
    expect(wrong.body.errors).toHaveLength(3)
    await running.ask('POST', `/api/executions/${id}/cancel`)
  })
})

describe('the time limit', () => {
  test('makes the node leave by the handle that the config names', async () => {
    const [late, no] = await Promise.all([
      running.run(asked({ timeoutMs: 100 }), { amount: 1 }),
      running.run(asked({ timeoutMs: 100, onTimeout: 'rejected' }), { amount: 1 }),
    ])
    expect(late.outputData).toEqual({ way: 'late' })
    expect(nodeOf(late, 'ask').outputData).toMatchObject({ decision: 'timeout', approved: false, amount: 1 })
    expect([late, no].map((run) => nodeOf(run, 'ask').handle)).toEqual(['timeout', 'rejected'])
    expect(no.outputData).toMatchObject({ way: 'no' })
    expect(await list(`executionId=${late.id}&status=EXPIRED`)).toHaveLength(1)
  })

  test('holds while no worker runs: a later decision is refused, an earlier one is followed', {
    tags: 'long',
  }, async () => {
    // The worker has to be stopped within the time limit, however busy the machine is.
    const began = Date.now()
    await begin(asked())
    const timeoutMs = Math.min(60_000, 3_000 + 10 * (Date.now() - began))
    const [late, early] = await Promise.all([begin(asked({ timeoutMs })), begin(asked({ timeoutMs }))])
    const first = running.engine
    running.use(undefined)
    await first.stop()
    try {
      expect((await decide(early.approval.id, { decision: 'approved' })).status).toBe(200)
      await new Promise((resolve) =>
        setTimeout(resolve, Date.parse(String(late.approval.deadline)) - Date.now() + 20),
      )
      expect(await running.ask('GET', `/api/approvals/${late.approval.id}`)).toMatchObject({
        status: 'EXPIRED',
      })
      expect(await list(`executionId=${late.id}`)).toEqual([])
      const refused = await decide(late.approval.id, { decision: 'approved' })
      expect(refused.status).toBe(409)
      expect(refused.body.message).toContain('time limit')
    } finally {
      // The tests after this one need a worker too.
      running.engine = await running.addEngine()
      running.use(running.engine)
    }
    // The new engine carries out the errand that could not be carried out before.
    await sql`update outbox set due_at = now() where kind = 'SIGNAL'`.execute(running.store.db)
    const [one, two] = [await running.ended(early.id), await running.ended(late.id)]
    expect(one.outputData).toMatchObject({ way: 'yes' })
    expect(two.outputData).toEqual({ way: 'late' })
    const left = await running.store.db
      .selectFrom('outbox')
      .where('kind', '=', 'SIGNAL')
      .selectAll()
      .execute()
    expect(left).toEqual([])
  })
})

test('a decision that races with the deadline counts or is refused, and the execution agrees', async () => {
  const workflow = await running.create(asked({ timeoutMs: 700 }))
  const races = Array.from({ length: 8 }, async (_, at) => {
    const id = await running.execute(workflow, { amount: at })
    // On a busy machine the time limit may be over before anybody has seen the approval.
    const [approval] = await until(
      async () => [...(await list(`executionId=${id}`)), ...(await list(`executionId=${id}&status=EXPIRED`))],
      { holds: (found) => found.length > 0 },
    )
    const early = 60 - at * 15
    await new Promise((resolve) =>
      setTimeout(resolve, Date.parse(String(approval!.deadline)) - Date.now() - early),
    )
    const { status } = await decide(approval!.id, { decision: 'approved' })
    const run = await running.ended(id)
    return { status, way: run.outputData?.way }
  })
  const ended = await Promise.all(races)
  for (const { status, way } of ended)
    expect({ status, way }).toEqual({ status, way: status === 200 ? 'yes' : 'late' })
  expect(ended.every(({ status }) => status === 200 || status === 409)).toBe(true)
})

describe('several approvals', () => {
  test('wait in parallel branches and are decided in any order', async () => {
    const graph = {
      nodes: [
        start,
        ask({}, { id: 'a' }),
        ask({}, { id: 'b' }),
        { id: 'join', type: 'MERGE', config: { mode: 'append' } },
      ],
      edges: edges('start -> a', 'start -> b', 'a:approved b:rejected -> join'),
    }
    const id = await running.execute(await running.create(graph), { amount: 1 })
    const open = await waitFor(id, 2)
    const of = (nodeId: string) => open.find((approval) => approval.nodeId === nodeId)!.id
    expect((await decide(of('b'), { decision: 'rejected' })).status).toBe(200)
    await until(async () =>
      (await running.read(id)).nodeExecutions.some(
        ({ nodeId, status }) => nodeId === 'b' && status === 'SUCCESS',
      ),
    )
    expect((await decide(of('a'), { decision: 'approved' })).status).toBe(200)
    const run = await running.ended(id)
    expect(
      (run.outputData!.value as Approval[]).map((one) => (one as unknown as { decision: string }).decision),
    ).toEqual(['approved', 'rejected'])
  })

  test('wait in the iterations of a loop, each with the number of its iteration', async () => {
    const graph = {
      nodes: [
        start,
        { id: 'each', type: 'FOR_EACH', config: { items: '{{ $input.list }}', concurrency: 3 } },
        ask({ message: 'And {{ $item }}?' }, { parentId: 'each' }),
        { id: 'yes', parentId: 'each', type: 'SET', config: { values: { is: '{{ $item }}' } } },
      ],
      edges: edges('start -> each', 'ask:approved -> yes'),
    }
    const id = await running.execute(await running.create(graph), { list: ['a', 'b', 'c'] })
    const open = await waitFor(id, 3)
    const byMessage = (text: string) => open.find(({ message }) => message === text)!
    expect(byMessage('And c?').iteration).toBe('2')
    for (const [text, decision] of [
      ['And c?', 'approved'],
      ['And a?', 'approved'],
      ['And b?', 'rejected'],
    ] as const) {
      expect((await decide(byMessage(text).id, { decision })).status).toBe(200)
    }
    const run = await running.ended(id)
    expect(run.outputData).toMatchObject({ items: [{ is: 'a' }, { decision: 'rejected' }, { is: 'c' }] })
  })
})

describe('an approval is abandoned', () => {
  test('once its execution is cancelled', async () => {
    const { id, approval } = await begin(asked())
    await running.ask('POST', `/api/executions/${id}/cancel`)
    await running.ended(id)
    expect(await running.ask('GET', `/api/approvals/${approval.id}`)).toMatchObject({
      status: 'ABANDONED',
      mayDecide: false,
    })
    expect((await decide(approval.id, { decision: 'approved' })).status).toBe(409)
  })

  test.each([
    ['in a segment', {}],
    ['as an activity', { retry: { maxAttempts: 1 } }],
  ])('once the iteration has failed %s, while the rest of the loop goes on', async (_, more) => {
    const graph = {
      nodes: [
        start,
        {
          id: 'each',
          type: 'FOR_EACH',
          config: { items: '{{ [1, 2] }}', concurrency: 2, onItemError: 'collect' },
        },
        ask({}, { parentId: 'each' }),
        { id: 'wait', parentId: 'each', type: 'WAIT', config: { durationMs: 300 } },
        { id: 'if', parentId: 'each', type: 'IF_ELSE', config: { condition: '$index = 0' } },
        { id: 'stop', parentId: 'each', type: 'STOP_AND_ERROR', config: { message: 'no' }, ...more },
      ],
      edges: edges('start -> each', 'wait -> if', 'if:true -> stop'),
    }
    const id = await running.execute(await running.create(graph), {})
    const [second, first] = await waitFor(id, 2).then((all) =>
      all.sort((a, b) => (a.iteration! < b.iteration! ? 1 : -1)),
    )
    await until(async () => (await list(`executionId=${id}&status=ABANDONED`)).length === 1)
    expect((await decide(first!.id, { decision: 'approved' })).status).toBe(409)
    expect((await decide(second!.id, { decision: 'approved' })).status).toBe(200)
    const run = await running.ended(id)
    expect(run.status).toBe('SUCCESS')
    expect(run.outputData).toMatchObject({ items: [{ error: { message: 'no' } }, {}] })
  })
})

describe('the approvers and the form', () => {
  test('are checked when the graph is saved', async () => {
    const nodes = [
      start,
      ask({
        approvers: ['BOSS', 'a@example.com'],
        form: { properties: { a: { type: 'text', pattern: '.*' } }, required: ['b'] },
        timeoutMs: 0,
        onTimeout: 'never',
        required: 0,
      }),
    ]
    const answer = await running.request('/api/workflows', {
      method: 'POST',
      as: running.admin,
      json: { name: 'faulty', teamId: running.teamId, nodes, edges: [] },
    })
    expect(answer.status).toBe(400)
    const { errors } = (await answer.json()) as { errors: { path: string; message: string }[] }
    expect(errors.find(({ path }) => path.includes('approvers'))!.message).toBe(
      'must be OPERATOR, BUILDER, ADMIN or an e-mail address',
    )
    expect(errors.map(({ path }) => path.replace('nodes[1].config.', '')).sort()).toEqual([
      'approvers[0]',
      'form.properties.a.pattern',
      'form.properties.a.type',
      'onTimeout',
      'required',
      'timeoutMs',
    ])
  })

  test('fail the node if nobody is an approver: otherwise everybody could decide', async () => {
    const run = await running.run(asked({ approvers: '{{ $input.who }}' }))
    expect(run.errorMessage).toContain('approvers')
    expect(run.status).toBe('FAILED')
    const strangers = await running.run(asked({ approvers: ['nobody@example.com'] }))
    expect(strangers.errorMessage).toBe(
      'approvers name nobody: no member of the team had confirmed nobody@example.com when this version was saved; ' +
        'add them to the team, then save the workflow again',
    )
  })
})
