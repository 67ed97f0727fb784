import type { ToolOf } from '../../../workflows/nodes/tools.ts'
import { createPacer } from '../../expressions/pace.ts'
import type { ToolSpec } from '../../models/model.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { writeJson } from '../../nodes/kit/json.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import { getField } from '../../nodes/kit/paths.ts'

/** How many characters of JSON of an output the model is shown at once. */
const MAX_SHOWN = 32_000

/** The most keys of an output that is too long that are named. */
const MAX_KEYS = 200

/** What the model is told of the tool: the nodes whose outputs it may read. */
export function describeRunTool({ name, description, nodes }: ToolOf<'RUN'>): ToolSpec {
  return {
    name,
    description:
      description ??
      'Shows what nodes of this run before you have put out. Long outputs are shown in parts: give a path, or from.',
    parameters: {
      type: 'object',
      properties: {
        node: { type: 'string', enum: nodes, description: 'The id of the node' },
        path: { type: 'string', description: 'A field of the output, such as rows[0].id' },
        from: {
          type: 'integer',
          minimum: 0,
          description: 'The first character of a long output that is shown',
        },
      },
      required: ['node'],
      additionalProperties: false,
    },
  }
}

/**
 * RUN: the output of a node of this run, or a field of it: {value}. One that is too long to be shown at once comes as a
 * part of its JSON: {part, from, length, keys?}.
 */
export async function callRunTool(
  { bindings }: NodeContext,
  tool: ToolOf<'RUN'>,
  { node, path, from }: Record<string, unknown>,
): Promise<unknown> {
  const id = String(node)
  if (!tool.nodes.includes(id))
    throw new NodeFailure(`node must be one of ${tool.nodes.join(', ')}`, { type: 'InvalidInput' })
  if (!Object.hasOwn(bindings.nodes, id))
    throw new NodeFailure(`the node ${id} has not been executed in this run`, { type: 'InvalidInput' })
  const output = bindings.nodes[id]
  const value = typeof path === 'string' && path !== '' ? getField(output, path) : output
  if (value === undefined)
    throw new NodeFailure(`the output of ${id} has no ${String(path).slice(0, 200)}`, {
      type: 'InvalidInput',
    })
  const text = await writeJson(value, createPacer())
  const start = typeof from === 'number' ? from : 0
  if (text.length <= MAX_SHOWN && start === 0) return { value }
  const part = text.slice(start, start + MAX_SHOWN).toWellFormed()
  return { part, from: start, length: text.length, ...listKeys(value) }
}

function listKeys(value: unknown): { keys?: string[]; entries?: number } {
  if (Array.isArray(value)) return { entries: value.length }
  if (typeof value !== 'object' || value === null) return {}
  return { keys: Object.keys(value).slice(0, MAX_KEYS) }
}
