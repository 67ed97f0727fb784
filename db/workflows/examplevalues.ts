import type { GraphNode } from '../../workflows/graph/graph.ts'
import { isObject } from '../../workflows/json.ts'
import { nodeType } from '../../workflows/nodes/nodes.ts'
import { type Problem, quoteShort } from '../../workflows/problem.ts'
import { listWithheld } from '../executions/starts/webhooks.ts'
import { invalid } from '../fault.ts'
import { resealRows } from '../operation/reseal.ts'
import type { Store } from '../scope.ts'
import { type Keys, seal, unseal } from '../seal.ts'

/** How large what an example holds may be, as JSON. */
export const MAX_EXAMPLE_BYTES = 256 * 1024

export const EXAMPLE_KINDS = ['REQUEST', 'DATA'] as const
export type ExampleKind = (typeof EXAMPLE_KINDS)[number]

/** What an execution can be started with: a call of a webhook, or the output of any trigger. One of them is there. */
export type ExampleValue = {
  request?: Record<string, unknown> | undefined
  data?: Record<string, unknown> | undefined
}

/** The same as it is sealed: `text` is JSON. */
export type WrittenExample = { kind: ExampleKind; text: Buffer }

type ExamplePlace = { workflowId: string; id: string }

const PURPOSE = 'workflow example'
const WEBHOOK = 'WEBHOOK_TRIGGER'

/**
 * Checks a value against the nodes that a workflow has, and leaves out headers that say who calls. Throws INVALID with all
 * that is wrong with it.
 */
export function writeExample(
  nodes: GraphNode[],
  trigger: string,
  { request, data }: ExampleValue,
): WrittenExample {
  const path = request ? 'request' : 'data'
  const triggers = nodes.filter(({ type }) => nodeType(type)?.kind === 'trigger')
  const chosen = triggers.filter(({ id }) => id === trigger)
  const hooks = chosen.filter(({ type }) => type === WEBHOOK)
  const problems: Problem[] = []
  if (chosen.length === 0) {
    const ids = [...new Set(triggers.map(({ id }) => quoteShort(id)))]
    const advice = ids.length > 0 ? `its triggers are ${ids.join(', ')}` : 'it has none'
    problems.push({ path: 'trigger', message: `is not a trigger of the workflow; ${advice}` })
  } else if (request && hooks.length === 0) {
    const message = `is for a ${WEBHOOK}, and ${quoteShort(trigger)} is a ${chosen[0]!.type}: give \`data\` instead`
    problems.push({ path, message })
  }
  const text = Buffer.from(JSON.stringify(request ? leaveOut(request, hooks) : data))
  if (text.length > MAX_EXAMPLE_BYTES) {
    const message = `must have at most ${MAX_EXAMPLE_BYTES} bytes as JSON, and has ${text.length}`
    problems.push({ path, message })
  }
  if (problems.length > 0) throw invalid(problems)
  return { kind: request ? 'REQUEST' : 'DATA', text }
}

export function readExampleText({ kind, text }: WrittenExample): ExampleValue {
  const value = JSON.parse(text.toString()) as Record<string, unknown>
  return kind === 'REQUEST' ? { request: value } : { data: value }
}

export function sealExample(keys: Keys, place: ExamplePlace, text: Buffer): Buffer {
  return seal(keys, PURPOSE, nameExample(place), text)
}

/** The JSON of an example; undefined if the key is missing that it was sealed with. */
export function tryOpenExample(keys: Keys, row: ExamplePlace & { sealed: Buffer }): Buffer | undefined {
  try {
    return unseal(keys, PURPOSE, nameExample(row), row.sealed)
  } catch {
    return undefined
  }
}

/** Seals every example with the current key anew. Resolves to how many were, as resealRows does. */
export function rotateExamples(store: Store): Promise<number> {
  const { keys } = store
  type Row = ExamplePlace & { sealed: Buffer }
  return resealRows<Row>(store, 'workflow_examples', (row) =>
    sealExample(keys, row, unseal(keys, PURPOSE, nameExample(row), row.sealed)),
  )
}

function nameExample({ workflowId, id }: ExamplePlace): string {
  return `${workflowId}|${id}`
}

/** The request without the headers that these webhooks withhold, which no execution gets. */
function leaveOut(request: Record<string, unknown>, hooks: GraphNode[]): Record<string, unknown> {
  if (!isObject(request.headers)) return request
  const withheld = new Set(hooks.flatMap((node) => [...listWithheld(node)]))
  const kept = Object.entries(request.headers).filter(([name]) => !withheld.has(name.toLowerCase()))
  return { ...request, headers: Object.fromEntries(kept) }
}
