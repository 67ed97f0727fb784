import type { Problem } from '../../problem.ts'
import type { GraphNode } from '../graph.ts'

/** Warnings about the webhooks of an active workflow that ask their callers for nothing. */
export function findOpenWebhooks(
  nodes: readonly Pick<GraphNode, 'type' | 'config' | 'disabled'>[],
): Problem[] {
  return nodes.flatMap(({ type, config, disabled }, at) => {
    if (type !== 'WEBHOOK_TRIGGER' || disabled) return []
    if (isSet(config.secretHeader) || isSet(config.signature)) return []
    const message =
      'anybody who knows the address may call this webhook; set secretHeader or signature to say who may'
    return [{ path: `nodes[${at}].config`, message }]
  })
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}
