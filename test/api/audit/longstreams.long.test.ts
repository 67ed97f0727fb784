import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { fillChain } from '../../support/audit/fill.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'
import { watchThread } from '../../support/thread.ts'

/** What is streamed of a long chain: in bounded memory, and others get their turn meanwhile. */

const service = await keep(startService({ rateLimits: false }))
const teamId = await makeChains(service).team(1)
const url = await service.listen()
const ENTRIES = 30_000
await fillChain(service.store, teamId, ENTRIES)
// As PostgreSQL does by itself a minute later: without it, it guesses how to find a page.
await sql`vacuum analyze audit_entries`.execute(service.store.db)

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** All entries are 60 MB and more. */
const MOST_MB = 25
/** How long this thread may work without a pause; processors that others share count up to three times as much. */
const MOST_MS = 150

/** The megabytes that are in use, without what only waits to be collected. */
function readUse(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1e6
}

/** Reads a whole answer, and resolves to how long it is. */
async function drain(path: string, each = () => {}) {
  const response = await fetch(`${url}/api/audit/team/${teamId}/${path}`, {
    headers: { cookie: service.admin },
  })
  expect(response.status).toBe(200)
  let bytes = 0
  for await (const part of response.body!) {
    bytes += part.length
    each()
  }
  return bytes
}

test.each([
  'siem?format=json&after=0&limit=100000',
  'siem?format=syslog&after=0&limit=100000',
  'siem?format=cef&after=0&limit=100000',
  'export',
])('%s', { tags: 'long', timeout: 300_000 }, async (path) => {
  const thread = watchThread()
  const bytes = await drain(path)
  expect(thread.stop()).toBeLessThan(MOST_MS)
  expect(bytes).toBeGreaterThan(ENTRIES * 500)
  const before = readUse()
  let most = 0
  let at = 0
  await drain(path, () => {
    if (++at % 40 === 0) most = Math.max(most, readUse())
  })
  expect(at).toBeGreaterThan(80)
  expect(most - before).toBeLessThan(MOST_MB)
})
