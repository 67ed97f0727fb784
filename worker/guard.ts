import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { noteEnd, PROCESS_ID, watchMemory } from './memoryend.ts'

const STDERR_CHARS = 16_000

/**
 * Runs a program in a process of its own, and ends with its exit code. A process that is out of memory cannot
 * say so itself: this one notes it. Signals are passed on, and the program ends with this process.
 */
export async function guard(script: string): Promise<never> {
  const processId = randomUUID()
  const memory = watchMemory()
  const child = spawn(process.execPath, [...process.execArgv, script], {
    env: { ...process.env, [PROCESS_ID]: processId },
    stdio: ['inherit', 'inherit', 'pipe', 'ipc'],
  })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  let stderr = ''
  child.stderr?.on('data', (chunk) => {
    process.stderr.write(chunk)
    stderr = (stderr + chunk).slice(-STDERR_CHARS)
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  if (memory.ranOut({ signal, stderr }) && process.env.DATABASE_URL) {
    await noteEnd(process.env.DATABASE_URL, processId)
  }
  if (signal) console.error(`perdure: the process ended with ${signal}`)
  process.exit(code ?? 1)
}

/** Whether this process is the one that `guard` has started. */
export function isGuarded(): boolean {
  return process.env[PROCESS_ID] !== undefined
}

/** For the process that `guard` has started: it ends at once if the guard was killed. */
export function endWithGuard(): void {
  process.once('disconnect', () => process.exit(1))
  process.channel?.unref()
}
