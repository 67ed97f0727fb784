import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from './account.ts'
import { kill } from './processes.ts'

/** One program under supervision. */
export type Program = {
  name: string
  command: string
  args: string[]
  env?: Record<string, string | undefined>
  account?: Account
  cwd: string
  logFile: string
  stopSignal: NodeJS.Signals
  stopMs: number
  /** Runs before each start. */
  before?: () => Promise<void>
  /** Rejects while the program is not up; asked again and again. */
  check: () => Promise<void>
  readyMs: number
}

export type Child = {
  /** Resolves when it is up; rejects where it ended three times before it ever was. */
  ready: Promise<void>
  /** The running process, if there is one now. */
  pid: () => number | undefined
  /** Asks it to end; SIGKILL after `stopMs`. It is not started again. */
  stop: () => Promise<void>
}

export type Watch = {
  started: (name: string, pid: number) => void
  /** It ended without being asked, and is being started again. */
  lost: (name: string, why: string) => void
  back: (name: string) => void
}

const BACK_OFF_MS = [100, 500, 1_000, 2_000, 5_000]
const STEADY_MS = 30_000

/**
 * Starts a program in a process group of its own and keeps it running: started again whenever it ends, with
 * growing pauses.
 */
export function superviseChild(program: Program, watch: Watch): Child {
  const stopping = new AbortController()
  let current: ChildProcess | undefined
  let ended: Promise<unknown> = Promise.resolve()

  async function launch(): Promise<void> {
    await program.before?.()
    if (stopping.signal.aborted) return
    const log = openSync(program.logFile, 'a', 0o600)
    const child = spawn(program.command, program.args, {
      cwd: program.cwd,
      env: program.env ?? { PATH: process.env.PATH, LC_ALL: 'C' },
      uid: program.account?.uid,
      gid: program.account?.gid,
      detached: true,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    if (child.pid) watch.started(program.name, child.pid)
    let why: string | undefined
    const gone = new Promise<void>((resolve) => {
      child.once('error', (error) => {
        why = error.message
        resolve()
      })
      child.once('exit', (code, signal) => {
        why = signal ?? `code ${code}`
        resolve()
      })
    })
    current = child
    ended = gone
    const deadline = Date.now() + program.readyMs
    for (;;) {
      const up = await program.check().then(
        () => true,
        (error: Error) => error.message,
      )
      if (why !== undefined) throw new Error(`ended at once (${why})`)
      if (up === true || stopping.signal.aborted) return
      if (Date.now() > deadline) {
        kill(child.pid!, 'SIGKILL')
        await gone
        throw new Error(`not up within ${program.readyMs / 1000} s: ${up}`)
      }
      await Promise.race([gone, sleep(50)])
    }
  }

  async function keepUp(): Promise<void> {
    let losses = 0
    let since = Date.now()
    let up = true
    while (!stopping.signal.aborted) {
      if (up) {
        await ended
        if (stopping.signal.aborted) return
        if (Date.now() - since > STEADY_MS) losses = 0
        watch.lost(program.name, `ended (${current?.signalCode ?? `code ${current?.exitCode}`})`)
      }
      const pause = BACK_OFF_MS[Math.min(losses++, BACK_OFF_MS.length - 1)]
      await sleep(pause, undefined, { signal: stopping.signal }).catch(() => {})
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

  async function startFirst(): Promise<void> {
    for (let attempt = 1; !stopping.signal.aborted; attempt++) {
      try {
        return await launch()
      } catch (error) {
        if (attempt < 3) continue
        const message = `${program.name} does not start: ${(error as Error).message}`
        throw new Error(`${message}\n${readEnd(program.logFile)}\n(the whole log: ${program.logFile})`)
      }
    }
  }

  const ready = startFirst()
  const kept = ready.then(keepUp, () => {})

  return {
    ready,
    pid: () =>
      current && current.exitCode === null && current.signalCode === null ? current.pid : undefined,
    async stop() {
      stopping.abort()
      const child = current
      if (child?.pid && child.exitCode === null && child.signalCode === null) {
        kill(child.pid, program.stopSignal)
        const timer = setTimeout(() => kill(child.pid!, 'SIGKILL'), program.stopMs)
        await ended
        clearTimeout(timer)
      }
      await kept
    },
  }
}

function readEnd(path: string): string {
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-12).join('\n')
}
