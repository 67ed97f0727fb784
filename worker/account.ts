import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** A user of this machine, from /etc/passwd. */
export type Account = { name: string; uid: number; gid: number }

const NAME = 'perdure'

/**
 * The user that runs what refuses root: `perdure`, else `postgres`, else `perdure` is made. A bare uid will not
 * do, PostgreSQL looks its user up. Throws where none can be made.
 */
export function findAccount(say: (line: string) => void): Account {
  const found = readAccount(NAME) ?? readAccount('postgres')
  if (found) return found
  // useradd on most systems, adduser of busybox on Alpine.
  spawnSync('useradd', ['--system', '--no-create-home', '--shell', '/usr/sbin/nologin', NAME])
  if (!readAccount(NAME)) spawnSync('adduser', ['-S', '-D', '-H', NAME])
  const made = readAccount(NAME)
  if (!made) {
    throw new Error(
      `PostgreSQL does not run as root, and a user ${NAME} could not be made: add one, or set DATABASE_URL`,
    )
  }
  say(`made the system user ${NAME}: PostgreSQL does not run as root`)
  return made
}

/** Whether this user can run or enter every one of the paths. */
export function canRun(account: Account, paths: string[]): boolean {
  return paths.every((path) => {
    const test = spawnSync('/bin/sh', ['-c', 'test -x "$1"', 'sh', path], {
      uid: account.uid,
      gid: account.gid,
      cwd: '/',
    })
    return test.status === 0
  })
}

function readAccount(name: string): Account | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`))
  const [, , uid, gid] = line?.split(':') ?? []
  return uid && gid ? { name, uid: Number(uid), gid: Number(gid) } : undefined
}
