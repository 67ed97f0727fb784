import { expect, test } from 'vitest'
import type { Graph } from '../../../support/client.ts'
import { ask, asked, start, useApprovals, ways } from '../../../support/engine/approvals.ts'
import { keep } from '../../../support/keep.ts'
import { startRunning } from '../../../support/running.ts'
import { PASSWORD } from '../../../support/service.ts'

const running = await keep(startRunning())
const { waitFor, decide } = useApprovals(running)

const approved = { decision: 'approved' }
const save = async (id: string, json: object) =>
  (await running.ask<{ version: number }>('PUT', `/api/workflows/${id}`, json)).version
const read = (id: string) => running.ask<Graph>('GET', `/api/workflows/${id}`)
/** Gives an account another e-mail, which the instance's admin confirms. */
async function move(person: { cookie: string }, email: string) {
  const json = { email, currentPassword: PASSWORD }
  expect((await running.call('PUT', '/api/auth/me', person.cookie, json)).status).toBe(200)
  await running.ask('POST', '/api/admin/users/confirm', { email })
}
async function hold(workflowId: string, data: Record<string, unknown> = { amount: 1 }) {
  const id = await running.execute(workflowId, data)
  return (await waitFor(id))[0]!
}

test('an approver named by e-mail is the member who had confirmed it when the version was saved, whatever their address is now', async () => {
  const [boss, eve] = [await running.signUp('OPERATOR'), await running.signUp('OPERATOR')]
  const written = await running.create(asked({ approvers: [boss.email.toUpperCase()] }))
  const computed = await running.create(asked({ approvers: ['{{ $trigger.boss }}'] }))
  const early = await hold(computed, { boss: boss.email })
  const [old, next] = [boss.email, `new-${boss.email}`]
  await move(boss, next)
  await move(eve, old)

  const open = await hold(written)
  expect(open).toMatchObject({ approvers: [next] })
  for (const { id } of [open, early]) {
    expect((await decide(id, approved, eve.cookie)).status).toBe(403)
    expect((await decide(id, approved, boss.cookie)).status).toBe(200)
  }
  // What an expression finds when the approval begins is whoever has the address then.
  const late = await hold(computed, { boss: old })
  expect((await decide(late.id, approved, boss.cookie)).status).toBe(403)
  expect((await decide(late.id, approved, eve.cookie)).status).toBe(200)

  // The graph shows the present address: saved again as it was read, it is the same version, of the same person.
  const { nodes, edges: lines } = await read(written)
  expect(nodes[1]!.config).toMatchObject({ approvers: [next] })
  expect(await save(written, { nodes, edges: lines })).toBe(1)
  const exported = await running.ask<Graph>('GET', `/api/workflows/${written}/export`)
  expect(exported.nodes[1]!.config).toMatchObject({ approvers: [next] })
  const detail = await running.ask<Graph>('GET', `/api/workflows/${written}/versions/1`)
  expect(detail.nodes[1]!.config).toMatchObject({ approvers: [next] })
  const renamed = nodes.map((node) => ({ ...node, name: `${node.id}!` }))
  expect(await save(written, { nodes: renamed })).toBe(2)
  const diff = await running.ask<{ nodes: unknown }>('GET', `/api/workflows/${written}/versions/1/diff/2`)
  expect(JSON.stringify(diff)).not.toContain('approvers')
  // An old version that is restored means the same person.
  await running.ask('POST', `/api/workflows/${written}/versions/1/restore`)
  const again = await hold(written)
  expect((await decide(again.id, approved, eve.cookie)).status).toBe(403)
  expect((await decide(again.id, approved, boss.cookie)).status).toBe(200)
  // Whoever writes the address anew means whom it belongs to now.
  expect(await save(written, { nodes: asked({ approvers: [old] }).nodes })).toBe(4)
  const other = await hold(written)
  expect((await decide(other.id, approved, boss.cookie)).status).toBe(403)
  expect((await decide(other.id, approved, eve.cookie)).status).toBe(200)
})

