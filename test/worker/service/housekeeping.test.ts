import { Writable } from 'node:stream'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createSession } from '../../../db/people/sessions.ts'
import { findById } from '../../../db/people/users.ts'
import { startHousekeeping } from '../../../worker/service/housekeeping.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())

test('expired sessions are removed in every scheduled round', async () => {
  const { store } = service
  const living = (await store.db.selectFrom('sessions').select('id').execute()).map(({ id }) => id)
  const expire = async () => {
    const person = (await findById(store, service.user.id))!
    const { id } = (await createSession(store, person, { ip: null, requestId: null, userAgent: null }))!
    await store.db
      .updateTable('sessions')
      .set({ expiresAt: new Date(0) })
      .where('id', '=', id)
      .execute()
  }
  const read = async () => (await store.db.selectFrom('sessions').select('id').execute()).map(({ id }) => id)
  const end = startHousekeeping(store, pino({ level: 'silent' }), { at: '* * * * * *' })
  for (let round = 0; round < 2; round++) {
    await expire()
    await expect.poll(read).toEqual(living)
  }
  await end()
})

test('a chain that was tampered with is told in the log once: at the start, in a round, or by an act', async () => {
  const { team, act, tamper } = makeChains(service)
  const lines: Record<string, unknown>[] = []
  const write = (line: Buffer, _: unknown, done: () => void) => {
    lines.push(JSON.parse(line.toString()))
    done()
  }
  const log = pino({}, new Writable({ write }))
  const breakHead = async () => {
    const teamId = await team(1)
    await tamper(`update audit_heads set mac = sha256('x') where team_id = '${teamId}'`)
    return teamId
  }
  const told = () => lines.filter(({ level }) => level === 50).map(({ teamId }) => teamId)
  const first = await breakHead()
  const end = startHousekeeping(service.store, log, { at: '* * * * * *' })
  await expect.poll(told).toEqual([first])
  const second = await breakHead()
  await expect.poll(told).toEqual([first, second])
  const third = await breakHead()
  expect((await act(third)).status).toBe(503)
  expect((await act(third)).status).toBe(503)
  await end()
  expect(told()).toEqual([first, second, third])
  expect(lines.every(({ msg }) => String(msg).includes('does not verify: its head is not signed'))).toBe(true)
})
