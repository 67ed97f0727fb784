import { getOwn } from '../../json.ts'
import { type Fields, shapeEach } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { type MappedNode, mapAll, mapEach } from '../parts.ts'
import { reportErrors } from '../send/messenger.ts'
import { signRequest } from '../signins/requests.ts'
import { isTemplate } from '../texts.ts'

/** What an action of a connector does to be what n8n's node is. */
export type ServiceAction = {
  action: string
  input: Fields
  /** JSONata that makes n8n's items of `$item`, which is each entry of what the action answers. */
  shape?: string
  /** n8n does it once, whatever the number of items. */
  isOnce?: boolean
}

/** A CONNECTOR for a node that signs in with that type of n8n's credentials. */
export function mapAction(
  node: SourceNode,
  tools: MapperTools,
  { connector, credential }: { connector: string; credential: string },
  { action, input, shape, isOnce }: ServiceAction,
): MappedNode {
  const parameters = { authentication: 'predefinedCredentialType', nodeCredentialType: credential }
  const { headers: _, ...signedIn } = signRequest({ ...node, parameters }, tools)
  reportErrors(node, tools)
  // A field that is empty in n8n's editor is saved as an expression that gives nothing, and fails the node there as in n8n.
  const filled = Object.entries(input).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, value === '' ? '={{ "" }}' : value] as const],
  )
  const config = { connector, action, ...signedIn, input: Object.fromEntries(filled) }
  const mapped = isOnce ? mapAll('CONNECTOR', config) : mapEach('CONNECTOR', config)
  return {
    ...mapped,
    // n8n's nodes retry only if that is set.
    retry: { maxAttempts: 1 },
    ...(shape === undefined ? {} : { shaper: shapeEach(shape) }),
  }
}

/** How an operation is read: its entry, usually under `resource.operation`. Throws for one that has no action, with the way out. */
export function demandOperation<R>(
  operations: Record<string, R>,
  title: string,
  { resource, operation }: { resource: unknown; operation: unknown },
  key = `${resource}.${operation}`,
): R {
  const read = getOwn<R>(operations, key)
  if (read !== undefined) return read
  throw new Error(
    `Perdure has no "${operation}" of "${resource}" for it: use an HTTP_REQUEST with the credential of ${title}`,
  )
}

/** How many n8n reads: all, or up to a limit. */
export function readMost({ parameters }: SourceNode, usual: { all?: boolean; limit: number }): Fields {
  const { returnAll = usual.all ?? false, limit = usual.limit } = parameters
  if (isTemplate(returnAll)) throw new Error('an expression says whether it reads all')
  return returnAll === true ? {} : { limit: isTemplate(limit) ? limit : Number(limit) }
}
