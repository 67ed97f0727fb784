import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { GuardedEnd } from '../memoryend.ts'
import { onAbort } from '../service/stopping.ts'
import type { OsUser } from './osuser.ts'
import { kill } from './processes.ts'

/** A program to supervise. Without `env` it gets only PATH and LC_ALL. */
export type Program = {
  name: string
  command: string
  args: string[]
  env?: Record<string, string | undefined>
  osUser?: OsUser
  cwd: string
  logFile: string
  stopSignal: NodeJS.Signals
  /** How long it may take to end after `stopSignal`, before SIGKILL. */
  stopMs: number
  /** The same when a user waits for the end, if it may take long otherwise. */
  stopQuickly?: { signal: NodeJS.Signals; ms: number }
  /** Called before each start. */
  before?: () => Promise<void>
  /** Called when it has ended by itself, up or not, before it is started again. Must not reject. */
  ended?: (end: GuardedEnd) => Promise<void>
  /** Rejects while the program is not up. Called repeatedly after each start. */
  check: () => Promise<void>
  /** How long it may take to be up; after that it is killed. */
  readyMs: number
}

export type SupervisedChild = {
  /** Resolves when it is up; rejects if its first three starts failed. */
  ready: Promise<void>
  /** The pid of the running process; undefined while none is running. */
  pid: () => number | undefined
  /**
   * Ends the process for good: with its `stopSignal`, after `stopMs` with SIGKILL. Once `quick` is aborted, as
   * `stopQuickly` says.
   */
  stop: (quick?: AbortSignal) => Promise<void>
}

export type ChildWatch = {
  started: (name: string, pid: number) => void
  /**
   * The process ended unexpectedly, or failed to start, and will be started again. `why` says how it ended.
   */
  lost: (name: string, why: string) => void
  back: (name: string) => void
}

const BACK_OFF_MS = [100, 500, 1_000, 2_000, 5_000]
const STEADY_MS = 30_000

/**
 * Starts a program in a process group of its own and keeps it running: whenever it ends it is started again,
 * after increasing pauses.
 */
export function superviseChild(program: Program, watch: ChildWatch): SupervisedChild {
  const stopping = new AbortController()
  let current: Launched | undefined

  async function launch(): Promise<void> {
    await program.before?.()
    if (stopping.signal.aborted) return
    current = spawnProgram(program)
    const { pid } = current.child
    if (pid) watch.started(program.name, pid)
    await waitUntilUp(program, current, stopping.signal)
  }

  async function startFirst(): Promise<void> {
    for (let attempt = 1; !stopping.signal.aborted; attempt++) {
      try {
        return await launch()
      } catch (error) {
        if (attempt < 3) continue
        const message = `${program.name} does not start: ${(error as Error).message}`
        throw new Error(`${message}\n${readEnd(program.logFile)}\n(the whole log is ${program.logFile})`)
      }
    }
  }

  async function keepUp(): Promise<void> {
    let losses = 0
    let since = Date.now()
    let up = true
    while (!stopping.signal.aborted) {
      if (up) {
        await current?.gone
        if (stopping.signal.aborted) return
        if (Date.now() - since > STEADY_MS) losses = 0
        const { signalCode = null, exitCode } = current?.child ?? {}
        await tellEnd(program, current)
        watch.lost(program.name, `ended (${signalCode ?? `code ${exitCode}`})`)
      }
      const backOff = BACK_OFF_MS[Math.min(losses++, BACK_OFF_MS.length - 1)]
      await sleep(backOff, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      since = Date.now()
      up = await launch().then(
        () => true,
        (error: Error) => {
          watch.lost(program.name, error.message)
          return false
        },
      )
      if (up && !stopping.signal.aborted) watch.back(program.name)
    }
  }

  const ready = startFirst()
  const kept = ready.then(keepUp, () => {})

  return {
    ready,
    pid: () => findPid(current),
    async stop(quick) {
      stopping.abort()
      const pid = findPid(current)
      if (pid) {
        const { stopSignal, stopMs, stopQuickly } = program
        let timer: NodeJS.Timeout | undefined
        const end = (signal: NodeJS.Signals, ms: number) => {
          clearTimeout(timer)
          kill(pid, signal)
          timer = setTimeout(() => kill(pid, 'SIGKILL'), ms)
        }
        const endSoon = () => stopQuickly && end(stopQuickly.signal, stopQuickly.ms)
        if (quick?.aborted && stopQuickly) endSoon()
        else end(stopSignal, stopMs)
        quick?.addEventListener('abort', endSoon)
        await current?.gone
        quick?.removeEventListener('abort', endSoon)
        clearTimeout(timer)
      }
      await kept
    },
  }
}

/** A process that was started. `gone` resolves when it has ended; `why` then says how. */
type Launched = { child: ChildProcess; gone: Promise<void>; why: string | undefined }

function spawnProgram({ command, args, cwd, env, osUser, logFile }: Program): Launched {
  const log = openSync(logFile, 'a', 0o600)
  const child = spawn(command, args, {
    cwd,
    env: env ?? { PATH: process.env.PATH, LC_ALL: 'C' },
    uid: osUser?.uid,
    gid: osUser?.gid,
    detached: true,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  const launched: Launched = { child, gone: Promise.resolve(), why: undefined }
  launched.gone = new Promise((resolve) => {
    child.once('error', (error) => {
      launched.why = error.message
      resolve()
    })
    child.once('exit', (code, signal) => {
      launched.why = signal ?? `code ${code}`
      resolve()
    })
  })
  return launched
}

/** Waits until the program is up, or is to stop; throws if it ends first or takes longer than `readyMs`. */
async function waitUntilUp(program: Program, launched: Launched, stopping: AbortSignal): Promise<void> {
  const { check, readyMs } = program
  const deadline = Date.now() + readyMs
  // A check under way may hang for seconds on a server that is being stopped.
  const stopped = onAbort(stopping).then(() => 'it is to stop')
  for (;;) {
    const checked = check().then(
      () => true,
      (error: Error) => error.message,
    )
    const up = await Promise.race([checked, stopped])
    if (launched.why !== undefined) {
      if (!stopping.aborted) await tellEnd(program, launched)
      throw new Error(`ended before it was up (${launched.why})`)
    }
    if (up === true || stopping.aborted) return
    if (Date.now() > deadline) {
      kill(launched.child.pid!, 'SIGKILL')
      await launched.gone
      throw new Error(`was not up within ${readyMs / 1000} s: ${up}`)
    }
    await Promise.race([launched.gone, sleep(50)])
  }
}

async function tellEnd({ ended, logFile }: Program, launched: Launched | undefined): Promise<void> {
  const signal = launched?.child.signalCode ?? null
  await ended?.({ signal, stderr: readEnd(logFile, 100) })
}

/** The pid of a running process; undefined once it has ended. */
function findPid(launched: Launched | undefined): number | undefined {
  const { pid, exitCode, signalCode } = launched?.child ?? {}
  return exitCode === null && signalCode === null ? pid : undefined
}

function readEnd(path: string, lines = 12): string {
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
}
