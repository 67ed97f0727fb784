import type { CredentialUse } from '../../db/credentials/types.ts'
import { nodeType } from '../nodes/nodes.ts'
import type { GraphNode } from './graph.ts'
import { replaceSecret, valueAt } from './secrets.ts'

/** A credential that a node names: where in its config, and what it must be good for. */
export type CredentialReference = { id: string; path: string[]; uses: readonly CredentialUse[] }

/** The credentials that a node's config names. */
export function listCredentials({ type, config }: GraphNode): CredentialReference[] {
  const { credentialUses: uses = [], credentialPaths = [['credentialId']] } = nodeType(type) ?? {}
  if (uses.length === 0) return []
  return credentialPaths.flatMap((path) => {
    const id = valueAt(config, [...path])
    return typeof id === 'string' ? [{ id: id.toLowerCase(), path: [...path], uses }] : []
  })
}

/** A copy of the node that names another credential there, or none. */
export function replaceCredential(node: GraphNode, path: string[], id: string | undefined): GraphNode {
  return replaceSecret(node, path, id)
}
