import { withoutFiles } from '../../workflows/itemfiles.ts'
import type { ImportProblem, ImportReport } from '../../workflows/n8n/report.ts'
import { ENDED, type ExecutionBody } from '../support/client.ts'
import { leadToMock } from '../support/connectors/keepers.ts'
import { until } from '../support/until.ts'
import { callHook } from './calling.ts'
import {
  type Answers,
  type Case,
  MOCK,
  MODEL_KEY,
  mapTexts,
  type N8nDocument,
  type Recording,
} from './cases.ts'
import type { Mock } from './mock.ts'
import { isOfSql } from './sqlstand.ts'
import { makeTable } from './tables.ts'
import { findDifference } from './varying.ts'
import { listVendorKeys, type VendorKey } from './vendors/vendors.ts'

/** A running Perdure. `send` takes a path. */
export type Host = {
  teamId: string
  ask<T>(method: 'GET' | 'POST' | 'PUT', path: string, json?: unknown): Promise<T>
  send(path: string, init: RequestInit): Promise<Response>
}

/** What came of a call here, as far as it can be held against a recording. */
type Answered = Pick<Recording, 'status' | 'headers' | 'body'> & {
  ended: string
  error: string | null
  nodes: Record<string, unknown[]>
  asked: unknown[]
}

/**
 * What a case came to. `reported`: something differs, and the import's report names it or a refusal does. `silent`:
 * something differs, and nothing said so; if `wrong`, the execution even ended with SUCCESS.
 */
export type Verdict = {
  name: string
  verdict: 'equal' | 'reported' | 'silent'
  wrong: boolean
  /** What differs, and where: `call 0: body[1].name`. Empty if nothing does. */
  where: string
  /** The nodes inside of the workflow that put out other items than in n8n. They count only where they are seen. */
  inside: string[]
  problems: Pick<ImportProblem, 'node' | 'kind' | 'path' | 'message'>[]
  n8n: unknown
  perdure: unknown
}

const END_MS = 30_000
/** Kinds of problems that say nothing about what a workflow answers. */
const QUIET = ['note', 'pinned']

/** Imports a case over HTTP, sends its calls, and compares what comes with what n8n answered. */
async function compareCase(host: Host, mock: Mock, one: Case, recorded: Answers): Promise<Verdict> {
  const problems: ImportProblem[] = []
  const judge = (where: string, n8n: unknown, perdure: unknown, more: Partial<Verdict> = {}): Verdict => {
    const said = more.verdict ?? (problems.some(({ kind }) => !QUIET.includes(kind)) ? 'reported' : 'silent')
    const verdict = where === '' ? 'equal' : said
    const shown = problems.map(({ node, kind, path, message }) => ({ node, kind, path, message }))
    return {
      name: one.name,
      wrong: verdict === 'silent' && (perdure as Partial<Answered> | null)?.ended === 'SUCCESS',
      where,
      inside: [],
      problems: shown,
      n8n,
      perdure,
      ...more,
      verdict,
    }
  }
  let imported: { id: string; report: ImportReport }
  try {
    imported = await importCase(host, mock, one, problems)
  } catch (error) {
    const refusal = error instanceof Error ? error.message : String(error)
    return judge('the import was refused', recorded.calls[0] ?? null, refusal, { verdict: 'reported' })
  }
  const inside: string[] = []
  for (const [i, call] of one.calls.entries()) {
    const then = recorded.calls[i]
    if (!then) return judge(`call ${i} was not recorded`, null, null)
    const plain = (text: string) =>
      text
        .replaceAll(mock.url, MOCK)
        .replaceAll(/127\.0\.0\.1:\d+|\blocalhost(?::\d+)?/g, 'hook.test')
        .replaceAll(`/hooks/${imported.id}/`, '/webhook/')
    const path = `/hooks/${imported.id}/${one.name}`
    const answer = await callHook(host.send, path, call)
    const execution = await readExecution(host, imported.id, i, then.ended === 'none')
    const asked = mock.takeAskings(one.name)
    const now = mapTexts({ ...answer, asked, ...describe(execution, imported.report) }, plain)
    const where = compareCalls(then, now) ?? compareAskings(then, now) ?? findCoincidence(then, problems)
    if (where) return judge(`call ${i}: ${where}`, then, now)
    inside.push(...compareNodes(then, now))
  }
  return judge('', null, null, { inside })
}

