import { expect, test } from 'vitest'
import { createChainVerifier } from '../../../../db/audit/verify/verifier.ts'
import { fillChain } from '../../../support/audit/fill.ts'
import { makeChains } from '../../../support/chains.ts'
import { keep } from '../../../support/keep.ts'
import { startService } from '../../../support/service.ts'
import { watchThread } from '../../../support/thread.ts'

/** What is done with chains that are long: the memory does not grow with them, and the thread that serves stays free. */

const service = await keep(startService({ rateLimits: false }))
const { team, oldTeam, act, tamper, verdicts } = makeChains(service)
const { store } = service

const SHORT = 10_000
const LONG = 100_000
const [short, long] = [await team(1), await team(1)]
await fillChain(store, short, SHORT)
await fillChain(store, long, LONG)

/** How many megabytes a long chain may take more than one of a tenth of its length: all of its entries are 200. */
const MOST_MB = 100
/** How long this thread may work without a pause; processors that others share count up to four times as much. */
const MOST_MS = 200

/** Does a work with both chains: how much more memory the longer one took, and the longest stretch of this thread. */
async function compare(work: (teamId: string) => Promise<unknown>) {
  const measure = async (teamId: string) => {
    let peak = 0
    const look = () => {
      peak = Math.max(peak, process.memoryUsage.rss() / 1e6)
    }
    const timer = setInterval(look, 10)
    const thread = watchThread()
    await work(teamId)
    look()
    clearInterval(timer)
    return { peak, longestMs: thread.stop() }
  }
  const least = await measure(short)
  const most = await measure(long)
  expect(most.peak - least.peak).toBeLessThan(MOST_MB)
  expect(most.longestMs).toBeLessThan(MOST_MS)
}

test('verifying', { tags: 'long', timeout: 300_000 }, async () => {
  const verify = createChainVerifier({ url: service.database.url })
  await compare(async (teamId) => {
    const { findings, entries } = await verify(store, teamId, undefined)
    expect(findings).toEqual([])
    expect(entries).toBeGreaterThanOrEqual(teamId === long ? LONG : SHORT)
  })
})

test('saying what is wrong with a chain', { tags: 'long', timeout: 300_000 }, async () => {
  for (const teamId of [short, long])
    await tamper(`update audit_entries set outcome = 'FAILURE' where team_id = '${teamId}' and seq = 9000`)
  const verify = createChainVerifier({ url: service.database.url })
  await compare(async (teamId) => {
    const { problem } = await verify(store, teamId, undefined)
    expect(problem).toMatchObject({ kind: 'entry_modified', seq: 9_000 })
  })
})

test('removing old entries, while others append', { tags: 'long', timeout: 300_000 }, async () => {
  const teamId = await oldTeam([500])
  const began = Date.now() - 499 * 86_400_000
  await fillChain(store, teamId, SHORT, { at: (seq) => new Date(began + seq * 1_000) })
  const thread = watchThread()
  const waits: number[] = []
  const timed = async <T>(work: () => Promise<T>) => {
    const at = performance.now()
    const result = await work()
    return { result, took: performance.now() - at }
  }
  let over = false
  const appending = (async () => {
    while (!over) {
      const { result, took } = await timed(() => act(teamId))
      expect(result.status).toBe(200)
      waits.push(took)
    }
  })()
  const { result, took } = await timed(() =>
    service.call('POST', `/api/audit/team/${teamId}/purge`, service.admin),
  )
  over = true
  await appending
  expect(thread.stop()).toBeLessThan(MOST_MS)
  expect(result.body).toMatchObject({ purgedCount: SHORT })
  expect(waits.length).toBeGreaterThan(4)
  // The head is held for moments only, neither while the old entries are verified nor while they are removed.
  expect(Math.max(...waits)).toBeLessThan(took / 2)
  expect(await verdicts(teamId)).toEqual([])
})
