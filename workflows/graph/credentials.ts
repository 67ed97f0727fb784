import { nodeType } from '../nodes/nodes.ts'
import type { Path } from '../problem.ts'
import type { CredentialUse } from '../secrets/uses.ts'
import type { GraphNode } from './graph.ts'
import { replaceSecret, valueAt } from './secrets.ts'

/** A credential that a node names: where in its config, and what it must be good for. */
export type CredentialReference = { id: string; path: Path; uses: readonly CredentialUse[] }

/** The credentials that a node's config names. */
export function listCredentials({ type, config }: GraphNode): CredentialReference[] {
  const {
    credentialUses: uses = [],
    credentialPaths = [['credentialId']],
    moreCredentials,
  } = nodeType(type) ?? {}
  const own = uses.length === 0 ? [] : credentialPaths.map((path) => ({ path, uses }))
  return [...own, ...(moreCredentials?.(config) ?? [])].flatMap(({ path, uses: wanted }) => {
    const id = valueAt(config, [...path])
    return typeof id === 'string' ? [{ id: id.toLowerCase(), path: [...path], uses: wanted }] : []
  })
}

/** A copy of the node that names another credential there, or none. */
export function replaceCredential(node: GraphNode, path: Path, id: string | undefined): GraphNode {
  return replaceSecret(node, path, id)
}
