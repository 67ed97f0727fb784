import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ImportReport } from '../../workflows/n8n/report.ts'
import type { Host } from './compare.ts'
import { rankFamilies, WAY_BACK } from './families.ts'

const FILE = fileURLToPath(new URL('../../.perdure/n8n/templates.json', import.meta.url))
const SHOWN = 15
const WIDTH = 4

type Counted = {
  file: string
  nodes: number
  refused?: string
  /** The types in n8n of the nodes that stop the execution, and WAY_BACK where a connection does. */
  stopped: string[]
  /** Why they did, each after its type. */
  reasons: string[]
  /** Requests that n8n signs in and that would be sent without a credential. */
  unsigned: number
  /** The credentials that have to be made or chosen, by their types in n8n. */
  credentials: string[]
  problems: string[]
}

/**
 * Imports collections of n8n workflows, without creating any, and prints how many have no stopped node, would call
 * unsigned or have nothing reported, what stops the others, and what mending each next family of that would gain. `paths` are JSON files, or folders with such files at any depth; a file has one workflow,
 * a list of them, or the form in which a template is published, with the workflow below `workflow`. The collections
 * are other people's work and stay where they are. Throws if there is no workflow.
 */
export async function countTemplates(host: Host, paths: string[]): Promise<void> {
  const found = paths.flatMap(listFiles).flatMap((file) => readWorkflows(file).map((raw) => ({ file, raw })))
  if (found.length === 0) throw new Error('Name files or folders that have n8n workflows as JSON')
  const counted: Counted[] = []
  const left = found.entries()
  const work = async () => {
    for (const [i, { file, raw }] of left) counted[i] = await countOne(host, file, raw)
  }
  await Promise.all(Array.from({ length: WIDTH }, work))
  const count = (holds: (one: Counted) => boolean) => {
    const number = counted.filter(holds).length
    return { workflows: number, '%': Math.round((number / counted.length) * 1_000) / 10 }
  }
  const isImported = ({ refused }: Counted) => refused === undefined
  const passes = (one: Counted) => isImported(one) && one.stopped.length === 0
  console.table({
    all: count(() => true),
    refused: count((one) => !isImported(one)),
    'without a stopped node': count(passes),
    'would call unsigned': count((one) => one.unsigned > 0),
    'without a stopped node, and signed in': count((one) => passes(one) && one.unsigned === 0),
    'and no credential is needed': count(
      (one) => passes(one) && one.unsigned === 0 && one.credentials.length === 0,
    ),
    'with nothing reported': count((one) => isImported(one) && one.problems.length === 0),
  })
  printMost(
    'Stopped, by type',
    counted.flatMap(({ stopped }) => [...new Set(stopped)]),
  )
  printMost(
    'The only thing that stops a workflow',
    counted.flatMap(({ stopped }) => {
      const types = [...new Set(stopped)]
      return types.length === 1 ? types : []
    }),
  )
  console.log('What stops them, by family, in the order that gains the most:')
  console.table(rankFamilies(counted.map(({ stopped }) => stopped)))
  const sum = (of: (one: Counted) => number) => counted.reduce((all, one) => all + of(one), 0)
  console.log(`Stopped nodes: ${sum(({ stopped }) => stopped.length)} of ${sum(({ nodes }) => nodes)}`)
  console.log(`Requests that would be unsigned: ${sum(({ unsigned }) => unsigned)}`)
  printMost(
    'Why nodes stop',
    counted.flatMap(({ reasons }) => [...new Set(reasons)]),
  )
  printMost(
    'Credentials that have to be made or chosen',
    counted.flatMap(({ credentials }) => [...new Set(credentials)]),
  )
  printMost(
    'Reported',
    counted.flatMap(({ problems }) => [...new Set(problems)]),
  )
  mkdirSync(dirname(FILE), { recursive: true })
  writeFileSync(FILE, `${JSON.stringify(counted, null, 1)}\n`)
  console.log(`All of them: ${FILE}`)
}

