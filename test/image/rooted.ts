import { spawn } from 'node:child_process'

/** How a program is run with another folder as its root, in mount and process namespaces of its own. */
export type Place = {
  root: string
  cwd: string
  user?: string
  env: Record<string, string>
  /** Files and folders of this machine, by where they appear below the root. */
  binds?: Record<string, string>
  readOnly?: boolean
  tmpfs?: string[]
}

// Everything that is mounted goes away with the namespace. $1 is the root, the rest is said by the variables.
const SCRIPT = `set -e
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
printf '%s' "$BINDS" | while IFS='|' read -r from to; do mount --bind "$from" "$root$to"; done
for folder in $TMPFS; do mount -t tmpfs -o mode=1777 tmpfs "$root$folder"; done
if [ "$READ_ONLY" = 1 ]; then mount -o remount,bind,ro "$root"; fi
exec chroot --userspec="$AS" "$root" /usr/bin/env -i "$@"`

/** Starts a program there; `output` is what it has said so far, `ended` its exit code. */
export function runRooted(place: Place, command: string[]) {
  const { root, cwd, user = '0:0', env, binds = {}, readOnly = false, tmpfs = [] } = place
  const names = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const enter = ['/bin/sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', cwd, ...command]
  const unshare = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private']
  const child = spawn('unshare', [...unshare, 'sh', '-c', SCRIPT, 'sh', root, ...names, ...enter], {
    env: {
      PATH: process.env.PATH,
      BINDS: Object.entries(binds)
        .map(([to, from]) => `${from}|${to}\n`)
        .join(''),
      TMPFS: tmpfs.join(' '),
      READ_ONLY: readOnly ? '1' : '',
      AS: user,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (output += part))
  const ended = new Promise<number | null>((resolve) => {
    child.once('error', (error) => {
      output += error.message
      resolve(-1)
    })
    child.once('close', (code) => resolve(code))
  })
  return { ended, output: () => output, hasEnded: () => child.exitCode !== null || child.signalCode !== null }
}
