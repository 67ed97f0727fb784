import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { migrate } from '../../../db/migrate.ts'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { db } = service.store

test('the migration confirms the accounts of before, and binds the approvers that their workflows name', async () => {
  const [boss, other] = [await service.signUp('OPERATOR'), await service.signUp()]
  const node = (id: string, type: string, config: object) => ({ id, type, config })
  const nodes = [
    node('start', 'MANUAL_TRIGGER', {}),
    // PostgreSQL cannot read these as text, but JSON may have them.
    node('set', 'SET', { values: { odd: 'a\0b\ud800 \\u0000 \\\\ud800 and "quotes"' } }),
    node('ask', 'APPROVAL', {
      approvers: ['ADMIN', boss.email.toUpperCase(), other.email, '{{ $trigger.boss }}'],
    }),
    node('all', 'APPROVAL', { approvers: '{{ ["x@example.com"] }}' }),
    node('any', 'APPROVAL', {}),
  ]
  const save = async (name: string, graph: object[]) => {
    const json = { name, teamId: service.teamId, nodes: graph, edges: [] }
    const made = await service.call('POST', '/api/workflows', service.admin, json)
    expect(made.status).toBe(201)
    return made.body.id as string
  }
  const asks = await save('asks', nodes)
  const plain = await save('plain', nodes.slice(0, 2))
  await sql
    .raw(`drop trigger users_email_doubted on users; drop function doubt_email; drop table email_tokens, mails;
      alter table users drop column email_confirmed_at, drop column pending_email;
      alter table workflow_versions drop column approver_ids; delete from migrations where name like '0021%' or name like '0023%'`)
    .execute(db)
  expect(await migrate(db)).toEqual([expect.stringMatching(/^0021/), expect.stringMatching(/^0023/)])

  const { body } = await service.call('GET', '/api/auth/me', other.cookie)
  expect(body).toMatchObject({ emailConfirmed: true, pendingEmail: null })
  const bound = await db
    .selectFrom('workflowVersions')
    .select(['workflowId', 'approverIds'])
    .where('workflowId', 'in', [asks, plain])
    .execute()
  const of = (id: string) => bound.find(({ workflowId }) => workflowId === id)!.approverIds
  // Somebody outside of the team is no approver.
  expect(of(asks)).toEqual({ [boss.email]: boss.id })
  expect(of(plain)).toBe(null)
})