/** Our credentials by the ids of n8n's, of each host that has them. */
const keys = new WeakMap<Host, Promise<Record<string, string>>>()

async function keepKeysFor(name: string, host: Host, mock: Mock): Promise<Record<string, string>> {
  if (/^(agents|messages|google|airtable|notion|github)-/.test(name)) return keepKeys(host, mock)
  return isOfSql(name) ? keepSqlKeys(host, mock) : {}
}

/** Our credentials for the databases. */
const sqlKeys = new WeakMap<Host, Promise<Record<string, string>>>()

function keepSqlKeys(host: Host, mock: Mock): Promise<Record<string, string>> {
  const made = sqlKeys.get(host) ?? mock.openSql().then(({ keys }) => makeAll(host, keys))
  sqlKeys.set(host, made)
  return made
}

function keepKeys(host: Host, mock: Mock): Promise<Record<string, string>> {
  const made = keys.get(host) ?? makeKeys(host, mock)
  keys.set(host, made)
  return made
}

async function makeKeys(host: Host, mock: Mock): Promise<Record<string, string>> {
  const place = { teamId: host.teamId, key: 'SUPABASE_URL', value: `${mock.url}/vendors/supabase` }
  await host.ask('POST', '/api/variables', place)
  const model = { id: MODEL_KEY, as: 'OPENAI_COMPATIBLE', ours: { baseUrl: `${mock.url}/v1`, apiKey: 'key' } }
  return makeAll(host, [model, ...listVendorKeys(mock.url, mock.mailPort)])
}

async function makeAll(
  host: Host,
  keys: Pick<VendorKey, 'id' | 'as' | 'ours'>[],
): Promise<Record<string, string>> {
  const made: Record<string, string> = {}
  for (const { id, as, ours } of keys) {
    const json = { teamId: host.teamId, name: `${id} of the cases`, type: as, data: ours }
    made[id] = (await host.ask<{ id: string }>('POST', '/api/credentials', json)).id
  }
  return made
}

/** The hosts that have the table of the cases. */
const tables = new WeakMap<Host, Promise<void>>()

function keepTable(host: Host): Promise<void> {
  const made = tables.get(host) ?? makeTable(host.teamId, (json) => host.ask('POST', '/api/tables', json))
  tables.set(host, made)
  return made
}

/** Creates and activates the workflow of a case; its problems are added to the list. Throws if it is refused. */
async function importCase(host: Host, mock: Mock, one: Case, problems: ImportProblem[]) {
  const { teamId } = host
  const workflows: Record<string, string> = {}
  if (one.name.startsWith('tables-')) await keepTable(host)
  if (isOfSql(one.name)) await (await mock.openSql()).reset(one.name)
  const load = async (document: N8nDocument) => {
    const workflow = mapTexts(document, (text) => text.replaceAll(MOCK, mock.url))
    const path = '/api/workflows/import'
    const credentials = await keepKeysFor(one.name, host, mock)
    const json = { teamId, workflow, workflows, credentials }
    const imported = await host.ask<{ id: string; report: ImportReport }>('POST', path, json)
    problems.push(...imported.report.problems)
    return imported
  }
  for (const [key, document] of Object.entries(one.others ?? {})) {
    const { id } = await load(document)
    workflows[key] = id
  }
  const imported = await load(one.workflow)
  await leadToMock(host, imported.id, mock.url)
  await host.ask('PUT', `/api/workflows/${imported.id}`, { active: true })
  return imported
}

