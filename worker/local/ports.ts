import { randomInt } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { ConfigError, type Port } from '../config.ts'

/**
 * Chooses a port to listen on. A port set by hand is used or, if it is taken, refused with a ConfigError.
 * Otherwise the first free one is used of: the port used before (kept in `folder`/ports.json), the default,
 * any. `name` is the environment variable.
 */
export async function choosePort(
  folder: string,
  name: string,
  wanted: Port,
  host: string,
  say: (line: string) => void,
): Promise<number> {
  if (wanted.byHand) {
    if (await isFree(wanted.number, host)) return wanted.number
    throw new ConfigError(`${name} is ${wanted.number}, but another program is listening on that port`)
  }
  const path = join(folder, 'ports.json')
  const kept = readPorts(path)
  for (const port of [kept[name], wanted.number]) {
    if (!port || !(await isFree(port, host))) continue
    if (port !== wanted.number) say(`Port ${port}, as at the start before (set ${name} to choose one)`)
    return keep(port)
  }
  const port = await findFree(host)
  say(`Port ${wanted.number} is taken: using ${port} instead (set ${name} to choose one)`)
  return keep(port)

  function keep(port: number): number {
    if (kept[name] !== port) writeFileSync(path, `${JSON.stringify({ ...kept, [name]: port })}\n`)
    return port
  }
}

const given = new Set<number>()

/** Finds a port without a listener, and never the same one twice in a process: the caller listens on it later. */
export async function findFree(host = '127.0.0.1'): Promise<number> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    const port = randomInt(10_081, 32_768)
    if (given.has(port) || !(await isFree(port, host))) continue
    given.add(port)
    return port
  }
  throw new ConfigError('there is no free port between 10081 and 32767')
}

async function isFree(port: number, host: string): Promise<boolean> {
  try {
    await listen(port, host)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') return false
    if (code === 'EACCES') throw new ConfigError(`this user is not permitted to listen on port ${port}`)
    if (code === 'EADDRNOTAVAIL')
      throw new ConfigError(`HOST must be an address of this machine, which ${host} is not`)
    throw error
  }
}

function listen(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ port, host, exclusive: true }, () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

function readPorts(path: string): Record<string, number> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, number>
  } catch {
    return {}
  }
}
