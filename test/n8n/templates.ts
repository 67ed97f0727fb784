import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ImportReport } from '../../workflows/n8n/report.ts'
import type { Host } from './compare.ts'

const FILE = fileURLToPath(new URL('../../.perdure/n8n/templates.json', import.meta.url))
const SHOWN = 15
const WIDTH = 4

type Counted = {
  file: string
  nodes: number
  refused?: string
  /** The types in n8n of the nodes that became placeholders. */
  stopped: string[]
  problems: string[]
}

/**
 * Imports collections of n8n workflows, without creating any, and prints how many have no stopped node, and how many
 * have nothing reported. `paths` are JSON files, or folders with such files at any depth; a file has one workflow,
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
  console.table({
    all: count(() => true),
    refused: count((one) => !isImported(one)),
    'without a stopped node': count((one) => isImported(one) && one.stopped.length === 0),
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

async function countOne(host: Host, file: string, workflow: object): Promise<Counted> {
  const { nodes } = workflow as { nodes: unknown[] }
  const json = { teamId: host.teamId, name: 'A template', workflow }
  try {
    const { report } = await host.ask<{ report: ImportReport }>(
      'POST',
      '/api/workflows/import?dryRun=true',
      json,
    )
    const stopped = report.mapped.filter(
      ({ as, type }) => as === 'STOP_AND_ERROR' && !type.endsWith('.stopAndError'),
    )
    return {
      file,
      nodes: nodes.length,
      stopped: stopped.map(({ type }) => type),
      problems: report.problems.map(({ kind, message }) => `${kind}: ${message}`),
    }
  } catch (error) {
    const refused = error instanceof Error ? error.message : String(error)
    return { file, nodes: nodes.length, refused, stopped: [], problems: [] }
  }
}

function printMost(title: string, entries: string[]): void {
  const counts = Object.entries(Object.groupBy(entries, (entry) => entry))
  const most = counts.sort(([, a], [, b]) => b!.length - a!.length).slice(0, SHOWN)
  console.log(`${title}:`)
  for (const [entry, same] of most)
    console.log(`  ${String(same!.length).padStart(5)}  ${entry.slice(0, 160)}`)
}
