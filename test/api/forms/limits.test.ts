import { expect, test } from 'vitest'
import { FORM_PASSWORD_LIMIT } from '../../../db/operation/limits.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())

test('passwords of a form can be tried only so often from an address, and other forms do not count', async () => {
  const publish = async (name: string) => {
    const config = { path: 'a', form: { properties: {} }, access: 'password', password: { value: 'sesame' } }
    const { body } = await service.call('POST', '/api/workflows', service.admin, {
      ...{ teamId: service.teamId, name, edges: [] },
      nodes: [{ id: 'ask', type: 'FORM_TRIGGER', config }],
    })
    await service.call('PUT', `/api/workflows/${body.id}`, service.admin, { active: true })
    return `/forms/${body.id}/a/password`
  }
  const guess = async (path: string, password: string) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const body = `password=${password}`
    return (await service.request(path, { method: 'POST', body, headers })).status
  }
  const [one, other] = [await publish('one'), await publish('other')]
  const statuses = new Set<number>()
  // The minute of the clock may change in between: then as many may be tried again.
  for (let n = 0; n <= 2 * FORM_PASSWORD_LIMIT && !statuses.has(429); n++)
    statuses.add(await guess(one, 'wrong'))
  expect([...statuses]).toEqual([401, 429])
  expect(await guess(other, 'sesame')).toBe(303)
})
