import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** An n8n workflow as its editor exports it. Nodes may leave out what the editor does not need to import it. */
export type N8nDocument = {
  name: string
  nodes: { name: string; type: string; parameters: Record<string, unknown> }[]
  connections: Record<string, unknown>
  settings: Record<string, unknown>
}

/** A request to the workflow's webhook. `body` is sent as JSON, `text` as it is, with the type that `headers` give. */
export type HookCall = {
  method: string
  query?: string
  headers?: Record<string, string>
  body?: unknown
  text?: string
}

/**
 * A small workflow that a webhook starts, whose path is the case's name, and the requests to it. `others` are the
 * workflows that it executes, by the ids by which it names them. `http://mock.test` stands for the mock server.
 */
export type Case = {
  name: string
  about: string
  calls: HookCall[]
  workflow: N8nDocument
  others?: Record<string, N8nDocument>
}
export type Topic = { name: string; about: string; cases: Case[] }

/**
 * What happened for a call. `body` is the parsed JSON, or the text of another type; `status` is 0 if no answer came.
 * `nodes` has the items that each node put out: by its runs, then by its outputs.
 */
export type Recording = {
  status: number
  headers: Record<string, string>
  body: unknown
  ended: string
  error?: string
  nodes: Record<string, unknown[][][]>
  /** What the model was asked, if there is one. */
  asked?: unknown[]
}
/** The recordings of a case by its calls. */
export type Answers = { name: string; calls: Recording[] }

export const MOCK = 'http://mock.test'

/** The credential of the model, by its id in the workflows. */
export const MODEL_KEY = 'agents-openai-key'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const readJson = (path: string) => JSON.parse(readFileSync(at(path), 'utf8'))
const listTopics = (folder: string) => readdirSync(at(folder)).sort()

/** All cases, by topic in the order of the files' names. */
export function readTopics(): Topic[] {
  return listTopics('workflows').map((file) => ({
    name: file.replace(/\.json$/, ''),
    ...readJson(`workflows/${file}`),
  }))
}

/** The recorded answers of n8n by the names of the cases. */
export function readAnswers(): Map<string, Answers> {
  const all = listTopics('answers').flatMap((file) => readJson(`answers/${file}`).answers as Answers[])
  return new Map(all.map((answers) => [answers.name, answers]))
}

/** Writes a topic's answers, one node to a line, so that a change makes a small diff. */
export function writeAnswers(topic: string, version: string, answers: Answers[]): void {
  const one = JSON.stringify
  const lines = answers.flatMap(({ name, calls }, i) => [
    `    { "name": ${one(name)}, "calls": [`,
    ...calls.flatMap(({ nodes, ...call }, j) => [
      `      { ${one(call).slice(1, -1)},`,
      '        "nodes": {',
      ...Object.entries(nodes)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(
          ([node, runs], k, all) => `          ${one(node)}: ${one(runs)}${k < all.length - 1 ? ',' : ''}`,
        ),
      `        } }${j < calls.length - 1 ? ',' : ''}`,
    ]),
    `    ] }${i < answers.length - 1 ? ',' : ''}`,
  ])
  const text = `{\n  "n8n": ${one(version)},\n  "answers": [\n${lines.join('\n')}\n  ]\n}\n`
  writeFileSync(at(`answers/${topic}.json`), text)
}

/** The value with every text in it replaced by `change`. */
export function mapTexts<T>(value: T, change: (text: string) => string): T {
  if (typeof value === 'string') return change(value) as T
  if (Array.isArray(value)) return value.map((entry) => mapTexts(entry, change)) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [change(key), mapTexts(inner, change)]),
  ) as T
}
