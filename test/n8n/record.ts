import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { callHook } from './calling.ts'
import {
  type Answers,
  type Case,
  MOCK,
  mapTexts,
  type N8nDocument,
  type Recording,
  readAnswers,
  readTopics,
  writeAnswers,
} from './cases.ts'
import { startMock } from './mock.ts'
import { N8N_VERSION, type N8nProgram, prepareN8n } from './program.ts'
import { markVarying } from './varying.ts'

const OWNER = { email: 'owner@example.com', firstName: 'Ada', lastName: 'Byron', password: 'Only4Recording' }
const ENDED = ['success', 'error', 'crashed', 'canceled']
const END_MS = 30_000

/**
 * Runs cases twice on a new installation of n8n, and writes what was the same both times to `answers/`. `wanted`
 * are names of topics or cases, or their beginnings; without them all are run.
 */
export async function recordCases(databaseUrl: string, wanted: string[]): Promise<void> {
  const topics = readTopics()
  const isWanted = ({ name }: Case) => wanted.length === 0 || wanted.some((part) => name.startsWith(part))
  const cases = topics.flatMap((topic) => topic.cases.filter(isWanted))
  if (cases.length === 0) throw new Error(`There is no case whose name begins with ${wanted.join(' or ')}`)
  const mock = await startMock()
  const n8n = await prepareN8n(databaseUrl)
  try {
    n8n.importAll(cases.flatMap((one) => listDocuments(one, mock.url)))
    await n8n.start(() => fetchOk(`${n8n.url}/healthz/readiness`))
    const refused = await activateAll(n8n, cases)
    const database = new pg.Client({ connectionString: n8n.databaseUrl })
    await database.connect()
    const rounds: Map<string, Recording[]>[] = []
    const texts = { [n8n.url.replace('http://', '')]: 'hook.test', [mock.url]: MOCK }
    for (let round = 0; round < 2; round++) {
      const recordings = new Map<string, Recording[]>()
      for (const one of cases) {
        if (!refused.has(one.name)) recordings.set(one.name, await recordCase(n8n, database, one, texts))
      }
      rounds.push(recordings)
      console.error(`[n8n] round ${round + 1} of 2`)
    }
    await database.end()
    const answers = readAnswers()
    for (const { name } of cases) {
      const [first, second] = rounds.map((round) => round.get(name) ?? [])
      const why = refused.get(name)
      const calls = markVarying(first, second) as Recording[]
      answers.set(name, { name, ...(why === undefined ? {} : { refused: why }), calls })
    }
    for (const { name, cases } of topics) {
      const known = cases.flatMap((one): Answers[] => answers.get(one.name) ?? [])
      if (known.length > 0) writeAnswers(name, N8N_VERSION, known)
    }
    console.error(`[n8n] ${cases.length} cases recorded, ${refused.size} refused`)
    for (const [name, why] of refused) console.error(`[n8n] ${name}: ${why}`)
  } finally {
    await n8n.stop()
    await mock.stop()
  }
}

/** The workflows of a case, those that it executes first, with ids that no other case has. */
function listDocuments({ name, workflow, others = {} }: Case, mockUrl: string) {
  const idOf = (key: string) => `${name}-${key}`
  const change = (text: string) => text.replaceAll(MOCK, mockUrl)
  const link = (document: N8nDocument) =>
    mapTexts(document, (text) => (Object.hasOwn(others, text) ? idOf(text) : change(text)))
  return [
    ...Object.entries(others).map(([key, document]) => ({ id: idOf(key), ...link(document) })),
    { id: name, ...link(workflow) },
  ]
}

async function fetchOk(url: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  if (!response.ok) throw new Error(`${url} responded with ${response.status}: ${await response.text()}`)
  return response
}

