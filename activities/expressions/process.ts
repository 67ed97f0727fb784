import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { setPriority } from 'node:os'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type EvaluatorJob, type EvaluatorReply, findTimeToReply, JOB_TIME_FACTOR } from './job.ts'

/** `farMs`: how long a job may go without a sign of life by the clock; 30 s by default. */
export type ProcessLimits = {
  timeoutMs: number
  heapMb: number
  maxChars: number
  farMs?: number | undefined
}

export type EvaluatorProcess = {
  pid: number | undefined
  /** Sends a job. The process is killed unless it replies, or at least reports progress, in time. */
  send(job: EvaluatorJob): void
  end(): Promise<void>
}

/**
 * How a process ended: `late` if we killed it because it had had its processor time, `starved` because it did
 * not get it, `huge` because of its memory; `log` is the end of its stderr.
 */
export type ProcessEnd = {
  late: boolean
  starved: boolean
  huge?: boolean
  signal: NodeJS.Signals | null
  log: string
}

/** How long past its limit a process may take to report that itself, before it is killed. */
const GRACE_MS = 200
const BOOT_MS = 30_000

/**
 * How long a job may go without a sign of life by the clock: the processes have a low priority, and the load of other
 * processes must not count. If processor time cannot be read, the clock is used in its place, at a BLIND_FACTOR-th of
 * its pace. The job's own limit always ends it before the clock does.
 */
const FAR_MS = 30_000
const BLIND_FACTOR = 10

/**
 * How much memory a process may take beyond its heap while it works on a file: what parsers unpack lies outside of the
 * heap, and V8's limit does not count it. Looked at every MEMORY_CHECK_MS.
 */
const OUTSIDE_MB = 320
const MEMORY_CHECK_MS = 50
const PAGE_BYTES = 4_096

/** The unit in which Linux tells processor time. */
const TICK_MS = 10
const CHECK_MS = 20

/** Behind the service itself, so that it goes on while all processes work. */
const NICE = 10

/** Starts an evaluator process. Its first reply is `ready`; then it replies to each job in turn. */
export function startEvaluatorProcess(
  limits: ProcessLimits,
  on: { reply: (reply: EvaluatorReply) => void; end: (end: ProcessEnd) => void },
): EvaluatorProcess {
  const child = forkSandboxed(limits)
  let log = ''
  let late = false
  let starved = false
  let huge = false
  let memoryWatch: NodeJS.Timeout | undefined
  let timer: NodeJS.Timeout | undefined
  let furtherMs = limits.timeoutMs
  function kill(): void {
    child.kill('SIGKILL')
  }

  /** Kills the process once it has had `ms` more of processor time without a sign of life. */
  function watch(ms: number): void {
    const before = readCpuMs(child.pid)
    const began = performance.now()
    const deadline = began + Math.max(limits.farMs ?? FAR_MS, ms * (BLIND_FACTOR + 1))
    const check = () => {
      const now = performance.now()
      const spent = before === undefined ? (now - began) / BLIND_FACTOR : readCpuMs(child.pid)! - before
      late = spent >= ms
      starved = !late && now >= deadline
      if (late || starved) return kill()
      // No process can have had its time any sooner.
      timer = setTimeout(check, Math.max(CHECK_MS, Math.min(ms - spent, deadline - now)))
    }
    clearTimeout(timer)
    timer = setTimeout(check, ms)
  }

  /** Kills the process once it takes more memory than work on a file may. */
  function watchMemory(): void {
    const most = (limits.heapMb + OUTSIDE_MB) * 1024 * 1024
    memoryWatch = setInterval(() => {
      huge = readMemory(child.pid) > most
      if (huge) kill()
    }, MEMORY_CHECK_MS)
    memoryWatch.unref()
  }

  function stopWatching(): void {
    clearTimeout(timer)
    clearInterval(memoryWatch)
  }

  function end(signal: NodeJS.Signals | null): void {
    stopWatching()
    on.end({ late, starved, huge, signal, log })
  }

  child.stderr?.on('data', (chunk) => {
    log = (log + chunk).slice(-2_000)
  })
  child.on('message', (reply: EvaluatorReply) => {
    if (reply.kind === 'progress') return watch(furtherMs + GRACE_MS)
    stopWatching()
    on.reply(reply)
  })
  child.on('error', (error) => {
    log += error.message
    if (child.pid === undefined) end(null)
  })
  child.once('exit', (_code, signal) => end(signal))
  timer = setTimeout(kill, BOOT_MS)
  timer.unref()
  return {
    pid: child.pid,
    send(job) {
      const { first, further } = findTimeToReply(job, limits.timeoutMs)
      furtherMs = further
      watch(first + GRACE_MS)
      if ('file' in job) watchMemory()
      // Errors are ignored: if the process is gone, its exit event says so.
      child.send(job, () => {})
    },
    end: () => killProcess(child),
  }
}

/**
 * What an evaluator process may read: our code and that of its packages, which may be linked. The data folder,
 * which has the keys, lies beside them by default.
 */
function listReadable(): string[] {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const folder = `${sep}node_modules${sep}`
  const [above] = createRequire(import.meta.url)
    .resolve('jsonata')
    .split(folder)
  const own = ['activities', 'db', 'workflows', 'package.json', 'node_modules'].map((name) => root + name)
  return [...own, above + folder]
}

/** The rights of an evaluator process: it may read code, and has no other files, processes or `__proto__`. */
export const SANDBOX = [
  '--disable-proto=delete',
  '--disable-warning=ExperimentalWarning',
  '--permission',
  ...listReadable().map((path) => `--allow-fs-read=${path}`),
]

/**
 * The processor time that a process has had, in milliseconds: of its main thread, as what the others do is
 * cleaning up beside it. Undefined on systems without /proc.
 */
function readCpuMs(pid: number | undefined): number | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8')
    // The fields after the program's name, which may contain anything.
    const [user, system] = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
    return (Number(user) + Number(system)) * TICK_MS
  } catch {
    return undefined
  }
}

/** The bytes of memory that a process has, all together; 0 on systems without /proc. */
function readMemory(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES
  } catch {
    return 0
  }
}

/** A process in the sandbox, without environment and secrets. */
function forkSandboxed({ timeoutMs, heapMb, maxChars }: ProcessLimits): ChildProcess {
  const args = [timeoutMs, timeoutMs * JOB_TIME_FACTOR, maxChars].map(String)
  const child = fork(fileURLToPath(new URL('./child.ts', import.meta.url)), args, {
    env: {},
    execArgv: [`--max-old-space-size=${heapMb}`, '--max-semi-space-size=8', ...SANDBOX],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  try {
    if (child.pid !== undefined) setPriority(child.pid, NICE)
  } catch {
    // It has ended already, which its exit event says, or this system does not let us.
  }
  child.unref()
  child.channel?.unref()
  ;(child.stderr as Socket | null)?.unref()
  return child
}

function killProcess(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null)
    return Promise.resolve()
  return new Promise((resolve) => {
    child.ref()
    child.once('exit', () => resolve())
    child.kill('SIGKILL')
  })
}
