import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { startLoop, startQueue } from '../../../worker/service/queue.ts'
import { until } from '../../support/until.ts'

const NEVER_MS = 3_600_000

/** A log that keeps its messages. */
function listen() {
  const messages: string[] = []
  const log = pino({ level: 'warn' }, { write: (line) => void messages.push(JSON.parse(line).msg) })
  return { log, messages }
}

/** Stands for the bus: `tell` wakes those who listen. */
function openWire() {
  const wakes = new Set<() => void>()
  return {
    wakes,
    tell() {
      for (const wake of [...wakes]) wake()
    },
    onErrands(wake: () => void) {
      wakes.add(wake)
      return () => void wakes.delete(wake)
    },
  }
}

type Item = { id: string; teamId: string }

/** A queue of items that are due, each of which is worked on until `end` is called with it, or it is broken off. */
function openQueue({ everyMs = NEVER_MS, atOnce = 3, ...more }: Partial<Parameters<typeof startQueue>[0]>) {
  const wire = openWire()
  const due: Item[] = []
  const begun: Item[] = []
  const broken: Item[] = []
  const ends = new Map<string, () => void>()
  let most = 0
  let claims = 0
  const { log, messages } = listen()
  const queue = startQueue<Item>({
    ...{ what: 'the items that are due', everyMs, atOnce, log, wokenBy: wire.onErrands, ...more },
    // At most two at once, and one of each team, as the claims of the database do.
    async claim({ limit, full }) {
      claims++
      const allowed = due.filter(({ teamId }) => !full.includes(teamId))
      const first = allowed.filter((item, at) => allowed.findIndex((o) => o.teamId === item.teamId) === at)
      const taken = first.slice(0, Math.min(limit, 2))
      for (const item of taken) due.splice(due.indexOf(item), 1)
      return taken
    },
    async work(item, signal) {
      begun.push(item)
      await new Promise<void>((resolve, reject) => {
        ends.set(item.id, resolve)
        most = Math.max(most, ends.size)
        if (item.teamId === 'bad') reject(new Error('bad'))
        const breakOff = () => {
          broken.push(item)
          resolve()
        }
        if (signal.aborted) breakOff()
        signal.addEventListener('abort', breakOff)
      }).finally(() => ends.delete(item.id))
    },
  })
  onTestFinished(queue.stop)
  const add = (...teams: string[]) => {
    const items = teams.map((teamId) => ({ id: crypto.randomUUID(), teamId }))
    due.push(...items)
    return items
  }
  const readMost = () => most
  const readClaims = () => claims
  return { ...wire, queue, due, begun, broken, ends, messages, add, readMost, readClaims }
}

function endAll({ ends }: { ends: Map<string, () => void> }) {
  for (const end of [...ends.values()]) end()
}

test('a loop runs at once, by time, and when it is woken, one call at a time', async () => {
  const { log } = listen()
  const wire = openWire()
  let [running, most, runs] = [0, 0, 0]
  const run = async () => {
    most = Math.max(most, ++running)
    if (runs % 3 < 2) wire.tell()
    await new Promise(setImmediate)
    running--
    runs++
    return false
  }
  const timed = startLoop({ what: 'it', everyMs: 1, log, run })
  await until(async () => runs >= 3)
  await timed.stop()
  runs = 0
  const woken = startLoop({ what: 'it', everyMs: NEVER_MS, log, run, wokenBy: wire.onErrands })
  await until(async () => runs === 3)
  await woken.stop()
  wire.tell()
  await woken.wake()
  expect({ runs, most, woken: wire.wakes.size }).toEqual({ runs: 3, most: 1, woken: 0 })
})

test('a loop that rests first waits for its time or for whoever wakes it, who learns of the end', async () => {
  const { log } = listen()
  let left = 3
  const run = async () => --left > 0
  const loop = startLoop({ what: 'it', everyMs: NEVER_MS, log, run, restsFirst: true })
  onTestFinished(loop.stop)
  await new Promise(setImmediate)
  expect(left).toBe(3)
  await loop.wake()
  expect(left).toBe(0)
})

test('who wakes a loop during a run waits for another one', async () => {
  const { log } = listen()
  const order: string[] = []
  let release = () => {}
  const run = async () => {
    order.push('begin')
    await new Promise<void>((resolve) => {
      release = resolve
    })
    order.push('end')
  }
  const loop = startLoop({ what: 'it', everyMs: NEVER_MS, log, run })
  await until(async () => order.length === 1)
  const woken = loop.wake().then(() => order.push('woken'))
  release()
  await until(async () => order.length === 3)
  release()
  await woken
  expect(order).toEqual(['begin', 'end', 'begin', 'end', 'woken'])
  await loop.stop()
})

