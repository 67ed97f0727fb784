import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** A user of this machine, from /etc/passwd. */
export type OsUser = { name: string; uid: number; gid: number }

const NAME = 'perdure'

/**
 * Finds the user that runs PostgreSQL, which refuses root: `perdure`, else `postgres`; if neither exists, it
 * creates `perdure`. A uid without a name is not enough, because PostgreSQL looks its user up. Throws if no
 * user can be created.
 */
export function findOsUser(say: (line: string) => void): OsUser {
  const found = readOsUser(NAME) ?? readOsUser('postgres')
  if (found) return found
  // Most systems have useradd, Alpine has busybox's adduser.
  spawnSync('useradd', ['--system', '--no-create-home', '--shell', '/usr/sbin/nologin', NAME])
  if (!readOsUser(NAME)) spawnSync('adduser', ['-S', '-D', '-H', NAME])
  const made = readOsUser(NAME)
  if (!made) {
    throw new Error(
      `PostgreSQL refuses to run as root, and the user ${NAME} could not be created: create it, or set DATABASE_URL`,
    )
  }
  say(`Created the system user ${NAME}, because PostgreSQL refuses to run as root`)
  return made
}

/** Whether this user can execute or enter all of the paths. */
export function canRun(osUser: OsUser, paths: string[]): boolean {
  return paths.every((path) => {
    const test = spawnSync('/bin/sh', ['-c', 'test -x "$1"', 'sh', path], {
      uid: osUser.uid,
      gid: osUser.gid,
      cwd: '/',
    })
    return test.status === 0
  })
}

function readOsUser(name: string): OsUser | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`))
  const [, , uid, gid] = line?.split(':') ?? []
  return uid && gid ? { name, uid: Number(uid), gid: Number(gid) } : undefined
}