test('an approver named by e-mail is nobody without a confirmed address: not who wants it, nor who registered it', async () => {
  const [eve, ada] = [await running.signUp('OPERATOR'), await running.signUp('OPERATOR')]
  const email = `ceo-${eve.email}`
  const named = asked({ approvers: [email, ada.email] })
  const written = await running.create(named)
  const computed = await running.create(asked({ approvers: ['{{ $trigger.boss }}', ada.email] }))
  const json = { email, currentPassword: PASSWORD }
  expect((await running.call('PUT', '/api/auth/me', eve.cookie, json)).status).toBe(200)
  for (const workflowId of [written, computed]) {
    const { id } = await hold(workflowId, { boss: email })
    expect((await decide(id, approved, eve.cookie)).status).toBe(403)
  }
  // Confirmed after the version was saved: that version did not mean them, the next one does.
  const before = await hold(computed, { boss: email })
  await running.ask('POST', '/api/admin/users/confirm', { email })
  const after = await hold(written)
  for (const { id } of [before, after]) expect((await decide(id, approved, eve.cookie)).status).toBe(403)
  expect(await save(written, { nodes: named.nodes })).toBe(2)
  expect((await decide((await hold(written)).id, approved, eve.cookie)).status).toBe(200)
  // An address that nobody has proven counts for nothing, not even that of a member.
  await running.store.db
    .updateTable('users')
    .set({ emailConfirmedAt: null })
    .where('id', '=', ada.id)
    .execute()
  const run = await running.run(asked({ approvers: [ada.email] }))
  expect(run.errorMessage).toContain('no member of the team had confirmed')
  const late = await running.run(asked({ approvers: '{{ [$trigger.who] }}' }), { who: ada.email })
  expect(late.errorMessage).toBe(`approvers name nobody: no member of the team has confirmed ${ada.email}`)
})

test('an approver need not have proven it where every address counts as confirmed', async () => {
  const ada = await running.signUp('OPERATOR')
  const { store } = running
  await store.db.updateTable('users').set({ emailConfirmedAt: null }).where('id', '=', ada.id).execute()
  store.emailProof = () => 'none'
  try {
    const written = await hold(await running.create(asked({ approvers: [ada.email] })))
    const computed = await running.create(asked({ approvers: ['{{ $trigger.boss }}'] }))
    const open = [written, await hold(computed, { boss: ada.email })]
    for (const { id } of open) expect((await decide(id, approved, ada.cookie)).status).toBe(200)
  } finally {
    store.emailProof = undefined
  }
})

test('an approver must be known before the workflow is activated, if nobody else could decide', async () => {
  const nodes = [start, ask({ approvers: ['nobody@example.com'] }), ...ways]
  const id = await running.create({ nodes, edges: asked().edges })
  const refused = await running.call('PUT', `/api/workflows/${id}`, running.admin, { active: true })
  expect([refused.status, refused.body.errors]).toEqual([
    400,
    [
      {
        path: 'nodes[1].config.approvers',
        message: expect.stringMatching(/^nobody could decide: .*nobody@/),
      },
    ],
  ])
  const mixed = [start, ask({ approvers: ['nobody@example.com', 'ADMIN'] }), ...ways]
  await save(id, { nodes: mixed, active: true })
  const document = await running.ask<object>('GET', `/api/workflows/${id}/export`)
  const copy = { teamId: running.teamId, name: 'copy', workflow: document }
  const { report } = await running.ask<{ report: { problems: unknown[] } }>(
    'POST',
    '/api/workflows/import',
    copy,
  )
  expect(report.problems).toEqual([
    expect.objectContaining({
      node: 'Approval 1',
      path: 'nodes[1].config.approvers',
      original: 'nobody@example.com',
    }),
  ])
})

test('an approver goes on being who they were if a process of the release before saved the version', async () => {
  const boss = await running.signUp('OPERATOR')
  const id = await running.create(asked({ approvers: [boss.email] }))
  const { db } = running.store
  await db.updateTable('workflowVersions').set({ approverIds: null }).where('workflowId', '=', id).execute()
  const open = await hold(id)
  expect((await decide(open.id, approved)).status).toBe(403)
  expect((await decide(open.id, approved, boss.cookie)).status).toBe(200)
})
