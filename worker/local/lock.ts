import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { endProcesses, identify, isAlive, listListeningPorts, type ProcessId } from './processes.ts'

type Holder = {
  supervisor: ProcessId
  children: Record<string, ProcessId>
  addresses?: InstallationAddresses
}

/**
 * Where the servers of a running start are, for the operators' commands. `databaseUrl` contains the password.
 */
export type InstallationAddresses = { databaseUrl: string; temporalAddress: string; url: string }

export type InstallationLock = {
  /** Children, still running, of a supervisor that was killed. */
  orphans: Record<string, ProcessId>
  /** Records a child. Call it right after its start, so that no killed supervisor leaves an unknown one. */
  note(name: string, pid: number): void
  publish(addresses: InstallationAddresses): void
  release(): void
}

/**
 * Reserves the data folder for this process by writing perdure.pid, which names the supervisor and its
 * children by pid and start time. Throws if the supervisor named there is alive.
 */
export function takeLock(dataDir: string): InstallationLock {
  const path = join(dataDir, 'perdure.pid')
  const draft = `${path}.${process.pid}`
  const holder: Holder = { supervisor: identify(process.pid)!, children: {} }
  const write = (to: string) => writeFileSync(to, `${JSON.stringify(holder, null, 2)}\n`, { mode: 0o600 })
  for (;;) {
    write(draft)
    try {
      // Creating a link is atomic: of two starts at the same time only one succeeds.
      linkSync(draft, path)
      break
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const other = read(path)
      if (other && isAlive(other.supervisor)) {
        rmSync(draft, { force: true })
        throw new Error(
          `Perdure is already running on ${dataDir} (process ${other.supervisor.pid}): stop that one, or set DATA_DIR to another folder`,
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

/** The addresses of the start that is running on the data folder; undefined if none is running. */
export function readAddresses(dataDir: string): InstallationAddresses | undefined {
  const holder = read(join(dataDir, 'perdure.pid'))
  return holder && isAlive(holder.supervisor) ? holder.addresses : undefined
}

/**
 * All ports of the Temporal that the start on the data folder runs, if `port` is one of them; none if Temporal
 * is another.
 */
export function listEmbeddedPorts(dataDir: string, port: number): number[] {
  const temporal = read(join(dataDir, 'perdure.pid'))?.children.temporal
  const ports = temporal && isAlive(temporal) ? listListeningPorts(temporal.pid) : []
  return ports.includes(port) ? ports : []
}

/** Ends the children of a killed supervisor: the service first, so that it can still hand back its work. */
export async function endOrphans(orphans: Record<string, ProcessId>): Promise<void> {
  const order = ['service', 'temporal', 'postgres']
  for (const [name, id] of Object.entries(orphans).sort(([a], [b]) => order.indexOf(a) - order.indexOf(b))) {
    await endProcesses([id], name === 'postgres' ? 'SIGINT' : 'SIGTERM', 3_000)
  }
}

function keepAlive(holder: Holder | null): Record<string, ProcessId> {
  return Object.fromEntries(Object.entries(holder?.children ?? {}).filter(([, id]) => isAlive(id)))
}

/**
 * Moves a dead holder's file away. If another start has replaced it in the meantime, that file is put back.
 */
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
