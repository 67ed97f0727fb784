import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Names a process by pid and start time, so that a later process with the same pid is not mistaken for it.
 */
export type ProcessId = { pid: number; started: string }

/** Names the process that has this pid now; null if none is alive. A zombie does not count as alive. */
export function identify(pid: number): ProcessId | null {
  const started = process.platform === 'linux' ? readStartLinux(pid) : readStartByPs(pid)
  return started ? { pid, started } : null
}

export function isAlive(id: ProcessId): boolean {
  return identify(id.pid)?.started === id.started
}

/**
 * Ends exactly these processes: sends `signal`, and after `graceMs` SIGKILL to those still alive. Resolves
 * when all have ended; throws if one is alive 5 seconds after SIGKILL.
 */
export async function endProcesses(ids: ProcessId[], signal: NodeJS.Signals, graceMs: number): Promise<void> {
  for (const [kind, waitMs] of [
    [signal, graceMs],
    ['SIGKILL', 5_000],
  ] as const) {
    for (const id of ids) if (isAlive(id)) kill(id.pid, kind)
    const deadline = Date.now() + waitMs
    while (ids.some(isAlive) && Date.now() < deadline) await sleep(25)
    if (!ids.some(isAlive)) return
  }
  throw new Error(`process ${ids.filter(isAlive).map((id) => id.pid)} cannot be ended`)
}

/**
 * Live processes of the program `name` whose working directory
 * is `folder`. Always empty on systems without /proc.
 */
export function findProcesses(name: string, folder: string): ProcessId[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      try {
        if (readlinkSync(`/proc/${entry}/cwd`) !== folder) return []
        if (readFileSync(`/proc/${entry}/comm`, 'utf8').trim() !== name) return []
      } catch {
        return []
      }
      return identify(Number(entry)) ?? []
    })
}

/** The TCP ports that a process listens on. Empty where the system does not tell. */
export function listListeningPorts(pid: number): number[] {
  const ports = process.platform === 'linux' ? readPortsLinux(pid) : readPortsByLsof(pid)
  return [...new Set(ports)].sort((a, b) => a - b)
}

export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

let boot: string | undefined

// Linux counts start times from the boot, so the boot's id is part of the result.
function readStartLinux(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The command, in parentheses, may contain anything. The fields after it are the state and then numbers.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return null
    boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').slice(0, 8)
    return `${boot}:${fields[19]}`
  } catch {
    return null
  }
}

function readStartByPs(pid: number): string | null {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
    return line.startsWith('Z') ? null : line.replace(/^\S+\s+/, '')
  } catch {
    return null
  }
}

const LISTEN = '0A'

function readPortsLinux(pid: number): number[] {
  try {
    const own = new Set(
      readdirSync(`/proc/${pid}/fd`).map((fd) => {
        // A file may have been closed since.
        try {
          return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
        } catch {
          return undefined
        }
      }),
    )
    return ['tcp', 'tcp6'].flatMap((table) => {
      const lines = readFileSync(`/proc/${pid}/net/${table}`, 'utf8').split('\n').slice(1)
      return lines.flatMap((line) => {
        const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/)
        return state === LISTEN && own.has(inode) ? [Number.parseInt(local.split(':')[1]!, 16)] : []
      })
    })
  } catch {
    return []
  }
}

function readPortsByLsof(pid: number): number[] {
  try {
    const args = ['-nP', '-a', '-p', String(pid), '-iTCP', '-sTCP:LISTEN', '-Fn']
    const lines = execFileSync('lsof', args, { encoding: 'utf8' }).split('\n')
    return lines.flatMap((line) => (line.startsWith('n') ? [Number(line.split(':').at(-1))] : []))
  } catch {
    return []
  }
}
