import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { callHook } from './calling.ts'
import {
  type Case,
  MOCK,
  MODEL_KEY,
  mapTexts,
  type N8nDocument,
  type Recording,
  readAnswers,
  readTopics,
  writeAnswers,
} from './cases.ts'
import { type Mock, startMock } from './mock.ts'
import { N8N_VERSION, type N8nProgram, prepareN8n } from './program.ts'
import { isOfSql } from './sqlstand.ts'
import { TABLE_SETUP } from './tables.ts'
import { markVarying } from './varying.ts'
import { startVendorProxy } from './vendors/proxy.ts'
import { listVendorKeys } from './vendors/vendors.ts'

const ENDED = ['success', 'error', 'crashed', 'canceled']
const END_MS = 30_000
/** How long n8n may activate nothing more while workflows are missing. */
const ACTIVE_MS = 60_000
/** How long after an answer its execution may be unknown. */
const KNOWN_MS = 3_000

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
  const proxy = await startVendorProxy(mock.url)
  const n8n = await prepareN8n(databaseUrl, proxy.env)
  const database = new pg.Client({ connectionString: n8n.databaseUrl })
  try {
    const sql = cases.some(({ name }) => isOfSql(name)) ? (await mock.openSql()).keys : []
    const vendors = [...listVendorKeys(mock.url, mock.mailPort), ...sql]
    n8n.importKeys([
      { id: MODEL_KEY, name: 'Model', type: 'openAiApi', data: { apiKey: 'key', url: `${mock.url}/v1` } },
      ...vendors.map(({ id, type, theirs }) => ({ id, name: id, type, data: theirs })),
    ])
    n8n.importAll([TABLE_SETUP, ...cases.flatMap((one) => listDocuments(one, mock.url))])
    await database.connect()
    await database.query(PUBLISH)
    await n8n.start(() => fetchOk(`${n8n.url}/healthz/readiness`))
    const inactive = await untilActive(database, cases)
    if (inactive.length > 0) throw new Error(`n8n does not activate ${inactive.join(', ')}`)
    if (cases.some(({ name }) => name.startsWith('tables-'))) await makeTheirTable(n8n)
    const rounds: Map<string, Recording[]>[] = []
    const { port } = new URL(n8n.url)
    const hook = 'hook.test'
    const texts = { [`127.0.0.1:${port}`]: hook, [`localhost:${port}`]: hook, [mock.url]: MOCK }
    for (let round = 0; round < 2; round++) {
      const recordings = new Map<string, Recording[]>()
      for (const one of cases) {
        recordings.set(one.name, await recordCase({ n8n, mock, database }, one, texts))
      }
      rounds.push(recordings)
      console.error(`[n8n] round ${round + 1} of 2`)
    }
    const answers = readAnswers()
    for (const { name } of cases) {
      const [first, second] = rounds.map((round) => round.get(name) ?? [])
      answers.set(name, { name, calls: markVarying(first, second) as Recording[] })
    }
    for (const { name, cases } of topics) {
      const known = cases.flatMap((one) => answers.get(one.name) ?? [])
      if (known.length > 0) writeAnswers(name, N8N_VERSION, known)
    }
    console.error(`[n8n] ${cases.length} cases recorded`)
  } finally {
    await database.end().catch(() => {})
    await n8n.stop()
    proxy.stop()
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

/** Its webhook may be there a moment after the others. */
async function makeTheirTable({ url }: N8nProgram): Promise<void> {
  const since = Date.now()
  for (;;) {
    const response = await fetch(`${url}/webhook/${TABLE_SETUP.id}`, { method: 'POST' })
    if (response.ok) return
    if (Date.now() - since > END_MS) throw new Error(`n8n makes no table: ${await response.text()}`)
    await sleep(500)
  }
}

async function fetchOk(url: string): Promise<void> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${url} responded with ${response.status}: ${await response.text()}`)
}

/** Makes n8n activate all workflows when it starts, which takes a second for each in its editor. */
const PUBLISH = 'update workflow_entity set active = true, "activeVersionId" = "versionId"'
const LISTENING = 'select distinct "workflowId" as name from webhook_entity'

/** Waits until n8n has activated the cases. Returns the names of those that it did not. */
async function untilActive(database: pg.Client, cases: Case[]): Promise<string[]> {
  let [listening, changedAt] = [new Set<string>(), Date.now()]
  for (;;) {
    const { rows } = await database.query<{ name: string }>(LISTENING)
    if (rows.length > listening.size) changedAt = Date.now()
    listening = new Set(rows.map(({ name }) => name))
    const missing = cases.filter(({ name }) => !listening.has(name)).map(({ name }) => name)
    if (missing.length === 0 || Date.now() - changedAt > ACTIVE_MS) return missing
    await sleep(250)
  }
}

async function recordCase(
  { n8n, mock, database }: { n8n: N8nProgram; mock: Mock; database: pg.Client },
  { name, calls }: Case,
  texts: Record<string, string>,
): Promise<Recording[]> {
  const recordings: Recording[] = []
  const before = (await readExecutions(database, name)).length
  // What Remove Duplicates has seen in the round before.
  await database.query('delete from processed_data where "workflowId" = $1', [name])
  if (isOfSql(name)) await (await mock.openSql()).reset(name)
  for (const [i, call] of calls.entries()) {
    const answer = await callHook(fetch, `${n8n.url}/webhook/${name}`, call)
    const execution = await untilEnded(database, name, before + i)
    const asked = mock.takeAskings(name)
    const recording: Recording = { ...answer, ...execution, ...(asked.length > 0 ? { asked } : {}) }
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
    if (!row && waited > KNOWN_MS) return { ended: 'none', nodes: {} }
    if (waited > END_MS) return { ended: row?.status ?? 'none', nodes: {} }
    await sleep(20)
  }
}

type RunData = Record<
  string,
  { data?: { main?: ({ json: unknown }[] | null)[] }; error?: { message: string } }[]
>

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
