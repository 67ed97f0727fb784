import { createServer } from 'node:http'
import { isMainThread } from 'node:worker_threads'

/**
 * Loaded into the service's process with `--import`: tells for how long its thread works at a stretch, by its own
 * processor time, so that what else the machine does does not count, and by the clock.
 */
export type Held = { longest: number; all: number; byClock: number }

const TICK_MS = 1

function watch(port: number): void {
  let held: Held = { longest: 0, all: 0, byClock: 0 }
  let before = process.threadCpuUsage()
  let since = performance.now()
  setInterval(() => {
    const { user, system } = process.threadCpuUsage()
    const worked = (user + system - before.user - before.system) / 1_000
    const now = performance.now()
    held.longest = Math.max(held.longest, worked)
    held.all += worked
    held.byClock = Math.max(held.byClock, now - since - TICK_MS)
    before = { user, system }
    since = now
  }, TICK_MS).unref()
  const server = createServer((_request, response) => {
    response.end(JSON.stringify(held))
    held = { longest: 0, all: 0, byClock: 0 }
  })
  server.listen(port, '127.0.0.1').unref()
}

const port = Number(process.env.BENCH_PROBE_PORT)
if (isMainThread && port > 0 && process.argv[1]?.endsWith('/worker/serve.ts')) watch(port)
