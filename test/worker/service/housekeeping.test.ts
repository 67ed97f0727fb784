import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createSession } from '../../../db/people/sessions.ts'
import { findById } from '../../../db/people/users.ts'
import { startHousekeeping } from '../../../worker/service/housekeeping.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())

test('expired sessions are removed in every scheduled round', async () => {
  const { store } = service
  const living = (await store.db.selectFrom('sessions').select('id').execute()).map(({ id }) => id)
  const expire = async () => {
    const person = (await findById(store, service.user.id))!
    const { id } = (await createSession(store, person))!
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
