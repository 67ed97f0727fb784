import { afterEach, expect, test } from 'vitest'
import { createDetectorPool, type DetectorPool } from '../../../activities/guardrails/pool.ts'
import { THREADS_BUSY } from '../../../activities/threads.ts'
import type { PiiType } from '../../../workflows/guardrails/names.ts'

const pools: DetectorPool[] = []
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()))
})

/** A pool whose threads do what the text says. */
function createPool(options: Parameters<typeof createDetectorPool>[0] = {}): DetectorPool {
  const program = `
    import { parentPort } from 'node:worker_threads'
    parentPort.on('message', ({ text, detection }) => {
      for (const type of Object.keys(detection)) {
        if (text === 'hang' && type === 'CONTENT_FILTER') for (;;);
        if (text === 'die') process.exit(1)
        if (text === 'throw') throw new Error('no')
        parentPort.postMessage({ type, ms: 1, findings: [] })
      }
      setTimeout(() => parentPort.postMessage('done'), text === 'slow' ? 300 : 0)
    })
    parentPort.postMessage('ready')`
  const pool = createDetectorPool({
    threads: 2,
    program: new URL(`data:text/javascript,${encodeURIComponent(program)}`),
    ...options,
  })
  pools.push(pool)
  return pool
}

const detection = { PII_REDACTION: { kinds: ['email'] as PiiType[] }, CONTENT_FILTER: { categories: [] } }
const asker = (team: string) => ({ team, workflow: team })

test('the threads of the service find what is in a text', async () => {
  const pool = createDetectorPool({ threads: 1 })
  pools.push(pool)
  const kinds: PiiType[] = ['email']
  const [found] = await pool.run(asker('a'), {
    text: 'ada@example.com',
    detection: { PII_REDACTION: { kinds } },
  })
  expect(found).toMatchObject({ type: 'PII_REDACTION', findings: [{ start: 0, end: 15, kind: 'email' }] })
})

test('a detector that takes too long is ended and told, and those before it keep what they found', async () => {
  const pool = createPool({ deadlineMs: 300 })
  const results = await pool.run(asker('a'), { text: 'hang', detection })
  expect(results).toMatchObject([
    { type: 'PII_REDACTION', findings: [] },
    { type: 'CONTENT_FILTER', error: 'It took too long' },
  ])
  expect(await pool.run(asker('a'), { text: 'fine', detection })).toMatchObject([
    { findings: [] },
    { findings: [] },
  ])
})

test.each(['die', 'throw'])('a thread that ends under a text is replaced: %s', async (text) => {
  const pool = createPool()
  const results = await pool.run(asker('a'), { text, detection })
  expect(results.map(({ error }) => typeof error)).toEqual(['string', 'string'])
  expect(await pool.run(asker('a'), { text: 'fine', detection })).toMatchObject([
    { findings: [] },
    { findings: [] },
  ])
})

test('a team that floods the threads leaves one to others', async () => {
  const pool = createPool()
  await pool.run(asker('warm'), { text: 'fine', detection })
  const done: string[] = []
  const ask = (team: string, text: string) =>
    pool.run(asker(team), { text, detection }).then(() => done.push(team))
  const flood = Array.from({ length: 6 }, () => ask('flood', 'slow'))
  await ask('other', 'fine')
  expect(done.filter((team) => team === 'flood').length).toBeLessThan(3)
  await Promise.all(flood)
})

test('who waits too long for a thread is told so', async () => {
  const pool = createPool({ patienceMs: 1_000 })
  await pool.run(asker('a'), { text: 'fine', detection })
  const first = pool.run(asker('a'), { text: 'hang', detection })
  await expect(pool.run(asker('a'), { text: 'fine', detection })).rejects.toMatchObject({
    name: THREADS_BUSY,
  })
  // What the end of the pool cuts off says nothing about the text.
  const cutOff = expect(first).rejects.toMatchObject({ name: THREADS_BUSY })
  await pool.close()
  await cutOff
})

test('a team may not fill the memory with texts that wait', async () => {
  const pool = createPool({ threads: 1, maxHeld: 800 })
  const waiting = Array.from({ length: 250 }, () =>
    pool.hold('a', 4, () => pool.run(asker('a'), { text: 'fine', detection })),
  )
  const settled = await Promise.allSettled(waiting)
  expect(settled.filter(({ status }) => status === 'rejected')).toHaveLength(50)
  expect(await pool.run(asker('a'), { text: 'fine', detection })).toHaveLength(2)
})

test('threads that do not start are told, and a closed pool takes nothing', async () => {
  const pool = createPool({ program: new URL('data:text/javascript,throw new Error()') })
  await expect(pool.run(asker('a'), { text: 'x', detection })).rejects.toMatchObject({ name: THREADS_BUSY })
  await pool.close()
  await expect(pool.run(asker('a'), { text: 'x', detection })).rejects.toMatchObject({ name: THREADS_BUSY })
})

test('empty texts that are checked at once leave the bound of a team as it is', async () => {
  const pool = createPool({ maxHeld: 10 })
  const doors: (() => void)[] = []
  const hold = (length: number) => pool.hold('a', length, () => new Promise<void>((open) => doors.push(open)))
  const held = [hold(0), hold(0), hold(5)]
  for (const open of doors.reverse()) open()
  await Promise.all(held)
  await expect(pool.hold('a', 11, async () => {})).rejects.toThrow('Too many texts of the team wait already')
  await pool.hold('a', 10, async () => {})
})
