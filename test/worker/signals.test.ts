import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { findFree } from '../../worker/local/ports.ts'
import { identify, isAlive, kill, type ProcessId } from '../../worker/local/processes.ts'
import { COMPILED } from '../support/cache.ts'
import { cloneDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const database = await cloneDatabase()
const dataDir = mkdtempSync(join(tmpdir(), 'perdure-signals-'))
afterAll(async () => {
  await database.drop()
  rmSync(dataDir, { recursive: true, force: true })
})

const env = {
  DATABASE_URL: database.url,
  TEMPORAL_ADDRESS: inject('temporalAddress'),
  TASK_QUEUE: `signals-${randomBytes(4).toString('hex')}`,
  PERDURE_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  DATA_DIR: dataDir,
}

/** All processes that descend from one, which must be alive. */
async function listDescendants(root: number): Promise<ProcessId[]> {
  const ps = spawn('ps', ['-eo', 'pid=,ppid='])
  let text = ''
  for await (const part of ps.stdout) text += part
  const pairs = text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number])
  const found = new Set([root])
  for (const one of found) for (const [pid, parent] of pairs) if (parent === one) found.add(pid)
  found.delete(root)
  return [...found].flatMap((pid) => identify(pid) ?? [])
}

const CASES = [
  ['start', 'Perdure is up'],
  ['api', 'the API is listening'],
  ['worker', 'the worker polls'],
] as const

describe.each(
  CASES.flatMap(([script, up]) =>
    (['SIGTERM', 'SIGINT'] as const).map((signal) => [script, signal, up] as const),
  ),
)('`npm run %s` ends with all its processes when only the outermost one gets a %s', (script, signal, up) => {
  const tags = signal === 'SIGINT' ? 'long' : []
  test('in order', { tags }, async () => {
    const npm = spawn('npm', ['run', '-s', script], {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        ...COMPILED,
        ...env,
        PORT: String(await findFree()),
      },
      // As a container's first process, it is in no group with others that a terminal could signal too.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [npm.stdout, npm.stderr]) stream.on('data', (part) => (output += part))
    const ended = new Promise((resolve) => npm.once('exit', resolve))
    let below: ProcessId[] = []
    try {
      await until(() => output.includes(up), { explain: () => output })
      below = await listDescendants(npm.pid!)
      expect(below.length).toBeGreaterThan(0)
      npm.kill(signal)
      await ended
      await until(() => !below.some(isAlive), { withinMs: 20_000, explain: () => output })
      // In order, not killed.
      if (script === 'start') expect(existsSync(join(dataDir, 'perdure.pid'))).toBe(false)
      else expect(output).toContain('"msg":"stopped"')
    } finally {
      for (const { pid } of below.filter(isAlive)) kill(pid, 'SIGKILL')
      npm.kill('SIGKILL')
    }
  })
})

test('the compose file calls node, which gets the signals that npm would keep', () => {
  const commands = [
    ...readFileSync(join(ROOT, 'temporal-dev.yml'), 'utf8').matchAll(/^ +command: \[(.*)\]$/gm),
  ]
  expect(commands).toHaveLength(3)
  for (const [, command] of commands) {
    const [program, ...rest] = command!.split(', ')
    expect(program).toBe('node_modules/.bin/node')
    expect(rest.some((word) => existsSync(join(ROOT, word)))).toBe(true)
  }
})
