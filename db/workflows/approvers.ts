import { sql } from 'kysely'
import { listAddresses, replaceAddresses } from '../../workflows/graph/approvers.ts'
import { type Graph, type GraphNode, languageOf } from '../../workflows/graph/graph.ts'
import { getOwn } from '../../workflows/json.ts'
import { hasConfirmed } from '../people/proof.ts'
import type { Store } from '../scope.ts'

/**
 * The ids of the users whom the addresses of a version's approvers meant when it was saved, by address in lower case:
 * an address may get another owner later. Null if the version names no approver by address, or if a process of the
 * release before saved it.
 */
export type ApproverIds = Record<string, string>

/** Finds the members of the team who have confirmed the addresses that a graph's approvers name. */
export async function bindApprovers(store: Store, teamId: string, graph: Graph): Promise<ApproverIds | null> {
  const addresses = graph.nodes.flatMap(listAddresses).map((address) => address.toLowerCase())
  if (addresses.length === 0) return null
  const rows = await store.db
    .selectFrom('members as m')
    .innerJoin('users as u', 'u.id', 'm.userId')
    .select(['u.id', 'u.email'])
    .where('m.teamId', '=', teamId)
    .where(sql<boolean>`lower(u.email) = any(${addresses}::text[])`)
    .where(hasConfirmed(store))
    .execute()
  return Object.fromEntries(rows.map(({ id, email }) => [email.toLowerCase(), id]))
}

/** Returns what shows nodes with the present addresses of the approvers who are still members of the team. */
export async function presentApprovers(
  store: Store,
  teamId: string,
  ids: ApproverIds | null,
): Promise<(node: GraphNode) => GraphNode> {
  const bound = Object.values(ids ?? {})
  if (bound.length === 0) return (node) => node
  const rows = await store.db
    .selectFrom('members as m')
    .innerJoin('users as u', 'u.id', 'm.userId')
    .select(['u.id', 'u.email'])
    .where('m.teamId', '=', teamId)
    .where(sql<boolean>`u.id = any(${bound}::uuid[])`)
    .execute()
  const emails = new Map(rows.map(({ id, email }) => [id, email]))
  const present = (address: string) => {
    const email = emails.get(findApprover(ids, address) ?? '')
    return email && email.toLowerCase() !== address.toLowerCase() ? email : address
  }
  return (node) => replaceAddresses(node, present)
}

/** The graph as text, in which a person is the same whatever address they are named by. */
export function identifyGraph(graph: Graph, ids: ApproverIds | null): string {
  const identify = (address: string) => findApprover(ids, address) ?? address
  const nodes = graph.nodes.map((node) => replaceAddresses(node, identify))
  return JSON.stringify({ nodes, edges: graph.edges, ...languageOf(graph) })
}

/** The id of the user whom an address meant. */
export function findApprover(ids: ApproverIds | null, address: string): string | undefined {
  return getOwn(ids ?? {}, address.toLowerCase())
}
