import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ROOMS = ['workflows', 'db', 'activities', 'api', 'worker']
const MAX_FILES = 20

/**
 * The folders of the house, by what they are about. Each has one place, which is the same in every room that has it: in
 * the console below `api/console/`, in the worker below `service/`. A subject of one file needs no folder, unless it
 * has one in another room.
 */
const SUBJECTS: Record<string, string[]> = {
  agents: ['guards', 'mcp', 'tools'],
  audit: ['erasure', 'export', 'proofs', 'refusals', 'reports', 'retention', 'siem', 'verify'],
  bodies: [],
  chat: [],
  connectors: ['makers', 'openapi', 'vendors'],
  credentials: ['checks', 'oauth'],
  cron: [],
  database: [],
  detection: ['normalise', 'pii', 'secrets'],
  docs: [],
  egress: [],
  evaluation: ['batches'],
  executions: [
    'attempts',
    'projection',
    'records',
    'requests',
    'starts',
    'waits',
    'detail',
    'page',
    'timeline',
  ],
  expressions: ['watch'],
  fairness: [],
  forms: [],
  files: ['formats', 'formats/workbook'],
  graph: ['advice', 'triggers'],
  guardrails: ['content', 'injection', 'model', 'rules', 'semantic'],
  http: [],
  javascript: ['prelude'],
  jsonschema: [],
  mail: [],
  mcp: [],
  models: [],
  monitoring: [
    ...['alerts', 'alerts/anomaly', 'channels', 'notices', 'playbooks', 'reports'],
    ...['shifts', 'shifts/drift', 'shifts/sentiment', 'telemetry', 'usage'],
  ],
  n8n: ['ai', 'connectors', 'databases', 'nodes', 'send', 'signins'],
  nodes: ['kit', 'lists', 'models'],
  operation: [],
  people: [],
  reading: ['xml'],
  redaction: [],
  run: ['calls', 'items', 'loops'],
  schedules: [],
  secrets: [],
  send: [],
  tables: [],
  temporal: [],
  variables: [],
  widgets: [],
  workflows: ['drafts', 'kept', 'templates', 'transfer', 'versions'],
}

/** What only the console and only the worker have. */
const CONSOLE: Record<string, string[]> = {
  data: [],
  editor: ['canvas', 'graph'],
  home: [],
  kit: ['charts', 'code', 'controls', 'overlays', 'tables'],
  nodeform: ['fields'],
  settings: [],
  shell: [],
}
const WORKER = ['commands', 'engine', 'local', 'service']

/** The names of two folders, and why one word is right for both. */
const SHARED = {
  connectors: 'the services that nodes call, and how nodes of n8n become calls of them',
  graph: 'how graphs are compiled and drawn, and the one that the editor changes',
  kit: 'what runners of nodes share, and what pages share',
  mcp: 'servers whose tools agents call, and the one that the service is',
  models: 'how models are called, and the nodes that do it',
  nodes: 'our types of nodes, and those of n8n',
  reports: 'of the audit, and those that monitoring sends on a schedule',
  secrets: 'those in graphs, and what secrets in any text look like',
  send: 'what nodes send, and those of n8n that do',
  tables: 'the data tables of a team, and how pages show lists',
}

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

const listPaths = (tree: Record<string, string[]>) =>
  Object.entries(tree).flatMap(([top, below]) => [top, ...below.map((folder) => `${top}/${folder}`)])

/** The files that are in folders of rooms: the console and the parts of a service are rooms too. */
const inFolders = [...sources, ...pages].flatMap((file) => {
  const [, room, path] = /^(api\/console|worker\/service|\w+)\/(.+)/.exec(dirname(file)) ?? []
  const isWorkers = room === 'worker' && WORKER.includes(path!)
  return path && path !== 'console' && !isWorkers ? [{ file, room: room!, path }] : []
})

test('a subject has the same folder in every room, the console included', () => {
  const found = (list: typeof inFolders) => [...new Set(list.map(({ path }) => path))].sort()
  expect(found(inFolders)).toEqual([...listPaths(SUBJECTS), ...listPaths(CONSOLE)].sort())
  const outside = inFolders.filter(({ room }) => room !== 'api/console')
  expect(listPaths(CONSOLE).filter((path) => found(outside).includes(path))).toEqual([])
  expect(Object.keys(SUBJECTS).filter((path) => !found(outside).includes(path))).toEqual([])
})

test('two folders have one name only if one word is right for both', () => {
  const paths = [...listPaths(SUBJECTS), ...listPaths(CONSOLE)]
  const named = Map.groupBy(paths, (path) => path.split('/').at(-1)!)
  const shared = [...named].filter(([, paths]) => paths.length > 1).map(([name]) => name)
  expect(shared.sort()).toEqual(Object.keys(SHARED))
})

test('a folder of one file is that of a subject which has more in another room', () => {
  const files = Map.groupBy(inFolders, ({ room, path }) => `${room}/${path}`)
  const alone = [...files].filter(([, files]) => files.length === 1).map(([, [only]]) => only!)
  const more = new Set([...files.values()].filter((files) => files.length > 1).map(([first]) => first!.path))
  expect(alone.filter(({ path }) => !more.has(path)).map(({ file }) => file)).toEqual([])
})

test('no file lies beside a folder of its own name', () => {
  const all = new Set(sources.map((file) => dirname(file)))
  expect(sources.filter((file) => all.has(file.replace(/\.ts$/, '')))).toEqual([])
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
