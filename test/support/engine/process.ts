import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { kill } from '../../../worker/local/processes.ts'
import { COMPILED } from '../cache.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const NODE = fileURLToPath(new URL('../../../node_modules/.bin/node', import.meta.url))

const BUNDLED = new URL('./bundled.ts', import.meta.url).href
const WORKS = ['worker/start.ts', 'worker/serve.ts', 'worker/worker.ts']

export type Launched = ReturnType<typeof launch>

/** What lets a program with a worker take the suite's bundle; nothing if it has arguments, as with a limit on its memory. */
function findBundle(args: string[]): Record<string, string> {
  const { TEST_WORKFLOW_BUNDLE: bundle } = process.env
  if (!bundle || args.length !== 1 || !WORKS.includes(args[0]!)) return {}
  return { BUNDLE: bundle, NODE_OPTIONS: `--import=${BUNDLED}` }
}

/**
 * Starts one of our programs as npm does, in a process group
 * of its own, with only PATH, the cache of compiled
 * code and `env` as environment.
 */
export function launch(args: string[], env: Record<string, string>) {
  const child = spawn(NODE, ['--disable-warning=ExperimentalWarning', ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, LC_ALL: 'C', ...COMPILED, ...findBundle(args), ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (output += part))
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal)),
  )
  return {
    pid: child.pid!,
    output: () => output,
    /** Resolves when the process has ended, with its exit code or the signal that ended it. */
    ended,
    /** Sends a signal to its process group: a worker is two processes. */
    kill(signal: NodeJS.Signals): void {
      if (child.exitCode === null && child.signalCode === null) kill(-child.pid!, signal)
    },
    /**
     * Polls until `holds` returns true; an error that it throws
     * counts as false. Fails at once if the process ends.
     */
    async until(holds: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
      const giveUp = Date.now() + withinMs
      for (;;) {
        const why = await Promise.resolve().then(holds).catch(String)
        if (why === true) return
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`${args[0]} ended (${child.exitCode ?? child.signalCode}):\n${output}`)
        if (Date.now() > giveUp)
          throw new Error(
            `${args[0]}: it still does not hold after ${withinMs} ms (${why}):\n${output.slice(-5_000)}`,
          )
        await sleep(25)
      }
    },
  }
}
