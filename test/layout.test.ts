import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ROOMS = ['workflows', 'db', 'activities', 'api', 'worker']
/** What the workflow bundle may hold: whatever else got in could break runs in flight. */
const BUNDLE = [
  'commands',
  'entry',
  'failures',
  'fire',
  'frame',
  'run',
  'scopes',
  'state',
  'timers',
  'view',
  'walk',
].map((name) => `workflows/${name}.ts`)

type Import = { from: string; to: string }

async function sources(): Promise<string[]> {
  const found: string[] = []
  for (const room of ROOMS) {
    for (const entry of await readdir(join(ROOT, room), { recursive: true })) {
      if (entry.endsWith('.ts')) found.push(`${room}/${entry.split(sep).join('/')}`)
    }
  }
  return found.filter((file) => !file.startsWith('api/console/'))
}

/** Every relative import that is left once types are stripped. */
async function importsOf(file: string): Promise<Import[]> {
  const text = await readFile(join(ROOT, file), 'utf8')
  const found = text.matchAll(/^(?:import|export)\s(?!type\b)(?:[^;'"]*?\sfrom\s)?'(\.[^']+)'/gm)
  return [...found]
    .filter(([statement]) => !/^\w+\s*\{(\s*type\s[^,}]+,?)*\s*\}/.test(statement))
    .map(([, to]) => ({
      from: file,
      to: relative(ROOT, join(ROOT, dirname(file), to!))
        .split(sep)
        .join('/'),
    }))
}

const all = (await Promise.all((await sources()).map(importsOf))).flat()

test('rooms import only from rooms to their left', () => {
  const room = (path: string) => ROOMS.indexOf(path.split('/')[0]!)
  expect(all.length).toBeGreaterThan(100)
  expect(all.filter(({ from, to }) => room(to) > room(from) || room(to) < 0)).toEqual([])
})

test('the workflow bundle holds the walk and nothing else', () => {
  const reached = new Set(['workflows/entry.ts', 'workflows/failures.ts'])
  for (const file of reached) {
    for (const { to } of all.filter(({ from }) => from === file)) reached.add(to)
  }
  expect([...reached].sort()).toEqual(BUNDLE)
})

test('no file is longer than 400 lines, and most are short', async () => {
  const lengths = await Promise.all(
    (await sources())
      .filter((file) => file !== 'db/schema.ts')
      .map(async (file) => ({ file, lines: (await readFile(join(ROOT, file), 'utf8')).split('\n').length })),
  )
  expect(lengths.filter(({ lines }) => lines > 400)).toEqual([])
  const sorted = lengths.map(({ lines }) => lines).sort((a, b) => a - b)
  expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThan(160)
})

test('nothing stands at the top level but what belongs there', async () => {
  const allowed = new Set([
    ...ROOMS,
    'test',
    'node_modules',
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'temporal-dev.yml',
    'README.md',
    'AGENTS.md',
    'LICENSE',
    'biome.json',
    'vitest.config.ts',
  ])
  const entries = await readdir(ROOT)
  expect(entries.filter((entry) => !entry.startsWith('.') && !allowed.has(entry))).toEqual([])
})
