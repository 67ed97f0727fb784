import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { purgeAudit } from '../../../../db/audit/retention/purge.ts'
import { walkPrefix } from '../../../../db/audit/verify/prefix.ts'
import { createPrefixChecker } from '../../../../db/audit/verify/prefixes.ts'
import { readSnapshot } from '../../../../db/connection.ts'
import { serviceScope } from '../../../../db/scope.ts'
import { makeChains } from '../../../support/chains.ts'
import { keep } from '../../../support/keep.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { oldTeam, act, tamper, verdicts } = makeChains(service)
const { store } = service
const { keys } = store
const check = createPrefixChecker({ url: service.database.url, least: 0 })
const purge = (teamId: string) => {
  const actor = { kind: 'SYSTEM', id: null, name: 'test' } as const
  return purgeAudit(serviceScope(store, actor, [[teamId, 'ADMIN']]), teamId, check)
}

/** What a thread and the walk without one say of the beginning of a chain: they must agree. */
const both = (teamId: string, upTo: number, base = 0) =>
  readSnapshot(store.db).execute(async (db) => {
    const found = await check(db, keys, { teamId, base, upTo })
    expect(found).toEqual(await walkPrefix(db, keys, { teamId, upTo }))
    return found
  })

test('a thread says the same of the beginning of a chain, and a purge believes it', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const teamId = await oldTeam([500, 499, 498, 497, 10])
  expect(await both(teamId, 4)).toEqual({ entries: 4, fault: null })
  expect(await purge(teamId)).toMatchObject({ purgedCount: 4 })
  expect(await verdicts(teamId)).toEqual([])
  expect(await both(teamId, 6, 4)).toEqual({ entries: 2, fault: null })

  const altered = await oldTeam([500, 499, 498, 497, 10])
  await tamper(`update audit_entries set outcome = 'FAILURE' where team_id = '${altered}' and seq = 3`)
  expect(await both(altered, 4)).toEqual({ entries: 4, fault: 'Entry 3 does not match its hash' })
  await expect(purge(altered)).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(await both(altered, 2)).toEqual({ entries: 2, fault: null })
})

test('a third check of one team at once is refused, and the others go on', async () => {
  const teamId = await oldTeam([500, 499, 10])
  await act(teamId)
  const holder = await store.db.startTransaction().execute()
  await sql`lock table audit_unsigned in access exclusive mode`.execute(holder)
  const several = [1, 2, 3].map(() => purge(teamId).then(({ purgedCount }) => purgedCount))
  const refused = await Promise.race(several.map((one) => one.catch((error) => error)))
  expect(refused).toMatchObject({ code: 'THROTTLED' })
  await holder.rollback().execute()
  const counts = (await Promise.allSettled(several)).flatMap((one) =>
    one.status === 'fulfilled' ? [one.value] : [],
  )
  expect(counts.toSorted()).toEqual([0, 2])
}, 120_000)
