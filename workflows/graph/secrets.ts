import { getOwn, isObject } from '../json.ts'
import type { Path } from '../problem.ts'
import type { GraphNode } from './graph.ts'

/** The paths of secrets within the config, by node type. */
const SECRETS: Record<string, string[][]> = {
  WEBHOOK_TRIGGER: [
    ['secretHeader', 'value'],
    ['signature', 'secret'],
  ],
  FORM_TRIGGER: [['password', 'value']],
  CRYPTO: [['secret']],
}

/** The text in place of a secret, for those who may not set it, and in exports. */
export const HIDDEN = '[hidden]'

/** The paths of the node's secrets, within its config. */
export function listSecrets(node: GraphNode): string[][] {
  return (getOwn(SECRETS, node.type) ?? []).filter((path) => valueAt(node.config, path) !== undefined)
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
    return missing.reduce((kept, path) => replaceSecret(kept, path, makeSecret()), node)
  })
  return { nodes: whole, filled }
}

/** The value at a path; undefined if the path leads nowhere. */
export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (at, key) => (Object.hasOwn(Object(at), key) ? Object(at)[key] : undefined),
    value,
  )
}

/** A copy of the node with another value at a path of its config, or without it if `value` is undefined. */
export function replaceSecret(node: GraphNode, path: Path, value: string | undefined): GraphNode {
  const place = (at: unknown, [key = '', ...rest]: Path): unknown => {
    if (Array.isArray(at)) return at.map((entry, i) => (i === key ? place(entry, rest) : entry))
    const { [key]: old, ...others } = at as Record<string, unknown>
    if (rest.length > 0) return { ...others, [key]: place(old, rest) }
    return value === undefined ? others : { ...others, [key]: value }
  }
  return { ...node, config: place(node.config, path) as GraphNode['config'] }
}

/** A copy of the node that names a credential in the place of the secret at a path of its config. */
export function moveSecret(node: GraphNode, path: string[], credentialId: string | undefined): GraphNode {
  const beside = [...path.slice(0, -1), 'credentialId']
  return replaceSecret(replaceSecret(node, path, undefined), beside, credentialId)
}

/** The paths of the node's secrets that are in credentials; the credential's id is at `credentialId` beside each. */
export function listMoved(node: GraphNode): { path: string[]; beside: string[] }[] {
  return (getOwn(SECRETS, node.type) ?? [])
    .map((path) => ({ path, beside: [...path.slice(0, -1), 'credentialId'] }))
    .filter(({ beside }) => typeof valueAt(node.config, beside) === 'string')
}
