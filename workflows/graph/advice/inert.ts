import { nodeType } from '../../nodes/nodes.ts'
import type { Problem } from '../../problem.ts'
import type { GraphNode } from '../graph.ts'

/** Warnings about the keys of a node, at `path`, that do nothing where they stand. */
export function findInertKeys(node: GraphNode, path: string, configPath: string): Problem[] {
  const type = nodeType(node.type)
  if (!type) return []
  const found: Problem[] = []
  const warn = (at: string, message: string) => found.push({ path: at, message: `does nothing: ${message}` })
  if (type.kind === 'trigger') {
    if (node.retry !== undefined) warn(`${path}.retry`, 'a trigger is not tried again')
    if (node.timeoutMs !== undefined) warn(`${path}.timeoutMs`, 'a trigger takes no time')
    if (node.onError !== 'FAIL') warn(`${path}.onError`, 'a trigger does not fail')
  }
  if (type.kind === 'wait' && node.retry !== undefined) warn(`${path}.retry`, 'a wait is not tried again')
  if (node.type === 'NO_OP') {
    if (node.retry !== undefined) warn(`${path}.retry`, 'a NO_OP does not fail')
    if (node.onError !== 'FAIL') warn(`${path}.onError`, 'a NO_OP does not fail')
  }
  if (found.length === 0 && node.retry !== undefined) {
    const attempts = node.retry.maxAttempts ?? type.retry.maxAttempts
    if (attempts === 1) {
      const given =
        node.retry.maxAttempts === undefined ? 'unless maxAttempts is set too, there is' : 'there is'
      warn(`${path}.retry`, `${given} only one attempt`)
    }
  }
  const { config } = node
  if (node.type === 'APPROVAL' && config.timeoutMs === undefined && config.onTimeout !== 'timeout') {
    warn(`${configPath}.onTimeout`, 'without timeoutMs an approval waits for as long as it takes')
  }
  return found
}
