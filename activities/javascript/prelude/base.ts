import type { Kit, PreludeFunction } from '../kit.ts'

/** What every script sees: the bindings of expressions, the console, timers, and `require` for what is there. */
export const BASE: PreludeFunction[] = [
  defineBindings,
  defineConsole,
  defineTimers,
  defineClone,
  defineRequire,
]

function defineBindings(kit: Kit): void {
  for (const name of ['input', 'nodes', 'trigger', 'vars', 'execution']) {
    kit.read(`$${name}`, () => kit.roots[name])
  }
  kit.read('$item', () => kit.item)
  kit.read('$index', () => kit.index)
  for (const name of ['args', 'response', 'pageCount', 'request'])
    kit.read(`$${name}`, () => {
      if (kit.roots[name] === undefined) throw new ReferenceError(`'$${name}' is not defined`)
      return kit.roots[name]
    })
}

function defineConsole(kit: Kit): void {
  const show = (value: unknown): string => {
    if (typeof value === 'string') return value
    try {
      if (value instanceof Error) return `${value.name}: ${value.message}`
      if (typeof value === 'object' && value !== null) return JSON.stringify(value) ?? String(value)
      return String(value)
    } catch {
      return 'a value that cannot be shown'
    }
  }
  let isFull = false
  const log = (level: string, values: unknown[]) => {
    if (isFull) return
    isFull = kit.host('console', { level, text: values.map(show).join(' ').slice(0, 4_000) }) === true
  }
  const levels = ['debug', 'error', 'info', 'log', 'trace', 'warn']
  const entries = levels.map((level) => [level, (...values: unknown[]) => log(level, values)])
  kit.define('console', Object.fromEntries(entries))
}

function defineTimers(kit: Kit): void {
  const begin = (call: unknown, ms: unknown, values: unknown[], again: boolean): number => {
    if (typeof call !== 'function') throw new TypeError('a timer needs a function to call')
    let id = 0
    const fire = () => {
      if (again) repeats.set(id, kit.addTimer(fire, Number(ms) || 0))
      call(...values)
    }
    id = kit.addTimer(fire, Number(ms) || 0)
    if (again) repeats.set(id, id)
    return id
  }
  /** The timer that a repeated one has now. */
  const repeats = new Map<number, number>()
  const cancel = (id: number) => {
    kit.cancelTimer(repeats.get(id) ?? id)
    repeats.delete(id)
  }
  kit.define('setTimeout', (call: unknown, ms: unknown, ...values: unknown[]) =>
    begin(call, ms, values, false),
  )
  kit.define('setInterval', (call: unknown, ms: unknown, ...values: unknown[]) =>
    begin(call, ms, values, true),
  )
  kit.define('clearTimeout', cancel)
  kit.define('clearInterval', cancel)
  kit.define('queueMicrotask', (call: () => void) => void Promise.resolve().then(call))
}

function defineClone(kit: Kit): void {
  kit.define('structuredClone', (value: unknown) => {
    const copies = new Map<unknown, unknown>()
    const copy = (from: unknown): unknown => {
      if (typeof from === 'function' || typeof from === 'symbol') {
        throw new TypeError(`a ${typeof from} cannot be cloned`)
      }
      if (typeof from !== 'object' || from === null) return from
      if (copies.has(from)) return copies.get(from)
      const keep = <T>(made: T): T => {
        copies.set(from, made)
        return made
      }
      if (from instanceof Date) return keep(new Date(from.getTime()))
      if (from instanceof RegExp) return keep(new RegExp(from.source, from.flags))
      if (from instanceof Map) {
        const map = keep(new Map())
        for (const [key, entry] of from) map.set(copy(key), copy(entry))
        return map
      }
      if (from instanceof Set) {
        const set = keep(new Set())
        for (const entry of from) set.add(copy(entry))
        return set
      }
      if (Array.isArray(from)) {
        const list: unknown[] = keep([])
        for (const [at, entry] of from.entries()) list[at] = copy(entry)
        return list
      }
      if (ArrayBuffer.isView(from)) return keep((from as Uint8Array).slice())
      const made = keep({})
      for (const key of Object.keys(from)) {
        const entry = copy((from as Record<string, unknown>)[key])
        Object.defineProperty(made, key, {
          value: entry,
          writable: true,
          enumerable: true,
          configurable: true,
        })
      }
      return made
    }
    return copy(value)
  })
}

function defineRequire(kit: Kit): void {
  kit.define('require', (name: unknown) => {
    const known = globalThis as Record<string, unknown>
    const modules: Record<string, () => unknown> = {
      crypto: () => known.crypto,
      url: () => ({ URL: known.URL, URLSearchParams: known.URLSearchParams }),
      util: () => ({ TextEncoder: known.TextEncoder, TextDecoder: known.TextDecoder }),
      ...(known.DateTime
        ? {
            luxon: () => ({
              DateTime: known.DateTime,
              Duration: known.Duration,
              Interval: known.Interval,
            }),
          }
        : {}),
    }
    const key = String(name).replace(/^node:/, '')
    if (Object.hasOwn(modules, key)) return modules[key]!()
    throw new Error(`there is no module "${name}" here; there are ${Object.keys(modules).join(', ')}`)
  })
}
