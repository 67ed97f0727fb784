import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import quickjs from '@jitl/quickjs-wasmfile-release-sync'
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
  type QuickJSSyncVariant,
} from 'quickjs-emscripten-core'
import { MAX_MEMORY_MB } from '../../workflows/javascript/limits.ts'
import { getOwn } from '../../workflows/json.ts'
import { HOST } from './host.ts'
import { INSIDE, type Inside } from './inside.ts'
import { type ConsoleLine, MAX_CONSOLE, type PreludePart } from './job.ts'
import { loadPrelude } from './prelude/prelude.ts'

/** One sandbox: a WebAssembly instance of QuickJS with one context, for a single job. It is never used again. */
export type Sandbox = {
  runtime: QuickJSRuntime
  /** Calls a function of the sandbox's side. Throws an Escaped if it does not return. */
  ask(name: keyof Inside, ...args: Argument[]): Answer
  /** Evaluates a text, which is named `file` in stack traces. Throws an Escaped. */
  evaluate(text: string, file: string): QuickJSHandle
  /** Evaluates parts of the library. */
  load(parts: PreludePart[]): Promise<void>
  readConsole(): ConsoleLine[]
  /** How far its memory has grown, in MB. It never shrinks. */
  grownMb(): number
}

type Argument = QuickJSHandle | string | number | boolean | undefined
type Answer = string | number | boolean | null | undefined

/** What a call into the sandbox threw. Its words are the sandbox's, or the script's. */
export class Escaped extends Error {
  nameInside: string
  stackInside: string

  constructor(name: string, message: string, stack: string) {
    super(message)
    this.nameInside = name
    this.stackInside = stack
  }
}

const PAGE = 65_536
const PAGES_PER_MB = 16

/** What an instance takes besides the script's memory. */
const OVERHEAD_MB = 64
const INITIAL_PAGES = 256
const MAX_STACK = 256 * 1024

/** What a line of the console takes besides its text. */
const LINE_CHARS = 30

// The package's types are those of its CommonJS build, whose default export is one level deeper.
const variant = quickjs as unknown as QuickJSSyncVariant

/** The part of WebAssembly that is used here; Node's own types leave it out. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: {
    compile(bytes: Uint8Array): Promise<object>
    Memory: new (pages: { initial: number; maximum: number }) => { buffer: ArrayBuffer }
  }
}

let compiled: Promise<object> | undefined

/** Makes a sandbox with the part `base` in it. The memory of a sandbox that is no longer referenced is freed. */
export async function makeSandbox(): Promise<Sandbox> {
  compiled ??= WebAssembly.compile(
    readFileSync(fileURLToPath(import.meta.resolve('@jitl/quickjs-wasmfile-release-sync/wasm'))),
  )
  const maximum = (MAX_MEMORY_MB + OVERHEAD_MB) * PAGES_PER_MB
  const wasmMemory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum })
  const module = await newQuickJSWASMModuleFromVariant(
    newVariant(variant, { wasmModule: await compiled, wasmMemory }),
  )
  const runtime = module.newRuntime()
  runtime.setMaxStackSize(MAX_STACK)
  const grownMb = () => (wasmMemory.buffer.byteLength / PAGE - INITIAL_PAGES) / PAGES_PER_MB
  const sandbox = { ...wire(runtime, runtime.newContext()), grownMb }
  await sandbox.load(['base'])
  return sandbox
}

function wire(runtime: QuickJSRuntime, context: QuickJSContext): Omit<Sandbox, 'grownMb'> {
  const console = createConsole()
  const unwrap = (result: ReturnType<QuickJSContext['evalCode']>): QuickJSHandle => {
    if (!result.error) return result.value
    const error = result.error
    const read = (name: string) => {
      using handle = context.getProp(error, name)
      return context.typeof(handle) === 'string' ? context.getString(handle) : ''
    }
    throw context.typeof(error) === 'object'
      ? new Escaped(read('name'), read('message'), read('stack'))
      : new Escaped('', '', '')
  }
  const evaluate = (text: string, file: string) => unwrap(context.evalCode(text, file, { type: 'global' }))
  const host = context.newFunction('host', (call, argument) =>
    context.newString(answerCall(context.getString(call), context.getString(argument), console.add)),
  )
  const inside = unwrap(context.callFunction(evaluate(INSIDE, 'sandbox'), context.undefined, host))
  const kit = context.getProp(inside, 'kit')
  const toHandle = (value: Argument): QuickJSHandle => {
    if (value === undefined) return context.undefined
    if (typeof value === 'string') return context.newString(value)
    if (typeof value === 'number') return context.newNumber(value)
    if (typeof value === 'boolean') return value ? context.true : context.false
    return value
  }
  const readAnswer = (handle: QuickJSHandle): Answer => {
    const type = context.typeof(handle)
    if (type === 'string') return context.getString(handle)
    if (type === 'number') return context.getNumber(handle)
    if (type === 'boolean') return context.dump(handle)
    return type === 'undefined' ? undefined : null
  }
  return {
    runtime,
    ask(name, ...args) {
      using known = context.getProp(inside, name)
      using value = unwrap(context.callFunction(known, context.undefined, ...args.map(toHandle)))
      return readAnswer(value)
    },
    evaluate,
    async load(parts) {
      for (const { name, text } of await loadPrelude(parts)) {
        unwrap(context.callFunction(evaluate(text, name), context.undefined, kit))
      }
    },
    readConsole: console.read,
  }
}

/** Carries out a call of the sandbox. Whatever goes wrong is an answer, which the sandbox throws. */
function answerCall(call: string, text: string, log: (line: ConsoleLine) => boolean): string {
  try {
    const argument = JSON.parse(text)
    if (call === 'console') return JSON.stringify({ value: log(argument) })
    const known = getOwn(HOST as Record<string, (argument: unknown) => unknown>, call)
    if (!known) throw new Error(`the sandbox has no call "${call}"`)
    return JSON.stringify({ value: known(argument) })
  } catch (error) {
    return JSON.stringify({ error: String((error as Error).message).slice(0, 500) })
  }
}

/** Keeps the first lines; `add` says whether that is all it keeps. */
function createConsole(): { add(line: ConsoleLine): boolean; read(): ConsoleLine[] } {
  const lines: ConsoleLine[] = []
  let left = MAX_CONSOLE
  return {
    add(line) {
      const level = String(line.level).slice(0, 10)
      const text = String(line.text).slice(0, left)
      left -= text.length + LINE_CHARS
      lines.push({ level, text })
      if (left > 0) return false
      lines.push({ level: 'warn', text: 'what was written after this is left out' })
      return true
    },
    read: () => lines,
  }
}
