import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSession } from '../../db/sessions.ts'
import { startHousekeeping } from '../../worker/housekeeping.ts'
import { type Service, startService } from '../service.ts'

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

test('what has expired is removed by the clock, round after round', async () => {
  const { store } = service
  const living = (await store.db.selectFrom('sessions').select('id').execute()).map(({ id }) => id)
  const expire = async () => {
    const { id } = await createSession(store, service.user.id)
    await store.db
      .updateTable('sessions')
      .set({ expiresAt: new Date(0) })
      .where('id', '=', id)
      .execute()
  }
  const read = async () => (await store.db.selectFrom('sessions').select('id').execute()).map(({ id }) => id)
  const end = startHousekeeping(store, pino({ level: 'silent' }), '* * * * * *')
  for (let round = 0; round < 2; round++) {
    await expire()
    await expect.poll(read).toEqual(living)
  }
  await end()
})