/** Activates the workflows as the editor does. Returns why n8n refused some of them, by name. */
async function activateAll(n8n: N8nProgram, cases: Case[]): Promise<Map<string, string>> {
  const json = { 'content-type': 'application/json' }
  const setup = { method: 'POST', headers: json, body: JSON.stringify(OWNER) }
  const owner = await fetchOk(`${n8n.url}/rest/owner/setup`, setup)
  const cookie = owner.headers.getSetCookie()[0]!.split(';')[0]!
  const refused = new Map<string, string>()
  const activate = async (id: string) => {
    const path = `${n8n.url}/rest/workflows/${encodeURIComponent(id)}`
    const { data } = (await (await fetchOk(path, { headers: { cookie } })).json()) as {
      data: { versionId: string }
    }
    const body = JSON.stringify({ versionId: data.versionId })
    await fetchOk(`${path}/activate`, { method: 'POST', headers: { ...json, cookie }, body })
  }
  for (const { name, others = {} } of cases) {
    try {
      for (const key of Object.keys(others)) await activate(`${name}-${key}`)
      await activate(name)
    } catch (error) {
      refused.set(name, error instanceof Error ? error.message : String(error))
    }
  }
  return refused
}

async function recordCase(
  n8n: N8nProgram,
  database: pg.Client,
  { name, calls }: Case,
  texts: Record<string, string>,
): Promise<Recording[]> {
  const recordings: Recording[] = []
  const before = (await readExecutions(database, name)).length
  for (const [i, call] of calls.entries()) {
    const answer = await callHook(fetch, `${n8n.url}/webhook/${name}`, call)
    const execution = await untilEnded(database, name, before + i)
    const recording: Recording = { ...answer, ...execution }
    const plain = (text: string) =>
      Object.entries(texts).reduce((changed, [from, to]) => changed.replaceAll(from, to), text)
    recordings.push(mapTexts(recording, plain))
  }
  return recordings
}

type ExecutionRow = { status: string; data: string }

const readExecutions = async (database: pg.Client, workflowId: string) =>
  (
    await database.query<ExecutionRow>(
      'select e.status, d.data from execution_entity e left join execution_data d on d."executionId" = e.id ' +
        'where e."workflowId" = $1 order by e.id',
      [workflowId],
    )
  ).rows

/** The execution at that place, as soon as it has ended. A call that starts none has `ended: 'none'`. */
async function untilEnded(
  database: pg.Client,
  workflowId: string,
  place: number,
): Promise<Pick<Recording, 'ended' | 'error' | 'nodes'>> {
  const since = Date.now()
  for (;;) {
    const row = (await readExecutions(database, workflowId))[place]
    if (row && ENDED.includes(row.status) && row.data) return readExecution(row)
    const waited = Date.now() - since
    if (!row && waited > 3_000) return { ended: 'none', nodes: {} }
    if (waited > END_MS) return { ended: row?.status ?? 'none', nodes: {} }
    await sleep(20)
  }
}

type RunData = Record<string, { data?: { main?: ({ json: unknown }[] | null)[] }; error?: { message: string } }[]>

function readExecution({ status, data }: ExecutionRow): Pick<Recording, 'ended' | 'error' | 'nodes'> {
  const { resultData } = unfold(data) as { resultData: { runData: RunData; error?: { message: string } } }
  const nodes = Object.entries(resultData.runData).map(([name, runs]) => [
    name,
    runs.map(({ data }) => (data?.main ?? []).map((items) => (items ?? []).map(({ json }) => json))),
  ])
  const error = resultData.error?.message
  return { ended: status, ...(error === undefined ? {} : { error }), nodes: Object.fromEntries(nodes) }
}

/** Reads n8n's form of stored data: a list of values in which each text inside of a value is the place of another. */
function unfold(text: string): unknown {
  const list = JSON.parse(text) as unknown[]
  const done = new Map<number, unknown>()
  const read = (place: number): unknown => {
    if (done.has(place)) return done.get(place)
    const value = list[place]
    if (typeof value !== 'object' || value === null) return value
    const made: Record<string, unknown> | unknown[] = Array.isArray(value) ? [] : {}
    done.set(place, made)
    for (const [key, inner] of Object.entries(value))
      Object.assign(made, { [key]: typeof inner === 'string' ? read(Number(inner)) : inner })
    return made
  }
  return read(0)
}
