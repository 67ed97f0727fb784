import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { locateN8n } from './program.ts'

const FILE = fileURLToPath(new URL('../../workflows/n8n/ai/defaultmodels.ts', import.meta.url))

type Description = { name: string; version: number | number[]; properties: object[] }
type Given = Record<string, unknown>
type Helpers = {
  getNodeParameters(
    ...given: [
      properties: object[],
      values: Given,
      defaults: boolean,
      hidden: boolean,
      node: object,
      of: object,
    ]
  ): Given
}

/** What OpenAI's node does with a model: its parameters `resource` and `operation`. */
const DOINGS: [resource: string, operation: string][] = [
  ['text', 'message'],
  ['text', 'response'],
  ['image', 'analyze'],
  ['image', 'generate'],
  ['image', 'edit'],
  ['audio', 'generate'],
  ['video', 'generate'],
]

const OLD_DOINGS: [resource: string, operation: string][] = [
  ['chat', 'complete'],
  ['text', 'complete'],
  ['text', 'edit'],
  ['text', 'moderate'],
  ['image', 'create'],
]

/** Writes the table of the models that nodes of the recorded n8n have when a workflow names none, by their versions. */
export function writeDefaults(): void {
  const root = locateN8n()
  const { NodeHelpers } = createRequire(`${root}/n8n/package.json`)('n8n-workflow') as {
    NodeHelpers: Helpers
  }
  const list = (of: string): Description[] =>
    JSON.parse(readFileSync(`${root}/${of}/dist/types/nodes.json`, 'utf8'))
  const table: Record<string, [since: number, model: string][]> = {}
  const add = (key: string, node: Description, values: Given) => {
    for (const typeVersion of [node.version].flat()) {
      const at = { typeVersion, parameters: values }
      const read = NodeHelpers.getNodeParameters(node.properties, values, true, false, at, node)
      table[key] = [...(table[key] ?? []), [typeVersion, nameModel(read)]]
    }
  }
  for (const node of list('@n8n/n8n-nodes-langchain')) {
    if (/^lm[A-Z]/.test(node.name)) add(node.name, node, {})
    if (node.name !== 'openAi') continue
    for (const [resource, operation] of DOINGS)
      add(`openAi ${resource} ${operation}`, node, { resource, operation })
  }
  for (const node of list('n8n-nodes-base').filter(({ name }) => name === 'openAi'))
    for (const [resource, operation] of OLD_DOINGS)
      add(`old openAi ${resource} ${operation}`, node, { resource, operation })
  writeFileSync(FILE, writeTable(table))
}

function nameModel({ model, modelName, modelId, chatModel, imageModel }: Given): string {
  const given = model ?? modelName ?? modelId ?? chatModel ?? imageModel ?? ''
  return String(typeof given === 'object' ? (given as Given).value : given)
}

/** One entry for each version with which the model is another one than before. */
function writeTable(table: Record<string, [since: number, model: string][]>): string {
  const rows = Object.entries(table)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, versions]) => {
      const sorted = versions.sort(([a], [b]) => a - b)
      const changes = sorted.filter(([, model], i) => model !== sorted[i - 1]?.[1])
      return [key, changes] as const
    })
    .filter(([, changes]) => changes.some(([, model]) => model !== ''))
  const lines = rows.map(([key, changes]) => {
    const name = /^\w+$/.test(key) ? key : `'${key}'`
    return `  ${name}: [${changes.map(([since, model]) => `[${since}, '${model}']`).join(', ')}],\n`
  })
  return `${HEAD}${lines.join('')}}\n`
}

const HEAD = `// Written by \`npm run n8n -- defaults\`.

/** The model of n8n's nodes if a workflow names none, from a version of the node on: '' means that there is no default. */
export const DEFAULT_MODELS: Record<string, [since: number, model: string][]> = {
`
