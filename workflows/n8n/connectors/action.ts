import { getOwn } from '../../json.ts'
import { type Fields, shapeEach } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import { type MappedNode, mapAll, mapEach } from '../parts.ts'
import { reportErrors } from '../send/messenger.ts'
import { signRequest } from '../signins/requests.ts'
import { isTemplate, keepTexts, plainText, writeCode } from '../texts.ts'

/** What an action of a connector does to be what n8n's node is. */
export type ServiceWork = {
  /** The connector, if it is not that of the service. */
  connector?: string
  action: string
  input: Fields
  /** JSONata that makes n8n's items of `$item`, which is each entry of what the action answers. */
  shape?: string
  /** n8n does it once, whatever the number of items. */
  isOnce?: boolean
  /** n8n puts out its item as it came. */
  passes?: boolean
  /** The item gets the file that the action answers, by this name. */
  file?: unknown
  /** The items that it works on are first made of those that come. */
  feeder?: { type: string; config: Fields }
}

/** The same, of a service that is known, and n8n's type of the credential with which the node signs in. */
export type ServiceAction = ServiceWork & { connector: string; credential: string }

/** Reads what a node of a service does. Throws an Error that says why it cannot be done here. */
export type ServiceReader = (node: SourceNode, tools: MapperTools) => ServiceAction

/** How a service's own operations are read. */
export type WorkReader = (node: SourceNode, tools: MapperTools) => ServiceWork

/** The items that a node works on all at once. */
export const ITEMS = '{{ $input.items }}'

/** A CONNECTOR for the node of a service. */
export function mapAction(node: SourceNode, tools: MapperTools, service: ServiceAction): MappedNode {
  const { shape, isOnce, passes, file, feeder } = service
  reportErrors(node, tools)
  const more = { ...(passes ? { output: 'input' } : {}), ...(file === undefined ? {} : { file }) }
  const config = { ...readServiceCall(node, tools, service), ...more }
  const mapped = isOnce ? mapAll('CONNECTOR', config) : mapEach('CONNECTOR', config)
  return {
    ...mapped,
    // n8n's nodes retry only if that is set.
    retry: { maxAttempts: 1 },
    ...(shape === undefined ? {} : { shaper: shapeEach(shape) }),
    ...(feeder ? { feeder } : {}),
  }
}

/** What a CONNECTOR, or an agent's tool, says of the action and of how it signs in. */
export function readServiceCall(
  node: SourceNode,
  tools: MapperTools,
  { connector, credential, action, input }: ServiceAction,
): Fields {
  const parameters = { authentication: 'predefinedCredentialType', nodeCredentialType: credential }
  const { headers: _, ...signedIn } = signRequest({ ...node, parameters }, tools)
  // A field that is empty in n8n's editor is saved as an expression that gives nothing, and fails the node there as in n8n.
  const filled = Object.entries(input).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, value === '' ? '={{ "" }}' : value] as const],
  )
  return { connector, action, ...signedIn, input: Object.fromEntries(filled) }
}

/** The type of credential of a node of Google, which signs in with `oauth` or with a service account. */
export function readGoogleSignIn({ parameters }: SourceNode, oauth: string): string {
  return parameters.authentication === 'serviceAccount' ? 'googleApi' : oauth
}

/** How an operation is read: its entry, usually under `resource.operation`. Throws for one that has no action. */
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
  if (isTemplate(returnAll)) {
    const read = `(most => Number(most) > 0 ? Number(most) : $fail('its limit is no number'))`
    const most = isTemplate(limit) ? `${read}(${writeCode(limit)})` : String(Number(plainText(limit)))
    return { limit: `={{ (${writeCode(returnAll)}) ? null : ${most} }}` }
  }
  if (returnAll === true) return {}
  return { limit: isTemplate(limit) ? limit : Number(limit) }
}

/** A value that n8n leaves out where it is empty or false. */
export function keepFilled(value: unknown): unknown {
  return isTemplate(value) ? `={{ (${writeCode(value)}) || null }}` : keepTexts(value)
}
