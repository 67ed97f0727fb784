import type { HostCall } from './host.ts'
import type { Kit } from './kit.ts'

/** What goes wrong with a script, as the sandbox tells its host. */
export type InsideFault = {
  at: number
  item?: number
  /** NULL: null was thrown, as it also is when the memory runs out. */
  cause: 'ERROR' | 'SIZE' | 'MEMORY' | 'NULL'
  message: string
  stack?: string
}

/** What the host calls in the sandbox. */
export type Inside = {
  kit: Kit
  load(roots: string, items: string | undefined): void
  /** `spoils`: it may change what it reads, which the others must not see. */
  add(evaluate: () => unknown, each: boolean, spoils: boolean): void
  /** Evaluates all sources. What it has done is known once the pending jobs are done. */
  start(maxChars: number): void
  isDone(): boolean
  /** The time until the next timer, in milliseconds; -1 without a timer. */
  nextTimer(): number
  runTimer(): void
  /** The index of the source that is being evaluated. */
  place(): number
  fault(): string | undefined
  value(at: number): string | null
}

/**
 * The sandbox's side of a job. Its text is evaluated there, before anything that users write, so it names nothing
 * of this module, and takes what it needs of the language before scripts can change it.
 */
export function makeInside(callHost: (call: string, argument: string) => string): Inside {
  const { parse, stringify } = JSON
  const { defineProperty } = Object
  const now = Date.now
  const { max } = Math
  const NativePromise = Promise
  const NativeMap = Map
  const NativeSet = Set
  const isFiniteNumber = Number.isFinite
  const sources: { evaluate: () => unknown; each: boolean; spoils: boolean }[] = []
  const values: (string | null)[] = []
  let rootsText = '{}'
  let roots: Record<string, unknown> | undefined
  let items: unknown[] | undefined
  let item: unknown
  let index: number | undefined
  let at = 0
  let chars = 0
  let most = 0
  let fault: InsideFault | undefined
  let done = false
  let timers: { id: number; due: number; call: () => void }[] = []
  let timerId = 0
  const TOO_BIG = {}
  let hasWarned = false

  function readRoots(): Record<string, unknown> {
    roots ??= parse(rootsText) as Record<string, unknown>
    return roots
  }

  const kit: Kit = {
    host(call: HostCall, argument: unknown) {
      const answer = parse(callHost(call, stringify(argument) ?? 'null'))
      if (answer.error !== undefined) throw new Error(answer.error)
      return answer.value
    },
    get roots() {
      return readRoots()
    },
    get items() {
      return items
    },
    get item() {
      return index === undefined ? readRoots().item : item
    },
    get index() {
      return index === undefined ? (readRoots().index as number | undefined) : index
    },
    define(name, value) {
      defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false })
    },
    read(name, get) {
      const set = (value: unknown) => kit.define(name, value)
      defineProperty(globalThis, name, { get, set, configurable: true, enumerable: false })
    },
    addTimer(call, ms) {
      const due = now() + max(0, ms)
      timerId += 1
      timers.push({ id: timerId, due, call })
      return timerId
    },
    cancelTimer(id) {
      timers = timers.filter((timer) => timer.id !== id)
    },
  }

  /** The value as JSON; null for nothing. */
  function write(value: unknown): string | null {
    if (value === undefined) return null
    if (typeof value === 'function' || typeof value === 'symbol') {
      throw new TypeError(`gives a ${typeof value}, which is no value for an output`)
    }
    let text: string | undefined
    try {
      text = stringify(value)
    } catch (error) {
      const { name, message } = error as Error
      if (name === 'InternalError') throw error
      throw new TypeError(`gives a value that cannot be written as JSON: ${message}`)
    }
    if (text === undefined) return null
    if (!hasWarned && (text.includes('null') || text.includes('{}'))) warnOfLoss(value)
    chars += text.length
    if (chars > most) throw TOO_BIG
    return text
  }

  /** Writes to the console what JSON has no form for, so that it is not lost without a word. */
  function warnOfLoss(value: unknown): void {
    stringify(value, (key, part) => {
      const isLost = typeof part === 'number' && !isFiniteNumber(part)
      const isEmptied = part instanceof NativeMap || part instanceof NativeSet
      if (hasWarned || !(isLost || isEmptied)) return part
      hasWarned = true
      const where = key === '' || isFiniteNumber(Number(key)) ? 'the value' : `"${key}"`
      const text = isLost
        ? `${where} is ${part}, which JSON does not have: it becomes null`
        : `${where} is a ${part instanceof NativeMap ? 'Map' : 'Set'}, which JSON does not have: it becomes {}`
      callHost('console', stringify({ level: 'warn', text }))
      return part
    })
  }

  /** Makes the source see the item. One that may change what it reads gets a copy of its own. */
  function bind(at: number, spoils: boolean): void {
    index = at
    const found = items![at]
    item = spoils && typeof found === 'object' ? parse(stringify(found)) : found
  }

  function unbind(spoils: boolean): void {
    if (spoils) roots = undefined
    index = undefined
    item = undefined
  }

  function describe(error: unknown): InsideFault {
    const place = index === undefined ? { at } : { at, item: index }
    try {
      if (error === TOO_BIG) return { ...place, cause: 'SIZE', message: '' }
      if (error === null) return { ...place, cause: 'NULL', message: 'null was thrown' }
      if (typeof error !== 'object') {
        return { ...place, cause: 'ERROR', message: String(error) }
      }
      const { name, message, stack } = error as Error
      if (name === 'InternalError' && message === 'out of memory') {
        return { ...place, cause: 'MEMORY', message: '' }
      }
      const isError = typeof message === 'string' && message !== ''
      const said = isError ? message : error instanceof Error ? String(name) : (stringify(error) ?? '')
      const prefix = isError && typeof name === 'string' && name !== 'Error' && name !== '' ? `${name}: ` : ''
      const where = typeof stack === 'string' ? { stack: stack.slice(0, 4_000) } : {}
      return { ...place, cause: 'ERROR', message: `${prefix}${said}`.slice(0, 2_000), ...where }
    } catch {
      return { ...place, cause: 'ERROR', message: 'something was thrown that cannot be read' }
    }
  }

  async function evaluateAll(): Promise<void> {
    try {
      for (; at < sources.length; at += 1) {
        const { evaluate, each, spoils } = sources[at]!
        if (!each) {
          let value = evaluate()
          if (value instanceof NativePromise) value = await value
          values[at] = write(value)
        } else {
          const texts: string[] = []
          const count = items?.length ?? 0
          for (let i = 0; i < count; i += 1) {
            bind(i, spoils)
            let value = evaluate()
            if (value instanceof NativePromise) value = await value
            texts[i] = write(value) ?? 'null'
            if (spoils) unbind(true)
          }
          values[at] = `[${texts.join(',')}]`
        }
        unbind(spoils)
      }
    } catch (error) {
      fault = describe(error)
    }
    done = true
  }

  return {
    kit,
    load(rootsJson, itemsJson) {
      rootsText = rootsJson
      if (itemsJson !== undefined) items = parse(itemsJson) as unknown[]
    },
    add(evaluate, each, spoils) {
      sources.push({ evaluate, each, spoils })
    },
    start(maxChars) {
      most = maxChars
      void evaluateAll()
    },
    isDone: () => done,
    nextTimer() {
      if (timers.length === 0) return -1
      timers.sort((a, b) => a.due - b.due || a.id - b.id)
      const left = timers[0]!.due - now()
      return max(0, left)
    },
    runTimer() {
      try {
        timers.shift()?.call()
      } catch (error) {
        fault ??= describe(error)
        done = true
      }
    },
    place: () => at,
    fault: () => (fault === undefined ? undefined : stringify(fault)),
    value: (at) => values[at] ?? null,
  }
}
