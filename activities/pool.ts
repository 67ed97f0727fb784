import { type ChildProcess, fork } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Cause, Job, Reply } from './evaluator.ts'
import { createLanes } from './lanes.ts'

export type PoolOptions = { processes: number; timeoutMs: number; heapMb: number; maxChars: number }

/**
 * `prepare` is called when a process is free, so that waiting jobs hold no copies of their data; what it throws is
 * thrown. All else that goes wrong is a reply: `at` is the expression it went wrong at, -1 where nobody knows.
 */
export type Pool = { run(key: string, prepare: () => Job): Promise<Reply>; close(): Promise<void> }

type Task = {
  key: string
  prepare: () => Job
  tries: number
  resolve: (reply: Reply) => void
  reject: (error: unknown) => void
}

type Member = {
  child: ChildProcess
  ready: boolean
  task?: Task
  timer?: NodeJS.Timeout
  late: boolean
  log: string
}

/** All expressions of one job together, or one conversion, take at most so many times an expression's limit. */
export const TOTAL = 5

/** How many times an expression's limit a job may take without a word: a parser of much cannot say that it goes on. */
export function limitOf(job: Job): number {
  return 'conversion' in job && job.conversion.kind !== 'date' ? TOTAL : 1
}
/** What a process may take beyond its limit to say so itself, before it is killed. */
const GRACE_MS = 200
const BOOT_MS = 15_000
const MAX_BOOTS = 3

/**
 * Processes for expressions. Not threads: V8 ends the whole process, not the thread, when one big allocation
 * meets a thread's heap limit (measured: `$pad("x", 500000000)`, `[1..10000000]`).
 * Jobs wait in turn by key, so that one workflow's flood does not hold up the others.
 */
export function createPool(options: PoolOptions): Pool {
  const members = new Set<Member>()
  const waiting = createLanes<Task>()
  let failedBoots = 0
  let closed = false

  function pump(): void {
    for (const member of members) {
      if (!member.ready || member.task) continue
      const task = waiting.take()
      if (!task) return
      begin(member, task)
    }
    const booting = [...members].filter((member) => !member.ready).length
    if (waiting.size() > booting && members.size < options.processes) add()
  }

  function begin(member: Member, task: Task): void {
    let job: Job
    try {
      job = task.prepare()
    } catch (error) {
      task.reject(error)
      pump()
      return
    }
    member.task = task
    watch(member, options.timeoutMs * limitOf(job) + GRACE_MS)
    // A process that is gone is heard of by its exit.
    member.child.send(job, () => {})
  }

  function watch(member: Member, ms: number): void {
    clearTimeout(member.timer)
    member.timer = setTimeout(() => {
      member.late = true
      member.child.kill('SIGKILL')
    }, ms)
    if (!member.task) member.timer.unref()
  }

  function add(): void {
    const child = fork(fileURLToPath(new URL('./evaluator.ts', import.meta.url)), argumentsOf(options), {
      // No secrets, no files to write, no processes, and no way from an object to its prototype.
      env: {},
      execArgv: [
        `--max-old-space-size=${options.heapMb}`,
        '--max-semi-space-size=8',
        '--disable-proto=delete',
        '--disable-warning=ExperimentalWarning',
        '--permission',
        '--allow-fs-read=*',
      ],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    const member: Member = { child, ready: false, late: false, log: '' }
    members.add(member)
    child.stderr?.on('data', (chunk) => {
      member.log = (member.log + chunk).slice(-2_000)
    })
    child.on('message', (reply: Reply) => receive(member, reply))
    child.on('error', (error) => {
      member.log += error.message
      if (child.pid === undefined) bury(member, null)
    })
    child.once('exit', (_code, signal) => bury(member, signal))
    child.unref()
    child.channel?.unref()
    ;(child.stderr as Socket | null)?.unref()
    watch(member, BOOT_MS)
  }

  function receive(member: Member, reply: Reply): void {
    if (reply.kind === 'progress') {
      watch(member, options.timeoutMs + GRACE_MS)
      return
    }
    clearTimeout(member.timer)
    if (reply.kind === 'ready') {
      member.ready = true
      failedBoots = 0
    } else {
      const task = member.task
      member.task = undefined
      task?.resolve(reply)
    }
    pump()
  }

  function bury(member: Member, signal: NodeJS.Signals | null): void {
    members.delete(member)
    clearTimeout(member.timer)
    const task = member.task
    if (closed) {
      task?.resolve(STOPPING)
      return
    }
    if (task) {
      if (member.late) task.resolve(failed('TIMEOUT'))
      // Killed from outside, it says nothing about the expression: tried once more.
      else if (signal === 'SIGKILL' && task.tries++ === 0) waiting.add(task.key, task)
      else task.resolve(failed('MEMORY'))
    } else if (!member.ready && ++failedBoots >= MAX_BOOTS) {
      failedBoots = 0
      for (let next = waiting.take(); next; next = waiting.take())
        next.resolve(failed('DOWN', member.log.trim()))
    }
    // The next job shall not wait for a process to start.
    if (members.size === 0 && (task || waiting.size() > 0)) add()
    pump()
  }

  add()
  return {
    async run(key, prepare) {
      if (closed) return STOPPING
      // The processes do not keep this one alive; a job under way does.
      const alive = setInterval(() => {}, 60_000)
      try {
        return await new Promise<Reply>((resolve, reject) => {
          waiting.add(key, { key, prepare, tries: 0, resolve, reject })
          pump()
        })
      } finally {
        clearInterval(alive)
      }
    },
    async close() {
      closed = true
      for (let next = waiting.take(); next; next = waiting.take()) next.resolve(STOPPING)
      await Promise.all([...members].map((member) => end(member.child)))
    },
  }
}

function failed(cause: Cause, message = ''): Reply {
  return { kind: 'error', at: -1, cause, message }
}

const STOPPING = failed('DOWN', 'the service is stopping')

function argumentsOf(options: PoolOptions): string[] {
  return [options.timeoutMs, options.timeoutMs * TOTAL, options.maxChars].map(String)
}

function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null)
    return Promise.resolve()
  return new Promise((resolve) => {
    child.ref()
    child.once('exit', () => resolve())
    child.kill('SIGKILL')
  })
}
