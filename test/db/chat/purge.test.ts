import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import { expect, test } from 'vitest'
import { addExecution } from '../../../db/executions/starts/add.ts'
import type { Start } from '../../../db/executions/starts/origins.ts'
import { readStartable } from '../../../db/executions/starts/startable.ts'
import { createChats } from '../../support/chat/replies.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'

const service = await keep(startService())
const { store, teamId, admin, call } = service
const chats = createChats(service)

const trigger = { id: 'in', type: 'SUB_WORKFLOW_TRIGGER', config: {} }
const created = await call('POST', '/api/workflows', admin, {
  teamId,
  name: 'Child',
  nodes: [trigger],
  edges: [],
})
const child = (await readStartable(store, created.body.id, () => true))!

/** Starts what an execution starts without waiting for it. */
const start = (executionId: string, more: Partial<Start & { origin: 'PARENT' }> = {}) =>
  addExecution(store, child, {
    origin: 'PARENT',
    id: uuid(),
    node: trigger,
    trigger: 'SUB_WORKFLOW',
    data: { said: 'kumquat' },
    by: { kind: 'SYSTEM', id: null, name: '' },
    parent: { executionId, key: 'sub', depth: 1, detached: true },
    ...more,
  })

async function addChat() {
  const chat = await chats.addReply()
  await sql`update executions set chat_session_id = ${chat.sessionId} where id = ${chat.executionId}`.execute(
    store.db,
  )
  return chat
}

test('what a deleted execution was about to start is not started: nobody would know whose chat it is', async () => {
  const { executionId, sessionId } = await addChat()
  expect((await call('DELETE', `/api/agent-chat/sessions/${sessionId}`, admin)).status).toBe(200)
  const gone = { code: 'NOT_FOUND' }
  await expect(start(executionId)).rejects.toMatchObject(gone)
  await expect(start(executionId, { parent: undefined, failed: executionId } as never)).rejects.toMatchObject(
    gone,
  )
  const { rows } =
    await sql`select from executions where workflow_id = ${child.id} and input_data::text like '%kumquat%'`.execute(
      store.db,
    )
  expect(rows).toEqual([])
})

test('what is being started while its chat is cleared goes with the chat', async () => {
  const { executionId, sessionId } = await addChat()
  let cleared: ReturnType<typeof call> | undefined
  const started = await start(executionId, {
    // In the transaction that writes it.
    async adopt() {
      cleared = call('POST', `/api/agent-chat/sessions/${sessionId}/clear`, admin)
      await until(
        () =>
          sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
            store.db,
          ),
        { holds: ({ rows }) => rows.length > 0 },
      )
    },
  })
  expect((await cleared!).status).toBe(200)
  const { rows } =
    await sql`select from executions where id in (${executionId}, ${started.executionId})`.execute(store.db)
  expect(rows).toEqual([])
})
