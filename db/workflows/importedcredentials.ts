import { randomBytes } from 'node:crypto'
import { listCredentials, replaceCredential } from '../../workflows/graph/credentials.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import { listMoved, replaceSecret } from '../../workflows/graph/secrets.ts'
import { getOwn } from '../../workflows/json.ts'
import { UNNAMED_CREDENTIAL } from '../../workflows/n8n/ai/asking.ts'
import type { CredentialReport, ImportProblem } from '../../workflows/n8n/report.ts'
import { type NeededCredential, nameNeed } from '../../workflows/n8n/signins/needed.ts'
import { joinPath, type Path, type Problem } from '../../workflows/problem.ts'
import { listRequests } from '../../workflows/secrets/requests.ts'
import { findCredentialProblems, type ReferenceProblem } from '../credentials/references.ts'
import { CREDENTIAL_TYPE_NAMES, credentialKind } from '../credentials/types.ts'
import { invalid } from '../fault.ts'
import type { Store } from '../scope.ts'

/**
 * Imported nodes with the credentials of this team: `credentials` maps ids of the document to those that replace them.
 * A credential that is not of the team, or that does not fit its node, is left out, as `dropped` says. In its place a
 * trigger gets a random secret, so that it lets no call in: `madeUp` has the paths of these; a request is not sent
 * until it has another one. With `mends` also what a request does that does not fit its credential is left out.
 */
export async function placeCredentials(
  store: Store,
  { teamId, credentials = {} }: { teamId: string; credentials?: Record<string, string> | undefined },
  imported: GraphNode[],
  { mends }: { mends: boolean },
): Promise<{ nodes: GraphNode[]; dropped: ImportProblem[]; madeUp: string[] }> {
  const nodes = imported.map((node) =>
    listCredentials(node).reduce(
      (placed, { id, path }) => replaceCredential(placed, path, getOwn(credentials, id) ?? id),
      node,
    ),
  )
  const dropped: ImportProblem[] = []
  const madeUp: string[] = []
  for (const found of await findCredentialProblems(store, teamId, { nodes })) {
    const { at, key, path, message, id, ofRequest } = found
    // That is for the author to mend, as in any other graph.
    if (ofRequest && !mends) continue
    const node = nodes[at]!
    if (ofRequest?.includes('headers')) {
      nodes[at] = replaceSecret(node, ofRequest, undefined)
      dropped.push(describeDropped(node, found, 'parameter', `The header ${message}. It was left out.`))
      continue
    }
    const secret = listMoved(node).find(({ beside }) => beside.join() === key.join())
    const bare = demandOther(replaceCredential(node, key, undefined), key)
    nodes[at] = secret ? replaceSecret(bare, secret.path, randomBytes(24).toString('base64url')) : bare
    if (secret) madeUp.push(secret.path.reduce<string>(joinPath, `nodes[${at}].config`))
    // The conversion has said that one is needed.
    if (id === UNNAMED_CREDENTIAL) continue
    const why = ofRequest
      ? `The credential was left out, because ${path} ${message}. Set both on the node.`
      : `The credential ${message}, so it was left out: name its replacement in "credentials", or set it on the node.`
    dropped.push(describeDropped(node, found, 'credential', why))
  }
  return { nodes, dropped, madeUp }
}

function describeDropped(
  { name }: GraphNode,
  { path, id }: ReferenceProblem,
  kind: ImportProblem['kind'],
  message: string,
): ImportProblem {
  return { node: name, path, kind, message, original: id }
}

/** The node whose request, if the credential at `key` was of one, is not sent until it has another. */
function demandOther(node: GraphNode, key: Path): GraphNode {
  const request = listRequests(node).find(({ path }) => [...path, 'credentialId'].join() === key.join())
  if (!request || request.config.needsCredential !== undefined) return node
  return replaceSecret(node, [...request.path, 'needsCredential'], OTHER_CREDENTIAL)
}

const OTHER_CREDENTIAL = 'another credential than the one that the import left out'

/**
 * What the report says of the credentials that a document of n8n needs. Throws INVALID with all that the request names
 * for them and that are not of the team, or of a type that signs in otherwise.
 */
export async function checkNeeded(
  store: Store,
  teamId: string,
  needs: NeededCredential[],
): Promise<CredentialReport[]> {
  const ids = needs.flatMap(({ credentialId }) => credentialId ?? [])
  const rows =
    ids.length === 0
      ? []
      : await store.db
          .selectFrom('credentials')
          .select(['id', 'name', 'type'])
          .where('teamId', '=', teamId)
          .where('id', 'in', ids)
          .execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  const problems: Problem[] = []
  const reports = needs.map((need): CredentialReport => {
    const { types, uses, credentialId, key, id, name, type, as, data, enter, nodes } = need
    const accepts = CREDENTIAL_TYPE_NAMES.filter(
      (one) => (types ?? [one]).includes(one) && credentialKind(one).uses.some((use) => uses.includes(use)),
    )
    const found = credentialId === null ? undefined : byId.get(credentialId.toLowerCase())
    const fits = accepts.length === 0 || (accepts as string[]).includes(found?.type ?? '')
    if (credentialId !== null && !(found && fits)) {
      const message = found
        ? `must be a credential of the type ${accepts.join(', ')} for ${nameNeed(need)} of n8n; "${found.name}" is of the type ${found.type}`
        : 'must be a credential of this team'
      problems.push({ path: joinPath('credentials', key), message })
    }
    return { key, id, name, type, as, accepts, data, enter, nodes, credentialId }
  })
  if (problems.length > 0) throw invalid(problems)
  return reports
}
