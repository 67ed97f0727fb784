import type { Problem } from '../problem.ts'
import type { Graph, GraphNode } from './graph.ts'

/** The node types whose config has approvers. */
const ASKING = ['APPROVAL', 'AI_AGENT']

/** The e-mail addresses among the approvers of a node, but not those that expressions compute. */
export function listAddresses({ type, config }: GraphNode): string[] {
  const { approvers } = config
  return ASKING.includes(type) && Array.isArray(approvers) ? approvers.filter(isAddress) : []
}

/** A copy of the node with other values in the place of these addresses. */
export function replaceAddresses(node: GraphNode, replace: (address: string) => string): GraphNode {
  if (listAddresses(node).length === 0) return node
  const approvers = node.config.approvers as unknown[]
  const replaced = approvers.map((one) => (isAddress(one) ? replace(one) : one))
  return { ...node, config: { ...node.config, approvers: replaced } }
}

/** The nodes that cannot be decided: they name only people, none of whom is a known member. */
export function checkApprovers({ nodes }: Graph, isMember: (address: string) => boolean): Problem[] {
  return nodes.flatMap((node, at) => {
    const addresses = listAddresses(node)
    const others = Array.isArray(node.config.approvers) && node.config.approvers.length > addresses.length
    if (node.disabled || addresses.length === 0 || others || addresses.some(isMember)) return []
    const path = `nodes[${at}].config.approvers`
    return [{ path, message: `nobody could decide: ${describeStrangers(addresses)}` }]
  })
}

/** The reason why addresses in a saved graph name no member, with the remedy. */
export function describeStrangers(addresses: string[]): string {
  const names = addresses.join(', ').slice(0, 300)
  return (
    `no member of the team had confirmed ${names} when this version was saved; ` +
    'add them to the team, then save the workflow again'
  )
}

/** Whether an entry of a config's approvers is a literal e-mail address. */
export function isAddress(approver: unknown): approver is string {
  return typeof approver === 'string' && approver.includes('@') && !approver.includes('{{')
}
