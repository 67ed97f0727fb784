import type { HostCall } from './host.ts'
import type { InsideFault } from './job.ts'
import type { Kit } from './kit.ts'

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

type CallHost = (call: string, argument: string) => string

/**
 * The sandbox's side of a job: its value is a function that is called with `callHost` and makes an Inside. The texts of
 * the functions below are evaluated there, before anything that users write. So they name only each other, and each
 * takes what it needs of the language when it is called, before scripts can change that.
 */
export const INSIDE = `(() => {
${[makeInside, makeKit, makeBindings, makeTimers, makeWriter, makeDescriber].join('\n')}
return makeInside
})()`

function makeInside(callHost: CallHost): Inside {
  const { stringify } = JSON
  const NativePromise = Promise
  const bindings = makeBindings()
  const timers = makeTimers()
  const writer = makeWriter(callHost)
  const describe = makeDescriber(writer.TOO_BIG)
  const sources: { evaluate: () => unknown; each: boolean; spoils: boolean }[] = []
  const values: (string | null)[] = []
  let at = 0
  let fault: InsideFault | undefined
  let done = false

  async function evaluateAll(): Promise<void> {
    try {
      for (; at < sources.length; at += 1) {
        const { evaluate, each, spoils } = sources[at]!
        if (!each) {
          let value = evaluate()
          if (value instanceof NativePromise) value = await value
          values[at] = writer.write(value)
        } else {
          const texts: string[] = []
          const count = bindings.items?.length ?? 0
          for (let i = 0; i < count; i += 1) {
            bindings.bind(i, spoils)
            let value = evaluate()
            if (value instanceof NativePromise) value = await value
            texts[i] = writer.write(value) ?? 'null'
            if (spoils) bindings.unbind(true)
          }
          values[at] = `[${texts.join(',')}]`
        }
        bindings.unbind(spoils)
      }
    } catch (error) {
      fault = describe(error, at, bindings.bound)
    }
    done = true
  }

  return {
    kit: makeKit(callHost, bindings, timers),
    load: bindings.load,
    add(evaluate, each, spoils) {
      sources.push({ evaluate, each, spoils })
    },
    start(maxChars) {
      writer.allow(maxChars)
      void evaluateAll()
    },
    isDone: () => done,
    nextTimer: timers.next,
    runTimer() {
      try {
        timers.run()
      } catch (error) {
        fault ??= describe(error, at, bindings.bound)
        done = true
      }
    },
    place: () => at,
    fault: () => (fault === undefined ? undefined : stringify(fault)),
    value: (at) => values[at] ?? null,
  }
}

function makeKit(
  callHost: CallHost,
  bindings: ReturnType<typeof makeBindings>,
  timers: ReturnType<typeof makeTimers>,
): Kit {
  const { parse, stringify } = JSON
  const { defineProperty } = Object
  const kit: Kit = {
    host(call: HostCall, argument: unknown) {
      const answer = parse(callHost(call, stringify(argument) ?? 'null'))
      if (answer.error !== undefined) throw new Error(answer.error)
      return answer.value
    },
    get roots() {
      return bindings.roots
    },
    get items() {
      return bindings.items
    },
    get item() {
      return bindings.item
    },
    get index() {
      return bindings.index
    },
    define(name, value) {
      defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false })
    },
    read(name, get) {
      const set = (value: unknown) => kit.define(name, value)
      defineProperty(globalThis, name, { get, set, configurable: true, enumerable: false })
    },
    addTimer: timers.add,
    cancelTimer: timers.cancel,
  }
  return kit
}

/** What sources read: the roots, the items, and the item that is being worked on. */
function makeBindings() {
  const { parse, stringify } = JSON
  let rootsText = '{}'
  let roots: Record<string, unknown> | undefined
  let items: unknown[] | undefined
  let item: unknown
  let bound: number | undefined

  function readRoots(): Record<string, unknown> {
    roots ??= parse(rootsText) as Record<string, unknown>
    return roots
  }

  return {
    get roots() {
      return readRoots()
    },
    get items() {
      return items
    },
    get item() {
      return bound === undefined ? readRoots().item : item
    },
    get index() {
      return bound === undefined ? (readRoots().index as number | undefined) : bound
    },
    /** The index of the item that a source is bound to. */
    get bound() {
      return bound
    },
    load(rootsJson: string, itemsJson: string | undefined): void {
      rootsText = rootsJson
      if (itemsJson !== undefined) items = parse(itemsJson) as unknown[]
    },
    /** Makes the source see the item. One that may change what it reads gets a copy of its own. */
    bind(at: number, spoils: boolean): void {
      bound = at
      const found = items![at]
      item = spoils && typeof found === 'object' ? parse(stringify(found)) : found
    },
    unbind(spoils: boolean): void {
      if (spoils) roots = undefined
      bound = undefined
      item = undefined
    },
  }
}

function makeTimers() {
  const now = Date.now
  const { max } = Math
  let timers: { id: number; due: number; call: () => void }[] = []
  let timerId = 0
  return {
    add(call: () => void, ms: number): number {
      const due = now() + max(0, ms)
      timerId += 1
      timers.push({ id: timerId, due, call })
      return timerId
    },
    cancel(id: number): void {
      timers = timers.filter((timer) => timer.id !== id)
    },
    next(): number {
      if (timers.length === 0) return -1
      timers.sort((a, b) => a.due - b.due || a.id - b.id)
      const left = timers[0]!.due - now()
      return max(0, left)
    },
    run(): void {
      timers.shift()?.call()
    },
  }
}

/** Writes values as JSON. What it writes more than is allowed throws TOO_BIG. */
function makeWriter(callHost: CallHost) {
  const { stringify } = JSON
  const NativeMap = Map
  const NativeSet = Set
  const isFiniteNumber = Number.isFinite
  const TOO_BIG = {}
  let chars = 0
  let most = 0
  let hasWarned = false

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

  return {
    TOO_BIG,
    allow(maxChars: number): void {
      most = maxChars
    },
    /** The value as JSON; null for nothing. */
    write(value: unknown): string | null {
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
    },
  }
}

/** Makes the function that tells the host of what a source has thrown, whatever that is. */
function makeDescriber(tooBig: object) {
  const { stringify } = JSON
  return (error: unknown, at: number, item: number | undefined): InsideFault => {
    const place = item === undefined ? { at } : { at, item }
    try {
      if (error === tooBig) return { ...place, cause: 'SIZE', message: '' }
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
}