test('an error is logged and does not end a loop', async () => {
  const { log, messages } = listen()
  let runs = 0
  const run = async () => {
    if (++runs < 3) throw new Error('away')
  }
  const loop = startLoop({ what: 'the items that are due', everyMs: 1, log, run })
  await until(async () => runs > 3)
  await loop.stop()
  const said = 'the items that are due could not be worked on; they are tried again'
  expect(messages).toEqual([said, said])
})

test('a queue claims more at once while there is room, and never holds more than it may', async () => {
  const host = openQueue({ atOnce: 3 })
  host.add('a', 'b', 'c', 'd', 'e', 'f', 'g')
  host.tell()
  await until(async () => host.begun.length === 3)
  // The bus wakes it, and it takes nothing more.
  host.tell()
  await host.queue.wake()
  expect(host.begun).toHaveLength(3)
  expect(host.queue.held()).toEqual(host.begun)
  for (const count of [4, 5, 6, 7]) {
    host.ends.get(host.queue.held()[0]!.id)!()
    await until(async () => host.begun.length === count)
  }
  endAll(host)
  await until(async () => host.queue.held().length === 0)
  expect(host.readMost()).toBe(3)
})

test('a queue looks again by time, and not after each item that left it room', async () => {
  const timed = openQueue({ everyMs: 1 })
  await until(async () => timed.readClaims() > 2)
  timed.add('a')
  await until(async () => timed.begun.length === 1)
  const still = openQueue({})
  await still.queue.wake()
  still.add('a')
  await still.queue.wake()
  const claims = still.readClaims()
  endAll(still)
  await until(async () => still.queue.held().length === 0)
  expect(still.readClaims()).toBe(claims)
  const freeing = openQueue({ freesOthers: true })
  freeing.add('a')
  await freeing.queue.wake()
  const [other] = freeing.add('a')
  endAll(freeing)
  await until(async () => freeing.begun.includes(other!))
})

test('a team takes no more than its share, and gets its next as soon as one of its own has ended', async () => {
  const host = openQueue({ atOnce: 8, ofTeam: 2 })
  host.add('many', 'many', 'many', 'many', 'few', 'other')
  await host.queue.wake()
  expect(host.begun.map(({ teamId }) => teamId).sort()).toEqual(['few', 'many', 'many', 'other'])
  host.ends.get(host.begun.find(({ teamId }) => teamId === 'many')!.id)!()
  await until(async () => host.begun.length === 5)
  expect(host.begun.at(-1)).toMatchObject({ teamId: 'many' })
  expect(host.due).toHaveLength(1)
})

test('an item that fails is logged, gives its room back, and keeps no others from their turn', async () => {
  const host = openQueue({ atOnce: 1 })
  host.add('bad', 'bad', 'good')
  host.tell()
  await until(async () => host.begun.length === 3)
  expect(host.queue.held()).toMatchObject([{ teamId: 'good' }])
  expect(host.messages).toEqual(Array(2).fill('one of the items that are due could not be worked on'))
})

test('stopping breaks off what is under way, waits for it, and nothing begins afterwards', async () => {
  const host = openQueue({})
  host.add('a', 'b')
  await host.queue.wake()
  host.add('late')
  await host.queue.stop()
  expect(host.broken).toEqual(host.begun)
  expect(host.queue.held()).toEqual([])
  const claims = host.readClaims()
  host.tell()
  await host.queue.wake()
  expect(host.readClaims()).toBe(claims)
  expect(host.begun).toHaveLength(2)
})

test('what was claimed while a queue stopped is given back', async () => {
  const host = openQueue({})
  await host.queue.wake()
  const items = host.add('a', 'b')
  const woken = host.queue.wake()
  await Promise.all([host.queue.stop(), woken])
  expect([...host.broken, ...host.due]).toEqual(items)
})

test('items may end by themselves for a while when a queue stops', async () => {
  const patient = openQueue({ graceMs: NEVER_MS })
  patient.add('a')
  await patient.queue.wake()
  const stopped = patient.queue.stop()
  endAll(patient)
  await stopped
  expect(patient.broken).toEqual([])
  const hasty = openQueue({ graceMs: 1 })
  hasty.add('a')
  await hasty.queue.wake()
  await hasty.queue.stop()
  expect(hasty.broken).toEqual(hasty.begun)
})
