import { joinPath, type Problem } from '../../problem.ts'
import { listRequests } from '../../secrets/requests.ts'
import type { GraphNode } from '../graph.ts'

/** Warnings about the requests of a node that need a credential and name none: they are never sent. */
export function findUnsigned(node: GraphNode, configPath: string): Problem[] {
  return listRequests(node).flatMap(({ config, path }) => {
    const { credentialId, needsCredential } = config
    if (credentialId !== undefined || typeof needsCredential !== 'string') return []
    const at = [...path, 'credentialId'].reduce<string>(joinPath, configPath)
    return [{ path: at, message: `must be set before the request can be sent: it needs ${needsCredential}` }]
  })
}
