import { readdirSync, readFileSync } from 'node:fs'

/** What a program uses: MB of resident memory and ms of CPU time so far; zeros where this system has no /proc. */
export type Usage = { memory: number; cpu: number }

const TICK_MS = 10

/** The usage of a process; `children` (PostgreSQL has one per connection) count with their CPU time. */
export function readUsage(pid: number, options: { children: boolean }): Usage {
  const own = readStat(pid)
  if (!own) return { memory: 0, cpu: 0 }
  let { cpu } = own
  if (options.children) {
    cpu += own.gone
    for (const name of readdirSync('/proc')) {
      const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined
      if (stat?.parent === pid) cpu += stat.cpu
    }
  }
  const memory = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return { memory: Math.round(Number(memory ?? 0) / 1024), cpu }
}

function readStat(pid: number): { parent: number; cpu: number; gone: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Behind the program's name, which may hold anything.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [user = 0, system = 0, goneUser = 0, goneSystem = 0] = fields.slice(11, 15)
    return { parent: fields[1]!, cpu: (user + system) * TICK_MS, gone: (goneUser + goneSystem) * TICK_MS }
  } catch {
    return undefined
  }
}