function listFiles(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path]
  const entries = readdirSync(path, { recursive: true, encoding: 'utf8' }).sort()
  return entries.filter((entry) => entry.endsWith('.json')).map((entry) => join(path, entry))
}

/** The n8n workflows in a file; none if it has other JSON, or none at all. */
function readWorkflows(file: string): object[] {
  const pick = (value: unknown): object[] => {
    if (Array.isArray(value)) return value.flatMap(pick)
    const { nodes, connections, workflow } = Object(value)
    if (Array.isArray(nodes) && typeof connections === 'object') return [value as object]
    return workflow === undefined ? [] : pick(workflow)
  }
  try {
    return pick(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    return []
  }
}

type Node = { id: string; type: string; config: Record<string, unknown> }
type Plan = { nodes: Node[]; report: ImportReport }

async function countOne(host: Host, file: string, workflow: object): Promise<Counted> {
  const { nodes } = workflow as { nodes: Source[] }
  const json = { teamId: host.teamId, name: 'A template', workflow }
  const none = { stopped: [], reasons: [], unsigned: 0, credentials: [], problems: [] }
  try {
    const plan = await host.ask<Plan>('POST', '/api/workflows/import?dryRun=true', json)
    const { mapped, problems, credentials = [] } = plan.report
    const stopped = mapped.filter(({ state }) => state === 'stopped')
    const types = new Map(mapped.map(({ node, type }) => [node, type]))
    return {
      file,
      nodes: nodes.length,
      stopped: [
        ...stopped.map(({ type }) => type),
        ...problems.flatMap(({ message }) => (STOPS.test(message) ? [WAY_BACK] : [])),
      ],
      reasons: problems
        .filter(({ kind }) => kind === 'node')
        .map(({ node, message }) => `${types.get(node ?? '')}: ${readReason(message)}`),
      unsigned: countUnsigned(nodes, plan),
      credentials: credentials.map(({ type }) => type),
      problems: problems.map(({ kind, message }) => `${kind}: ${message}`),
    }
  } catch (error) {
    const refused = error instanceof Error ? error.message : String(error)
    return { file, nodes: nodes.length, refused, ...none }
  }
}

const STOPS = /a STOP_AND_ERROR node in this place fails the execution/

/** Why a node was not imported, without the names of what it is about. */
function readReason(message: string): string {
  const why = /^(?:This node was not imported: )?(.*?)\. \w+ \w+ node in its place/s
  const [, reason = message] = why.exec(message) ?? []
  return reason.replaceAll(/"[^"]*"/g, '"..."')
}

type Source = { name?: unknown; type?: unknown; disabled?: unknown; parameters?: unknown }

/** The requests of nodes that n8n signs in and that have no credential here and need none. */
function countUnsigned(sources: Source[], { nodes, report }: Plan): number {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const signed = sources.filter(({ type, disabled, parameters }) => {
    const { authentication = 'none' } = Object(parameters)
    const isRequest = /\.(httpRequest|httpRequestTool|toolHttpRequest|mcpClientTool)$/.test(String(type))
    return isRequest && disabled !== true && !/^(=?\{\{ \$credentials\.)?none/.test(authentication)
  })
  const ids = signed.flatMap(({ name }) => report.mapped.find(({ node }) => node === name)?.id ?? [])
  return ids.filter((id) => {
    const { type, config } = byId.get(id) ?? {}
    const given = type === 'AI_AGENT' ? config?.tools : type === 'HTTP_REQUEST' ? [config] : []
    const requests = Array.isArray(given) ? given : []
    return requests.length > 0 && !requests.some((one) => one.credentialId ?? one.needsCredential)
  }).length
}

function printMost(title: string, entries: string[]): void {
  const counts = Object.entries(Object.groupBy(entries, (entry) => entry))
  const most = counts.sort(([, a], [, b]) => b!.length - a!.length).slice(0, SHOWN)
  console.log(`${title}:`)
  for (const [entry, same] of most)
    console.log(`  ${String(same!.length).padStart(5)}  ${entry.slice(0, 160)}`)
}
