import { afterEach, expect, test, vi } from 'vitest'
import { makeSigned, openSigned } from '../../../api/people/signed.ts'
import { makeKeys } from '../../support/service.ts'

afterEach(() => vi.useRealTimers())

const keys = makeKeys()
const sign = (subject: string) =>
  makeSigned(keys, {
    ...{ purpose: 'session', subject, claims: { sid: 'a' } },
    expiresAt: new Date(Date.now() + 60_000),
  })

test('what was found right is known for its purpose, its keys and its very text only', async () => {
  const text = await sign('one')
  const claims = await openSigned(keys, text, 'session')
  expect(claims).toMatchObject({ sub: 'one', sid: 'a' })
  expect(await openSigned(keys, text, 'session')).toBe(claims)
  expect(await openSigned(keys, text, 'device')).toBeNull()
  expect(await openSigned(makeKeys(), text, 'session')).toBeNull()
  const [head, body, signature] = text.split('.') as [string, string, string]
  const other = (await sign('another')).split('.')
  for (const forged of [
    `${head}.${other[1]}.${signature}`,
    `${head}.${body}.${other[2]}`,
    `${head}.${body}.`,
  ])
    expect(await openSigned(keys, forged, 'session')).toBeNull()
})

test('it ends when it expires', async () => {
  const text = await sign('one')
  expect(await openSigned(keys, text, 'session')).not.toBeNull()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61_000 })
  expect(await openSigned(keys, text, 'session')).toBeNull()
})
