import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { endProcesses, identify, isAlive, type ProcessId } from './processes.ts'

type Holder = { supervisor: ProcessId; children: Record<string, ProcessId>; addresses?: Addresses }

/** Where the servers of a running start are, for the commands beside it. The database's holds its password. */
export type Addresses = { databaseUrl: string; temporalAddress: string; url: string }

export type Lock = {
  /** Children of a supervisor that was killed, still running. */
  orphans: Record<string, ProcessId>
  /** Notes a child that was just started, before anything else is done with it. */
  note(name: string, pid: number): void
  publish(addresses: Addresses): void
  release(): void
}

/**
 * Takes the data folder for this process: perdure.pid names the supervisor and its children, each by pid and
 * start time. Throws where the supervisor named there is alive.
 */
export function takeLock(dataDir: string): Lock {
  const path = join(dataDir, 'perdure.pid')
  const draft = `${path}.${process.pid}`
  const holder: Holder = { supervisor: identify(process.pid)!, children: {} }
  const write = (to: string) => writeFileSync(to, `${JSON.stringify(holder, null, 2)}\n`, { mode: 0o600 })
  for (;;) {
    write(draft)
    try {
      // A link is made or refused as a whole: of two starts at once only one gets it.
      linkSync(draft, path)
      break
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const other = read(path)
      if (other && isAlive(other.supervisor)) {
        rmSync(draft, { force: true })
        throw new Error(
          `Perdure is already running on ${dataDir} (process ${other.supervisor.pid}): stop that one, or set another DATA_DIR`,
        )
      }
      Object.assign(holder.children, keepAlive(other))
      setAside(path)
    }
  }
  rmSync(draft)
  const rewrite = () => {
    write(draft)
    renameSync(draft, path)
  }
  return {
    orphans: { ...holder.children },
    note(name, pid) {
      const id = identify(pid)
      if (!id) return
      holder.children[name] = id
      rewrite()
    },
    publish(addresses) {
      holder.addresses = addresses
      rewrite()
    },
    release() {
      if (read(path)?.supervisor.pid === process.pid) rmSync(path, { force: true })
    },
  }
}

/** Of the start that is running on the data folder; undefined where none is. */
export function readAddresses(dataDir: string): Addresses | undefined {
  const holder = read(join(dataDir, 'perdure.pid'))
  return holder && isAlive(holder.supervisor) ? holder.addresses : undefined
}

/** Ends what a killed supervisor left: the service first, so that it can still put its work down. */
export async function endOrphans(orphans: Record<string, ProcessId>): Promise<void> {
  const order = ['service', 'temporal', 'postgres']
  for (const [name, id] of Object.entries(orphans).sort(([a], [b]) => order.indexOf(a) - order.indexOf(b))) {
    await endProcesses([id], name === 'postgres' ? 'SIGINT' : 'SIGTERM', 3_000)
  }
}

function keepAlive(holder: Holder | null): Record<string, ProcessId> {
  return Object.fromEntries(Object.entries(holder?.children ?? {}).filter(([, id]) => isAlive(id)))
}

/** Moves a dead holder's file away; one that another start wrote meanwhile is put back. */
function setAside(path: string): void {
  const aside = `${path}.stale.${process.pid}`
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  const moved = read(aside)
  if (moved && isAlive(moved.supervisor)) linkSync(aside, path)
  rmSync(aside)
}

function read(path: string): Holder | null {
  try {
    const holder = JSON.parse(readFileSync(path, 'utf8')) as Holder
    return holder.supervisor ? holder : null
  } catch {
    return null
  }
}
