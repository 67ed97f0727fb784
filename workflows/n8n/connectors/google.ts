import type { Fields } from '../ai/asking.ts'
import type { SourceNode } from '../document.ts'
import type { MapperTools } from '../mapper.ts'
import type { MappedNode } from '../parts.ts'
import { mapAction, type ServiceAction } from './action.ts'

/** What an action of Google does to be what n8n's node is. */
export type GoogleAction = ServiceAction & {
  /** The connector, if it is not the one that is named for the service. */
  connector?: string
  /** n8n puts out its item as it came. */
  passes?: boolean
  /** The item gets the file that the action answers, by this name. */
  file?: unknown
  /** The items that it works on are first made of those that come. */
  feeder?: { type: string; config: Fields }
}

/** A CONNECTOR for a node of Google, which signs in with `oauth` or with a service account. */
export function mapGoogle(
  node: SourceNode,
  tools: MapperTools,
  { connector: own, oauth }: { connector: string; oauth: string },
  { connector = own, passes, file, feeder, ...action }: GoogleAction,
): MappedNode {
  const credential = node.parameters.authentication === 'serviceAccount' ? 'googleApi' : oauth
  const mapped = mapAction(node, tools, { connector, credential }, action)
  const more = { ...(passes ? { output: 'input' } : {}), ...(file === undefined ? {} : { file }) }
  return { ...mapped, config: { ...mapped.config, ...more }, ...(feeder ? { feeder } : {}) }
}