/** The execution that the call at that place has started, when it has ended; undefined if there is none. */
async function readExecution(
  host: Host,
  workflowId: string,
  place: number,
  mayBeNone: boolean,
): Promise<ExecutionBody | undefined> {
  type Page = { content: { id: string; createdAt: string }[] }
  const list = async () => {
    const { content } = await host.ask<Page>('GET', `/api/executions?workflowId=${workflowId}`)
    return content.map(({ id }) => id)
  }
  const ids = await list()
  // The newest one comes first. A call that was refused has none, so later calls have an earlier place.
  const id = ids[Math.max(0, ids.length - 1 - place)]
  if (!id || (mayBeNone && ids.length <= place)) return undefined
  return until(() => host.ask<ExecutionBody>('GET', `/api/executions/${id}`), {
    holds: ({ status }) => ENDED.includes(status),
    withinMs: END_MS,
  })
}

/** Items as the recordings have them, which is without their files. */
function showItems(items: unknown): unknown {
  return Array.isArray(items) ? items.map(withoutFiles) : items
}

function describe(execution: ExecutionBody | undefined, report: ImportReport) {
  const items = (id: string) => {
    const outputs = execution?.nodeExecutions.flatMap(({ nodeId, outputData }) =>
      nodeId === id && outputData ? [showItems(outputData.items)] : [],
    )
    return outputs?.length && outputs.every(Array.isArray) ? outputs.flat() : undefined
  }
  const nodes = report.mapped.flatMap(({ node, id }) => {
    const found = items(id)
    return found ? [[node, found] as const] : []
  })
  return {
    ended: execution?.status ?? 'none',
    error: execution?.errorMessage ?? null,
    nodes: Object.fromEntries(nodes),
  }
}

/** What differs between two answers. Where n8n answers that the workflow failed, only that is compared. */
function compareCalls(then: Recording, now: Answered): string | undefined {
  if (then.ended === 'error' && then.status >= 500) {
    return now.ended === 'FAILED' ? undefined : 'n8n fails'
  }
  if (then.ended === 'success' && now.ended === 'FAILED') return 'Perdure fails'
  // Of n8n's own refusals only counts that it refuses.
  if (then.status >= 400 && isRefusal(then.body))
    return now.status >= 400 ? undefined : `status ${now.status} instead of ${then.status}`
  if (then.status !== now.status) return `status ${now.status} instead of ${then.status}`
  for (const [name, value] of Object.entries(then.headers)) {
    if (name === 'content-type' && then.body === '') continue
    if (now.headers[name]?.toLowerCase() !== value.toLowerCase()) return `header ${name}`
  }
  const where = findDifference(then.body, now.body)
  return where === undefined ? undefined : `body ${where}`
}

/** What the model was asked otherwise than by n8n. */
function compareAskings({ asked = [] }: Recording, now: Answered): string | undefined {
  const where = findDifference(asked, now.asked)
  return where === undefined ? undefined : `the model was asked ${where}`
}

/** Both fail, but this here perhaps for another reason: because something was not imported. */
function findCoincidence(then: Recording, problems: ImportProblem[]): string | undefined {
  const isLeftOut = ({ kind }: ImportProblem) => kind === 'node' || kind === 'expression'
  return then.ended === 'error' && problems.some(isLeftOut)
    ? 'both fail, here by what was left out'
    : undefined
}

const isRefusal = (body: unknown) => Object(body).stacktrace !== undefined

/** The nodes whose items, in any order, are others than in n8n. Nodes that put out no items here are left out. */
function compareNodes(then: Recording, now: Answered): string[] {
  const sorted = (items: unknown[]) => items.map(sortKeys).sort()
  return Object.entries(now.nodes).flatMap(([name, items]) => {
    const known = then.nodes[name]?.flat(2)
    if (!known || JSON.stringify(known).includes('$varies')) return []
    return sorted(known).join('\n') === sorted(items).join('\n') ? [] : [name]
  })
}

function sortKeys(value: unknown): string {
  return JSON.stringify(value, (_key, inner) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

/** Compares all cases that have recorded answers, `width` at a time. */
export async function compareAll(
  host: Host,
  mock: Mock,
  cases: Case[],
  answers: Map<string, Answers>,
  width = 6,
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  const left = cases.entries()
  const work = async () => {
    for (const [i, one] of left) {
      const recorded = answers.get(one.name)
      if (recorded) verdicts[i] = await compareCase(host, mock, one, recorded)
    }
  }
  await Promise.all(Array.from({ length: width }, work))
  return verdicts.filter(Boolean)
}
