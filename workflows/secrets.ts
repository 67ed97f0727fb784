import type { GraphNode } from './graph.ts'

/** Where node types keep what not everybody may read: paths within the config. */
const SECRETS: Record<string, string[][]> = {
  WEBHOOK_TRIGGER: [
    ['secretHeader', 'value'],
    ['signature', 'secret'],
  ],
}

const HIDDEN = '***'

/** A copy of the node for those who may not set its secrets. */
export function hideSecrets(node: GraphNode): GraphNode {
  return pathsOf(node).reduce((shown, path) => replaceAt(shown, path, HIDDEN), node)
}

/** A copy without its secrets, and the paths within the config where they stood. */
export function dropSecrets(node: GraphNode): { node: GraphNode; dropped: string[] } {
  const paths = pathsOf(node)
  const rest = paths.reduce((kept, path) => replaceAt(kept, path, undefined), node)
  return { node: rest, dropped: paths.map((path) => `config.${path.join('.')}`) }
}

/** A copy with a secret nobody knows wherever one is missing, and the paths within the config of those. */
export function fillSecrets(
  node: GraphNode,
  makeSecret: () => string,
): { node: GraphNode; filled: string[] } {
  const missing = (SECRETS[node.type] ?? []).filter(
    (path) => typeof valueAt(node.config, path.slice(0, -1)) === 'object' && !valueAt(node.config, path),
  )
  const whole = missing.reduce((kept, path) => replaceAt(kept, path, makeSecret()), node)
  return { node: whole, filled: missing.map((path) => `config.${path.join('.')}`) }
}

function pathsOf(node: GraphNode): string[][] {
  return (SECRETS[node.type] ?? []).filter((path) => valueAt(node.config, path) !== undefined)
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
