import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { rotateChannels } from '../../../../db/monitoring/channels/rotate.ts'
import { openChannel } from '../../../../db/monitoring/channels/secrets.ts'
import { listKeyUse } from '../../../../db/operation/keyuse.ts'
import { keep } from '../../../support/keep.ts'
import { makeNotices } from '../../../support/monitoring/notices.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { store, teamId } = service
const { add } = makeNotices(service)

test('the secrets of channels are sealed with a new key anew, and need the old one no more', async () => {
  const url = 'https://hooks.example.com/a'
  const { id, secret } = await add(teamId, 'channels', { name: 'Hook', type: 'WEBHOOK', config: { url } })
  const mail = { name: 'Us', type: 'EMAIL', config: { recipients: ['ada@example.com'] } }
  await add(teamId, 'channels', mail)
  const k2 = randomBytes(32)
  const both = { current: 'k2', byId: new Map([...store.keys.byId, ['k2', k2]]) }
  expect((await listKeyUse({ ...store, keys: both })).find((one) => one.id === 'k1')?.others.channels).toBe(1)
  expect(await rotateChannels({ ...store, keys: both })).toBe(1)
  expect(await rotateChannels({ ...store, keys: both })).toBe(0)
  const { sealed } = await store.db
    .selectFrom('notificationChannels')
    .select('sealed')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const alone = { current: 'k2', byId: new Map([['k2', k2]]) }
  expect(openChannel(alone, { teamId, id }, sealed!)).toEqual({ url, secret })
})
