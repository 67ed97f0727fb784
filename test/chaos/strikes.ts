import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Installation, Name } from '../support/engine/installation.ts'
import type { Beside } from './beside.ts'

/** A bit more than the time after which Temporal takes a worker that says nothing for lost. */
const LOST_MS = 62_000

/** Something was away from `from` to `to` (epoch milliseconds; undefined while it still is). */
type Outage = { from: number; to: number | undefined }

export type Strikes = ReturnType<typeof createStrikes>

/**
 * Strikes at an installation and the processes beside it. `next` gives numbers from 0 to 1, `describe` is written
 * with each strike.
 */
export function createStrikes(
  host: Installation,
  { next, describe, beside = [] }: { next: () => number; describe: () => string; beside?: Beside[] },
) {
  const counts: Record<string, number> = {}
  const outages: Outage[] = []
  let frozen: Beside | undefined
  let thawing: Promise<void> | undefined

  function note(what: string, more = ''): void {
    counts[what] = (counts[what] ?? 0) + 1
    console.log(`${new Date().toISOString()}  ${what} ${more}  (${describe()})`)
  }

  async function killOne(target: Name | Beside): Promise<void> {
    if (typeof target === 'string') return host.recovered(target, host.kill(target), 180_000)
    target.signal('SIGKILL')
    await sleep(200)
    await target.ready()
  }

  const signal = (target: Name | Beside, what: NodeJS.Signals) =>
    typeof target === 'string' ? host.kill(target, what) : target.signal(what)

  async function strikeOnce(): Promise<void> {
    const targets: (Name | Beside)[] = [
      'service',
      'temporal',
      'postgres',
      ...beside.filter((one) => one !== frozen),
    ]
    const target = targets[Math.floor(next() * targets.length)]!
    const name = typeof target === 'string' ? target : target.name
    const how = next()
    if (typeof target !== 'string' && target.works && !frozen && next() < 0.5) freezeForLong(target)
    else if (how < 0.45) {
      note(`kill ${name}`)
      await killOne(target)
    } else if (how < 0.85) {
      const ms = Math.round(1_000 + 14_000 * next() ** 2)
      note(`freeze ${name}`, `${ms} ms`)
      signal(target, 'SIGSTOP')
      await sleep(ms)
      signal(target, 'SIGCONT')
    } else if (how < 0.95) {
      const ms = Math.round(1_000 + 9_000 * next())
      note('read-only', `${ms} ms`)
      await makeReadOnly(true)
      await sleep(ms)
      await makeReadOnly(false)
    } else {
      note('kill all')
      for (const one of beside) one.signal('SIGKILL')
      await host.killAll()
      await host.boot()
      await Promise.all(beside.map((one) => one.ready()))
    }
  }

  /** Meanwhile Temporal gives what the process was at to others, and then it goes on. */
  function freezeForLong(target: Beside): void {
    const ms = LOST_MS + Math.round(15_000 * next())
    note(`freeze ${target.name} for long`, `${ms} ms`)
    const outage: Outage = { from: Date.now(), to: undefined }
    outages.push(outage)
    target.signal('SIGSTOP')
    frozen = target
    thawing = sleep(ms).then(() => {
      target.signal('SIGCONT')
      outage.to = Date.now()
      frozen = undefined
    })
  }

  /** As after a failover to a standby: sessions go on, and their writes are refused. */
  async function makeReadOnly(on: boolean): Promise<void> {
    const client = new pg.Client({ connectionString: host.holder().addresses.databaseUrl })
    await client.connect()
    await client.query(`alter system set default_transaction_read_only = ${on ? 'on' : 'off'}`)
    await client.query('select pg_reload_conf()')
    await client.end()
  }

  return {
    counts,
    /** Resolves once what was struck is back. */
    async strike(): Promise<void> {
      const outage: Outage = { from: Date.now(), to: undefined }
      outages.push(outage)
      await strikeOnce()
      outage.to = Date.now()
    },
    /** Resolves once nothing is struck any more. */
    over: async () => thawing,
    /** Whether anything was away at some time between these two, in epoch milliseconds. */
    wasAway: (from: number, to: number) =>
      outages.some((one) => one.from <= to && (one.to ?? Number.POSITIVE_INFINITY) >= from),
  }
}
