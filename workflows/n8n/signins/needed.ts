import type { CredentialUse } from '../../secrets/uses.ts'

/** One of n8n's credentials that nodes of the document need. */
export type NeededCredential = {
  /** What names it in the request of the import: its id in n8n, its name, or its type where the document has neither. */
  key: string
  id: string | null
  name: string | null
  type: string
  /** The one of ours that the request names for it. */
  credentialId: string | null
  /** The type of ours to make for it; null where we know of no such type. */
  as: string | null
  /** The types of ours that will do. Without it all with one of these uses. */
  types?: readonly string[]
  uses: readonly CredentialUse[]
  data: Record<string, string>
  enter: string
  /** The nodes that need it, by their names in n8n. */
  nodes: string[]
}

/** Which credential it is, for people: `"Our shop" (httpHeaderAuth)`. */
export function nameNeed({ name, type }: NeededCredential): string {
  return name === null ? `a credential of the type "${type}"` : `"${name}" (${type})`
}
