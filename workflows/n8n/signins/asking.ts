import { isObject } from '../../json.ts'
import type { CredentialUse } from '../../secrets/uses.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import type { NeededCredential } from './needed.ts'
import type { SignInWay } from './ways.ts'

/**
 * Notes that a node needs a credential, and answers with what is noted: nodes that name the same one in n8n share it.
 * `type` is the one in n8n.
 */
export function needCredential(
  node: SourceNode,
  tools: MapperTools,
  { type, uses, types, data = {}, enter }: SignInWay & { type: string; uses: readonly CredentialUse[] },
): NeededCredential {
  const { id, name } = readTheirs(node, type)
  const keys = [id, name, node.name, type].filter((key) => key !== null)
  const named = keys.find((key) => tools.findCredential(key) !== undefined)
  const credentialId = named === undefined ? null : tools.findCredential(named)!
  const same = tools.needs.find(
    (one) => one.type === type && one.id === id && one.name === name && one.credentialId === credentialId,
  )
  if (same) {
    if (!same.nodes.includes(node.name)) same.nodes.push(node.name)
    return same
  }
  const need: NeededCredential = {
    ...{ key: named ?? id ?? name ?? type, id, name, type, credentialId, as: types?.[0] ?? null },
    ...{ ...(types ? { types } : {}), uses, data, enter, nodes: [node.name] },
  }
  tools.needs.push(need)
  return need
}

/** The id and the name of a node's credential in n8n, of that type or else of the only one. */
function readTheirs({ raw }: SourceNode, type: string): { id: string | null; name: string | null } {
  const all = isObject(raw.credentials) ? raw.credentials : {}
  const kept = Object.keys(all)
  const theirs = Object.hasOwn(all, type) ? all[type] : kept.length === 1 ? all[kept[0]!] : undefined
  // Old versions of n8n wrote only the name.
  const { id, name } = typeof theirs === 'string' ? { id: undefined, name: theirs } : Object(theirs)
  return { id: readLabel(id), name: readLabel(name) }
}

/** What says which credential it is: templates that are published have blanks, or expressions, in its place. */
function readLabel(label: unknown): string | null {
  const text = typeof label === 'string' || typeof label === 'number' ? String(label).trim() : ''
  return text === '' || text.includes('{{') ? null : text.slice(0, 200)
}
