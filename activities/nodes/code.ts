import { filesOf, type ItemFiles, withFiles } from '../../workflows/itemfiles.ts'
import { readCode } from '../../workflows/javascript/code.ts'
import { DEFAULT_CODE_MS, DEFAULT_MEMORY_MB } from '../../workflows/javascript/limits.ts'
import { isObject, setOwn } from '../../workflows/json.ts'
import type { NodeNotes } from '../../workflows/run/records.ts'
import { readFileValue } from '../files/files.ts'
import { guessMimeType } from '../files/types.ts'
import { NodeFailure } from './kit/failure.ts'
import { listOwnItems, readItems } from './kit/items.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'
import { type CodeStyle, nameItems, readMade, returnStaticData } from './lists/made.ts'
import { runWithStaticData, type StaticRun } from './lists/staticdata.ts'

/**
 * CODE: with mode `all` outputs what the code returns, a list as {items}; with mode `each` {items}, what it
 * returns for each item, null for nothing. What it writes with `console` is in the notes. With `style` it is code of
 * n8n's.
 */
export const runCode: NodeRunner = async (context) => {
  if (context.config.style !== undefined) return runCodeOfN8n(context)
  const { config, bindings, evaluator } = context
  const { code, mode, timeoutMs = DEFAULT_CODE_MS, memoryMb = DEFAULT_MEMORY_MB } = config as Config
  const reads = readOnce(config, code)
  const [problem] = reads.problems
  if (problem !== undefined) throw new NodeFailure(`the code, ${problem}`, { type: 'CodeFailed' })
  const items = mode === 'each' ? await findItems(context) : undefined
  const { value, console } = await evaluator.run({ text: code, reads, items, timeoutMs, memoryMb }, bindings)
  const notes: NodeNotes = console.length > 0 ? { console } : {}
  if (value === undefined) notes.warnings = [{ path: 'config.code', message: 'the code returned nothing' }]
  const output = Array.isArray(value) ? { items: value } : (value ?? null)
  return { output, ...(Object.keys(notes).length > 0 ? { notes } : {}) }
}

/** Runs code that sees what code in n8n sees, and hands over items as it does there: {json: ...}. */
const runCodeOfN8n: NodeRunner = async (context) => {
  const { staticData } = context.config as Config
  if (!staticData) return (await runOnItems(context)).result
  return runWithStaticData(context, (data) => {
    const execution = { ...context.bindings.execution, staticData: data }
    return runOnItems({ ...context, bindings: { ...context.bindings, execution } })
  })
}

/** `left` is the static data as the code has left it. */
async function runOnItems(context: NodeContext): Promise<StaticRun> {
  const { config, bindings, evaluator } = context
  const {
    code,
    mode,
    style,
    timeoutMs = DEFAULT_CODE_MS,
    memoryMb = DEFAULT_MEMORY_MB,
    staticData,
  } = config as Config
  const given = listOwnItems(context.inputs)
  const named = nameItems(code, style!, mode === 'each')
  const text = staticData ? returnStaticData(named) : named
  const reads = readCode(text)
  const [problem] = reads.problems
  if (problem !== undefined) throw new NodeFailure(`the code, ${problem}`, { type: 'CodeFailed' })
  const items = mode === 'each' ? given : undefined
  const { value: returned, console } = await evaluator
    .run({ text, reads, items, timeoutMs, memoryMb }, bindings)
    .catch((error) => Promise.reject(shortenFault(error)))
  const { value, left } = staticData ? splitReturned(returned) : { value: returned, left: undefined }
  const notes: NodeNotes = console.length > 0 ? { console } : {}
  const made = readMade(value, { each: mode === 'each', given: given.length, style: style! })
  const output = { items: await addFiles(context, made, given), from: made.map(({ from }) => from) }
  return { result: { output, ...(Object.keys(notes).length > 0 ? { notes } : {}) }, left }
}

/** What code with static data returned, for all items or for each of them; the last one has left the data. */
function splitReturned(returned: unknown): { value: unknown; left: unknown } {
  if (!Array.isArray(returned)) return { value: Object(returned).value, left: Object(returned).staticData }
  const values = returned.map((one) => Object(one).value ?? null)
  return { value: values, left: Object(returned.at(-1)).staticData }
}

/** The items with the files that code gave them: those that it has read, and new ones whose bytes it gave in base64. */
async function addFiles(
  context: NodeContext,
  made: ReturnType<typeof readMade>,
  given: unknown[],
): Promise<unknown[]> {
  const items: unknown[] = []
  for (const { item, from, binary } of made) {
    const files: ItemFiles = {}
    if (binary === 'kept') Object.assign(files, filesOf(given[Number(from)]))
    else
      for (const [name, value] of Object.entries(isObject(binary) ? binary : {}))
        setOwn(files, name, readFileValue(value) ?? (await storeMade(context, name, value)))
    items.push(isObject(item) && Object.keys(files).length > 0 ? withFiles(item, files) : item)
  }
  return items
}

const BASE64 = /^[A-Za-z0-9+/\s]*={0,2}\s*$/

async function storeMade({ files }: NodeContext, name: string, value: unknown): Promise<unknown> {
  const { data, mimeType, fileName, fileExtension } = Object(value)
  const fail = (message: string) => new NodeFailure(message, { type: 'CodeFailed' })
  if (typeof data !== 'string' || !BASE64.test(data))
    throw fail(`The file "${name}" of an item has no data in base64, and is none that the code was given`)
  if (!files) throw fail(`The code makes the file "${name}": set files, so that it can be stored`)
  const ending = typeof fileExtension === 'string' ? `.${fileExtension}` : ''
  const label = typeof fileName === 'string' && fileName !== '' ? fileName : `file${ending}`
  const type = typeof mimeType === 'string' ? mimeType : guessMimeType(label)
  return files.store({ name: label, mimeType: type }, Buffer.from(data, 'base64'))
}

/** A fault of the code in the words of n8n: `oh [line 1]`. */
function shortenFault(error: unknown): unknown {
  if (!(error instanceof NodeFailure) || error.type !== 'CodeFailed') return error
  const found = /^the code, line (\d+)(?:, column \d+)?: (?:\w*Error: )?([\s\S]*?)(?: \(item \d+\))?$/.exec(
    error.message,
  )
  if (found) error.message = `${found[2]} [line ${found[1]}]`
  return error
}

// Configs belong to a version of their workflow and never change.
const known = new WeakMap<object, ReturnType<typeof readCode>>()

function readOnce(config: object, code: string): ReturnType<typeof readCode> {
  const reads = known.get(config) ?? readCode(code)
  known.set(config, reads)
  return reads
}

type Config = {
  code: string
  mode?: 'all' | 'each'
  style?: CodeStyle
  staticData?: boolean
  timeoutMs?: number
  memoryMb?: number
}

/** The config's items; else those of the input: its `items`, the elements of a list, or the input as the only one. */
async function findItems(context: NodeContext): Promise<unknown[]> {
  const { config, input } = context
  if (config.items !== undefined) return readItems(context)
  if (Array.isArray(input)) return input
  if (isObject(input) && Array.isArray(input.items)) return input.items
  return input === null || input === undefined ? [] : [input]
}
