import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { ConfigError, type Port } from './config.ts'

/**
 * Chooses a port to listen on: one set by hand or none, else the one used before, the usual one, any free
 * one. The choice is kept in `folder`/ports.json. Throws ConfigError where one set by hand is taken.
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
    throw new ConfigError(`${name} is ${wanted.number}, but something else listens there`)
  }
  const path = join(folder, 'ports.json')
  const kept = readPorts(path)
  for (const port of [kept[name], wanted.number]) {
    if (port && (await isFree(port, host))) return keep(port)
  }
  const port = await findFree(host)
  say(`port ${wanted.number} is taken: using ${port} (set ${name} to choose)`)
  return keep(port)

  function keep(port: number): number {
    if (kept[name] !== port) writeFileSync(path, `${JSON.stringify({ ...kept, [name]: port })}\n`)
    return port
  }
}

export function findFree(host = '127.0.0.1'): Promise<number> {
  return listen(0, host)
}

async function isFree(port: number, host: string): Promise<boolean> {
  try {
    await listen(port, host)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') return false
    if (code === 'EACCES') throw new ConfigError(`port ${port} needs more rights than this user has`)
    if (code === 'EADDRNOTAVAIL') throw new ConfigError(`HOST ${host} is no address of this machine`)
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
