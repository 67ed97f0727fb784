import { randomBytes } from 'node:crypto'
import { listCredentials, replaceCredential } from '../../workflows/graph/credentials.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import { listMoved, replaceSecret } from '../../workflows/graph/secrets.ts'
import { getOwn } from '../../workflows/json.ts'
import { UNNAMED_CREDENTIAL } from '../../workflows/n8n/ai/asking.ts'
import type { ImportProblem } from '../../workflows/n8n/report.ts'
import { joinPath } from '../../workflows/problem.ts'
import { findCredentialProblems } from '../credentials/references.ts'
import type { Store } from '../scope.ts'

/**
 * Imported nodes with the credentials of this team: `credentials` maps ids of the document to those that replace them.
 * A credential that is not of the team, or that does not fit its node, is left out, as `dropped` says. In its place a
 * trigger gets a random secret, so that it lets no call in: `madeUp` has the paths of these.
 */
export async function placeCredentials(
  store: Store,
  { teamId, credentials = {} }: { teamId: string; credentials?: Record<string, string> | undefined },
  imported: GraphNode[],
): Promise<{ nodes: GraphNode[]; dropped: ImportProblem[]; madeUp: string[] }> {
  const nodes = imported.map((node) =>
    listCredentials(node).reduce(
      (placed, { id, path }) => replaceCredential(placed, path, getOwn(credentials, id) ?? id),
      node,
    ),
  )
  const dropped: ImportProblem[] = []
  const madeUp: string[] = []
  for (const { at, key, path, message, id, ofRequest } of await findCredentialProblems(store, teamId, {
    nodes,
  })) {
    // That is for the author to mend, as in any other graph.
    if (ofRequest) continue
    const node = nodes[at]!
    const secret = listMoved(node).find(({ beside }) => beside.join() === key.join())
    const bare = replaceCredential(node, key, undefined)
    nodes[at] = secret ? replaceSecret(bare, secret.path, randomBytes(24).toString('base64url')) : bare
    if (secret) madeUp.push(secret.path.reduce<string>(joinPath, `nodes[${at}].config`))
    // The conversion has said that one is needed.
    if (id === UNNAMED_CREDENTIAL) continue
    dropped.push({
      node: node.name,
      path,
      kind: 'credential',
      message: `The credential ${message}, so it was left out: name its replacement in "credentials", or set it on the node.`,
      original: id,
    })
  }
  return { nodes, dropped, madeUp }
}
