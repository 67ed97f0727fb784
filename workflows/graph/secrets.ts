import { getOwn, isObject } from '../json.ts'
import type { GraphNode } from './graph.ts'

/** The paths of secrets within the config, by node type. */
const SECRETS: Record<string, string[][]> = {
  WEBHOOK_TRIGGER: [
    ['secretHeader', 'value'],
    ['signature', 'secret'],
  ],
  CRYPTO: [['secret']],
}

const HIDDEN = '***'

/** A copy of the node with `***` for its secrets, for those who may not set them. */
export function hideSecrets(node: GraphNode): GraphNode {
  return pathsOf(node).reduce((shown, path) => replaceAt(shown, path, HIDDEN), node)
}

/** A copy of the node without its secrets, and the paths of these (`config.secretHeader.value`). */
export function dropSecrets(node: GraphNode): { node: GraphNode; dropped: string[] } {
  const paths = pathsOf(node)
  const rest = paths.reduce((kept, path) => replaceAt(kept, path, undefined), node)
  return { node: rest, dropped: paths.map((path) => `config.${path.join('.')}`) }
}

/**
 * Fills in a new secret wherever an imported node lacks one that its export left out. `left` has the paths of
 * the secrets that were left out (`nodes[0].config.secretHeader.value`), `filled` those that were filled in.
 */
export function fillSecrets(
  nodes: unknown[],
  left: string[],
  makeSecret: () => string,
): { nodes: unknown[]; filled: string[] } {
  const filled: string[] = []
  const whole = nodes.map((raw, i) => {
    const node = Object(raw) as GraphNode
    const missing = (getOwn(SECRETS, node.type) ?? []).filter((path) => {
      const name = `nodes[${i}].config.${path.join('.')}`
      const around = valueAt(node.config, path.slice(0, -1))
      const due = left.includes(name) && isObject(around) && valueAt(node.config, path) === undefined
      if (due) filled.push(name)
      return due
    })
    return missing.reduce((kept, path) => replaceAt(kept, path, makeSecret()), node)
  })
  return { nodes: whole, filled }
}

function pathsOf(node: GraphNode): string[][] {
  return (getOwn(SECRETS, node.type) ?? []).filter((path) => valueAt(node.config, path) !== undefined)
}

function valueAt(value: unknown, path: string[]): unknown {
  return path.reduce<unknown>((at, key) => Object(at)[key], value)
}

function replaceAt(node: GraphNode, path: string[], value: string | undefined): GraphNode {
  const place = (at: unknown, [key = '', ...rest]: string[]): Record<string, unknown> => {
    const { [key]: old, ...others } = at as Record<string, unknown>
    if (rest.length > 0) return { ...others, [key]: place(old, rest) }
    return value === undefined ? others : { ...others, [key]: value }
  }
  return { ...node, config: place(node.config, path) }
}
