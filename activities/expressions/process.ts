import { type ChildProcess, fork } from 'node:child_process'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type EvaluatorJob, type EvaluatorReply, findTimeFactor, JOB_TIME_FACTOR } from './job.ts'

export type ProcessLimits = { timeoutMs: number; heapMb: number; maxChars: number }

export type EvaluatorProcess = {
  /** Sends a job. The process is killed unless it replies, or at least reports progress, in time. */
  send(job: EvaluatorJob): void
  end(): Promise<void>
}

/** How a process ended: `late` if we killed it because it did not reply; `log` is the end of its stderr. */
export type ProcessEnd = { late: boolean; signal: NodeJS.Signals | null; log: string }

/** How long past its limit a process may take to report that itself, before it is killed. */
const GRACE_MS = 200
const BOOT_MS = 15_000

/** Starts an evaluator process. Its first reply is `ready`; then it replies to each job in turn. */
export function startEvaluatorProcess(
  limits: ProcessLimits,
  on: { reply: (reply: EvaluatorReply) => void; end: (end: ProcessEnd) => void },
): EvaluatorProcess {
  const child = forkSandboxed(limits)
  let log = ''
  let late = false
  let timer: NodeJS.Timeout | undefined

  function watch(ms: number): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      late = true
      child.kill('SIGKILL')
    }, ms)
  }

  function end(signal: NodeJS.Signals | null): void {
    clearTimeout(timer)
    on.end({ late, signal, log })
  }

  child.stderr?.on('data', (chunk) => {
    log = (log + chunk).slice(-2_000)
  })
  child.on('message', (reply: EvaluatorReply) => {
    if (reply.kind === 'progress') return watch(limits.timeoutMs + GRACE_MS)
    clearTimeout(timer)
    on.reply(reply)
  })
  child.on('error', (error) => {
    log += error.message
    if (child.pid === undefined) end(null)
  })
  child.once('exit', (_code, signal) => end(signal))
  watch(BOOT_MS)
  timer?.unref()
  return {
    send(job) {
      watch(limits.timeoutMs * findTimeFactor(job) + GRACE_MS)
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
  const own = ['activities', 'workflows', 'package.json', 'node_modules'].map((name) => root + name)
  return [...own, above + folder]
}

/** The rights of an evaluator process: it may read code, and has no other files, processes or `__proto__`. */
export const SANDBOX = [
  '--disable-proto=delete',
  '--disable-warning=ExperimentalWarning',
  '--permission',
  ...listReadable().map((path) => `--allow-fs-read=${path}`),
]

/** A process in the sandbox, without environment and secrets. */
function forkSandboxed({ timeoutMs, heapMb, maxChars }: ProcessLimits): ChildProcess {
  const args = [timeoutMs, timeoutMs * JOB_TIME_FACTOR, maxChars].map(String)
  const child = fork(fileURLToPath(new URL('./child.ts', import.meta.url)), args, {
    env: {},
    execArgv: [`--max-old-space-size=${heapMb}`, '--max-semi-space-size=8', ...SANDBOX],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
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
