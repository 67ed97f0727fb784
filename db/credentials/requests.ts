import type { GraphNode } from '../../workflows/graph/graph.ts'
import { isHostOpen, OPEN_HOST } from '../../workflows/graph/openhost.ts'
import { isObject } from '../../workflows/json.ts'
import type { Path } from '../../workflows/problem.ts'
import { listRequests } from '../../workflows/secrets/requests.ts'
import { type CredentialType, credentialKind } from './types.ts'

/** The headers in which credentials are sent, for those types whose data does not name them. */
export const CREDENTIAL_HEADERS: Partial<Record<CredentialType, readonly string[]>> = {
  OPENAI: ['authorization', 'openai-organization'],
  ANTHROPIC: ['x-api-key'],
  AZURE_OPENAI: ['api-key'],
  GOOGLE_AI: ['x-goog-api-key'],
  OPENAI_COMPATIBLE: ['authorization'],
  SLACK: ['authorization'],
  DISCORD: ['authorization'],
  HTTP_BASIC: ['authorization'],
  HTTP_BEARER: ['authorization'],
  OAUTH2: ['authorization'],
  GOOGLE_SERVICE_ACCOUNT: ['authorization'],
  NOTION: ['authorization'],
  AIRTABLE: ['authorization'],
  AWS: ['authorization', 'x-amz-date', 'x-amz-security-token'],
}

/**
 * The faults of a request that a node, or a tool of an agent, makes with the credential that is named at `key`: a host
 * that cannot be read from the config while the credential may go anywhere, and headers that both would set. Paths are
 * within the node's config.
 */
export function findRequestFaults(
  node: GraphNode,
  key: Path,
  { type, allowedHosts }: { type: CredentialType; allowedHosts: string[] | null },
): { path: Path; message: string }[] {
  const request = listRequests(node).find(
    ({ path }) => path.length === key.length - 1 && startsWith(key, path),
  )
  if (!request) return []
  const { config, path } = request
  const faults: { path: Path; message: string }[] = []
  const { data, hosts } = credentialKind(type)
  // The others have hosts of their own, or an address that they need.
  const goesAnywhere = 'allowedHosts' in data.entries && !hosts && !allowedHosts
  if (goesAnywhere && isHostOpen(config.url)) faults.push({ path: [...path, 'url'], message: OPEN_HOST })
  const headers = isObject(config.headers) ? Object.keys(config.headers) : []
  const set = CREDENTIAL_HEADERS[type] ?? []
  for (const name of headers.filter((header) => set.includes(header.toLowerCase())))
    faults.push({ path: [...path, 'headers', name], message: 'is set by the credential: leave it out' })
  return faults
}

function startsWith(path: Path, start: Path): boolean {
  return start.every((key, at) => path[at] === key)
}
