import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ROOMS = ['workflows', 'db', 'activities', 'api', 'worker']
const MAX_FILES = 20

/** `typeOnly`: the import disappears when types are stripped. */
type Import = { from: string; to: string; typeOnly: boolean }

async function listFiles(room: string): Promise<string[]> {
  const entries = await readdir(join(ROOT, room), { recursive: true })
  const files = entries.map((entry) => `${room}/${entry.split(sep).join('/')}`)
  return files.filter((file) => /\.tsx?$/.test(file))
}

async function listSources(room: string): Promise<string[]> {
  return (await listFiles(room)).filter((file) => !file.startsWith('api/console/'))
}

/** The relative imports of a file, those that it makes only when they are needed included. */
async function listImports(file: string): Promise<Import[]> {
  const text = await readFile(join(ROOT, file), 'utf8')
  const found = text.matchAll(
    /(?:^(?:import|export)\s(?:[^;'"]*?\sfrom\s)?|(?:\btypeof )?\bimport\(\s*)'(\.[^']+)'/gm,
  )
  return [...found].map(([statement, to]) => ({
    from: file,
    to: relative(ROOT, join(ROOT, dirname(file), to!))
      .split(sep)
      .join('/'),
    typeOnly: /^(typeof |\w+\s+(type\b|\{(\s*type\s[^,}]+,?)*\s*\}))/.test(statement),
  }))
}

const sources = (await Promise.all(ROOMS.map(listSources))).flat()
const imports = (await Promise.all(sources.map(listImports))).flat()
const pages = await listFiles('api/console')

/** The files that each file imports, types included. */
const imported = Map.groupBy(imports, ({ from }) => from)

test('rooms import only from rooms to their left', () => {
  const room = (path: string) => ROOMS.indexOf(path.split('/')[0]!)
  const left = imports.filter(({ typeOnly }) => !typeOnly)
  expect(left.length).toBeGreaterThan(100)
  expect(left.filter(({ from, to }) => room(to) > room(from) || room(to) < 0)).toEqual([])
})

test('workflows/run/ is exactly what the entries of the replayed bundle import, including types', () => {
  const reached = new Set([
    'workflows/run/entry.ts',
    'workflows/run/versioned.ts',
    'workflows/run/converter.ts',
  ])
  for (const file of reached) {
    for (const { to } of imported.get(file) ?? []) reached.add(to)
  }
  expect([...reached].sort()).toEqual(sources.filter((file) => file.startsWith('workflows/run/')).sort())
})

test('there are no circular imports, not even of types, nor in the console', async () => {
  const all = [...sources, ...pages]
  const imported = Map.groupBy((await Promise.all(all.map(listImports))).flat(), ({ from }) => from)
  const reach = (from: string): Set<string> => {
    const reached = new Set<string>()
    const add = (file: string) => {
      for (const { to } of imported.get(file) ?? []) reached.add(to)
    }
    add(from)
    for (const file of reached) add(file)
    return reached
  }
  const reached = new Map(all.map((file) => [file, reach(file)]))
  const circles = all
    .filter((file) => reached.get(file)!.has(file))
    .map((file) => all.filter((other) => reached.get(file)!.has(other) && reached.get(other)?.has(file)))
  const named = new Set(circles.map((files) => files.join(' <-> ')))
  expect([...named]).toEqual([])
})

test(`no folder has more than ${MAX_FILES} files, except those of the node types`, async () => {
  const files = [...sources, ...pages, ...(await listFiles('test'))]
  const folders = Object.groupBy(files, (file) => dirname(file))
  const crowded = Object.entries(folders).filter(([, files]) => files!.length > MAX_FILES)
  expect(crowded.map(([folder]) => folder).filter((folder) => !folder.endsWith('/nodes'))).toEqual([])
})

/** The names that two of these files export, with the files. */
async function listShared(files: string[]) {
  const exported = /^export (?:async )?(?:const|function\*?|type|interface|class) (\w+)/gm
  const names = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(ROOT, file), 'utf8')
      return [...new Set([...text.matchAll(exported)].map(([, name]) => name!))].map((name) => ({
        name,
        file,
      }))
    }),
  )
  const shared = Map.groupBy(names.flat(), ({ name }) => name)
  return [...shared.values()].filter((same) => same.length > 1)
}

test('no two exports share a name, neither in the rooms nor in the console', async () => {
  // The generated types of rows have the names of their tables, and stay within SQL.
  expect(await listShared(sources.filter((file) => file !== 'db/schema.ts'))).toEqual([])
  expect(await listShared(pages)).toEqual([])
})

test('every test is in the folder of what it tests', async () => {
  const folders = new Set(['test', ...sources.map((file) => join('test', dirname(file)))])
  const tests = (await listFiles('test')).filter((file) => file.endsWith('.test.ts'))
  const lost = tests.filter((file) => !folders.has(dirname(file)) && dirname(file) !== 'test/api/console')
  expect(lost).toEqual([])
})

test('no file has more than 400 lines, and half of them have fewer than 160', async () => {
  const lengths = await Promise.all(
    sources
      .filter((file) => file !== 'db/schema.ts')
      .map(async (file) => ({ file, lines: (await readFile(join(ROOT, file), 'utf8')).split('\n').length })),
  )
  expect(lengths.filter(({ lines }) => lines > 400)).toEqual([])
  const sorted = lengths.map(({ lines }) => lines).sort((a, b) => a - b)
  expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThan(160)
})

test('the top level has only the folders and files that belong there', async () => {
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
