import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stand } from '../stand.ts'
import type { Held } from './probe.ts'
import { type Attack, listAttacks, type Places } from './requests.ts'

/** What no single request of a stranger may take of the thread that serves everybody, in milliseconds. */
const AIM: Held = { longest: 20, all: 100, byClock: Number.POSITIVE_INFINITY }

/** The processor time is taken as the least of some tries: a collection of garbage may fall into one of them. */
const TRIES = 3
const QUIET_MS = 250

/**
 * Sends the worst single request of each kind, and measures for how long the service's thread, with API and worker, is
 * held: at a stretch and in all, from the request until it is quiet again. Exits with 1 if one takes more than it may.
 */
export async function measureStrangers(stand: Stand, args: string[]): Promise<void> {
  const [only = ''] = args
  const attacks = listAttacks(await preparePlaces(stand)).filter(({ what }) => what.includes(only))
  const idle = await measure(() => Promise.resolve(0), 5)
  console.log(`idle: ${idle.all.toFixed(1)} ms of processor time in ${QUIET_MS} ms`)
  for (let n = 0; n < 20; n++) await send(stand, attacks[0]!)
  const rows: Record<string, unknown>[] = []
  for (const attack of attacks) {
    let status = 0
    const held = await measure(async () => {
      status = await send(stand, attack)
    }, TRIES)
    const all = Math.max(0, held.all - idle.all)
    const isOver = held.longest > AIM.longest || all > AIM.all
    rows.push({
      request: attack.what,
      status,
      'at a stretch': Number(held.longest.toFixed(1)),
      'in all': Number(all.toFixed(1)),
      'by the clock': Number(held.byClock.toFixed(1)),
      over: isOver ? 'OVER' : '',
    })
    console.error(`[bench] ${attack.what}: ${held.longest.toFixed(1)} ms, ${all.toFixed(1)} ms in all`)
  }
  console.table(rows)
  const over = rows.filter((row) => row.over)
  console.log(
    `${rows.length - over.length} of ${rows.length} requests hold the thread for at most ${AIM.longest} ms, ${AIM.all} ms in all`,
  )
  if (over.length > 0) process.exitCode = 1
}

async function preparePlaces(stand: Stand): Promise<Places> {
  const hook = async (config: object, more: object[] = []) => {
    const node = { id: 'hook', type: 'WEBHOOK_TRIGGER', config: { path: 'in', ...config } }
    const edges = more.map((_, n) => ({ source: n === 0 ? 'hook' : `n${n - 1}`, target: `n${n}` }))
    const nodes = [node, ...more.map((one, n) => ({ id: `n${n}`, ...one }))]
    const body = { teamId: stand.teamId, name: `strangers ${Math.random()}`, nodes, edges }
    const { id } = await stand.ask<{ id: string }>('POST', '/api/workflows', body)
    await stand.ask('PUT', `/api/workflows/${id}`, { active: true })
    return `/hooks/${id}/in`
  }
  const waits = await hook({}, [{ type: 'WAIT_FOR_EVENT', config: { name: 'go' } }])
  const response = await fetch(`${stand.url}${waits}`, { method: 'POST' })
  const { executionId } = (await response.json()) as { executionId: string }
  let resume = ''
  while (!resume) {
    const page = await stand.ask<{ content: { resumeUrl: string }[] }>(
      'GET',
      `/api/executions/${executionId}/waits`,
    )
    resume = page.content[0] ? new URL(page.content[0].resumeUrl).pathname : ''
    if (!resume) await sleep(50)
  }
  return {
    hook: await hook({}, [{ type: 'NO_OP', config: {} }]),
    signed: await hook({ signature: { header: 'X-Signature', secret: 'key' } }),
    files: await hook({ files: {} }),
    secret: await hook({ secretHeader: { name: 'X-Key', value: 'a secret' } }),
    resume,
  }
}

/** The least of some tries, each until the thread has been quiet for a while. */
async function measure(work: () => Promise<unknown>, tries: number): Promise<Held> {
  const results: Held[] = []
  for (let n = 0; n < tries; n++) {
    await readProbe()
    await work()
    await sleep(QUIET_MS)
    results.push(await readProbe())
  }
  return {
    longest: Math.min(...results.map(({ longest }) => longest)),
    all: Math.min(...results.map(({ all }) => all)),
    byClock: Math.min(...results.map(({ byClock }) => byClock)),
  }
}

async function readProbe(): Promise<Held> {
  const response = await fetch(`http://127.0.0.1:${process.env.BENCH_PROBE_PORT}/`)
  return (await response.json()) as Held
}

/** Sends a request as it is, and returns the status of its response; 0 if the connection was closed. */
async function send(stand: Stand, { method = 'GET', path, headers = [], body }: Attack): Promise<number> {
  const { hostname, port } = new URL(stand.url)
  const sent: ClientRequest = request({
    hostname,
    port,
    method,
    path,
    agent: false,
    setDefaultHeaders: false,
  })
  sent.setHeader('Host', `${hostname}:${port}`)
  for (const [name, value] of headers) sent.appendHeader(name, value)
  if (body) sent.setHeader('Content-Length', body.length)
  sent.setHeader('Connection', 'close')
  sent.on('error', () => {})
  sent.end(body)
  const [response] = (await Promise.race([once(sent, 'response'), once(sent, 'close')])) as [IncomingMessage?]
  if (!response) return 0
  response.on('error', () => {})
  response.resume()
  await once(response, 'close')
  return response.statusCode ?? 0
}
