import { readdirSync, readFileSync } from 'node:fs'

/**
 * The resident memory of a program in MB, and its CPU time so far in ms. Both are 0 on systems without /proc.
 */
export type Usage = { memory: number; cpu: number }

const TICK_MS = 10

/**
 * Reads the usage of a process. `children` adds the CPU
 * time of its children: PostgreSQL has one per connection.
 */
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
    // The fields after the program's name, which may contain anything.
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
