import { type Fields, shapeEach } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { type MappedNode, mapAll, mapEach } from '../parts.ts'
import { reportErrors } from '../send/messenger.ts'
import { signRequest } from '../signins/requests.ts'

/** What an action of a connector does to be what n8n's node is. */
export type MappedAction = {
  action: string
  /** The connector, if it is not the one that is named for the service. */
  connector?: string
  input: Fields
  /** JSONata that makes n8n's items of `$item`, which is each entry of what the action answers. */
  shape?: string
  /** n8n puts out its item as it came. */
  passes?: boolean
  /** It works once on all items. `feeder`: which are first made of those that come. */
  all?: boolean
  feeder?: { type: string; config: Fields }
}

/** A CONNECTOR for a node of Google, which signs in with `oauth` or with a service account. */
export function mapGoogle(
  node: SourceNode,
  tools: MapperTools,
  { connector: own, oauth }: { connector: string; oauth: string },
  { action, connector = own, input, shape, passes, all, feeder }: MappedAction,
): MappedNode {
  const { authentication = 'oAuth2' } = node.parameters
  const nodeCredentialType = authentication === 'serviceAccount' ? 'googleApi' : oauth
  const parameters = { authentication: 'predefinedCredentialType', nodeCredentialType }
  const { headers: _, ...signedIn } = signRequest({ ...node, parameters }, tools)
  reportErrors(node, tools)
  const filled = Object.entries(input).filter(([, value]) => value !== undefined)
  const config = {
    ...{ connector, action, ...signedIn, input: Object.fromEntries(filled) },
    ...(passes ? { output: 'input' } : {}),
  }
  return {
    ...(all ? mapAll('CONNECTOR', config) : mapEach('CONNECTOR', config)),
    // n8n's nodes retry only if that is set.
    retry: { maxAttempts: 1 },
    ...(feeder ? { feeder } : {}),
    ...(shape === undefined ? {} : { shaper: shapeEach(shape) }),
  }
}

/** What stops, with the way out. */
export function refuseAction(title: string, resource: unknown, operation: unknown): never {
  throw new Error(
    `Perdure has no "${String(operation)}" of "${String(resource)}" for it: use an HTTP_REQUEST with the credential of ${title}`,
  )
}

/** A value that must be there to be saved: one that is empty in n8n's editor fails the node. */
export const demandValue = (value: unknown): unknown => (value === '' || value === null ? '={{ "" }}' : value)
