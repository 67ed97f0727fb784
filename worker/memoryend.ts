import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** The variable in which a process that is watched gets the id under which its end is noted. */
export const PROCESS_ID = 'PERDURE_PROCESS_ID'

/** How a process ended: the signal, and the end of what it wrote to stderr. */
export type GuardedEnd = { signal: NodeJS.Signals | null; stderr: string }

const LOOK_MS = 1_000

/**
 * Says how processes ended that are started by this one. `readKills` is the number of processes that the kernel has
 * killed in our cgroup because the group was out of memory; it is looked at all the time, because a kill by another
 * program must not be taken for one of these, however many there were before.
 */
export function watchMemory(readKills = countMemoryKills) {
  let before = readKills()
  let now = before
  const timer = setInterval(() => {
    before = now
    now = readKills()
  }, LOOK_MS)
  timer.unref()
  return {
    /** Whether a process that has ended just now was out of memory: V8 aborted it, or the kernel killed it. */
    ranOut({ signal, stderr }: GuardedEnd): boolean {
      if (signal === 'SIGKILL') return readKills() > before
      // Node says this last, and aborts; on some machines V8 traps instead.
      const aborted = signal === 'SIGABRT' || signal === 'SIGTRAP' || signal === 'SIGILL'
      return aborted && /^(?:FATAL ERROR|# Fatal).*out of memory/m.test(stderr)
    },
    stop: () => clearInterval(timer),
  }
}

/** How many processes the kernel has killed in our cgroup because it was out of memory; 0 where none can be read. */
export function countMemoryKills(root = '/sys/fs/cgroup', self = '/proc/self/cgroup'): number {
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  const groups = read(self).split('\n')
  const find = (pattern: RegExp) => groups.map((line) => pattern.exec(line)?.[1]).find(Boolean) ?? '/'
  // Version 2 of cgroups, then version 1. In a container the path may be that of the host, and its root is ours.
  const v2 = find(/^0::(.*)$/)
  const v1 = find(/^\d+:(?:.*,)?memory(?:,.*)?:(.*)$/)
  const files = [
    `${root}${v2}/memory.events`,
    `${root}/memory.events`,
    `${root}/memory${v1}/memory.oom_control`,
    `${root}/memory/memory.oom_control`,
  ]
  for (const file of files) {
    const count = /^oom_kill (\d+)$/m.exec(read(file))?.[1]
    if (count !== undefined) return Number(count)
  }
  return 0
}

const TRIES = 5

/**
 * Notes in the database that a process was out of memory. To be called before it is started again. If the
 * database cannot be reached for a few seconds, the attempts that it was at do not count it.
 */
export async function noteEnd(databaseUrl: string, processId: string): Promise<void> {
  // The process that guards another one stays small; this is needed only once that has ended.
  const { openDatabase } = await import('../db/connection.ts')
  const { noteMemoryEnd } = await import('../db/operation/memoryends.ts')
  const { db, close } = openDatabase(databaseUrl, { max: 1, name: 'perdure guard' })
  for (let tries = 1; ; tries++) {
    try {
      await noteMemoryEnd({ db }, processId)
      break
    } catch (error) {
      if (tries < TRIES) await sleep(500)
      else console.error(`perdure: that a process was out of memory could not be noted: ${error}`)
      if (tries === TRIES) break
    }
  }
  await close()
}
