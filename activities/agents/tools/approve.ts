import { runApproval } from '../../nodes/approval.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import { readAgentConfig } from '../config.ts'

/** How much of the arguments the approvers are shown. */
const MAX_SHOWN = 4_000

/** The result of asking for an approval: it was given, an approver may still decide, or the call is not made. */
export type Permission = { approved: true } | { pause: { until: number | null } } | { refusal: unknown }

/** Asks the agent's approvers whether a call of a tool may be made, or looks what they have decided. */
export async function askApprovers(
  context: NodeContext,
  call: { name: string; arguments: Record<string, unknown> },
): Promise<Permission> {
  const { approvers, approvalTimeoutMs } = readAgentConfig(context)
  const given = JSON.stringify(call.arguments, null, 2)
  const shown = given.length > MAX_SHOWN ? `${given.slice(0, MAX_SHOWN)}...` : given
  const { pause, output } = await runApproval({
    ...context,
    // What the model wrote is a value, and never a template.
    bindings: { ...context.bindings, args: { message: `The agent wants to call ${call.name}: ${shown}` } },
    config: {
      message: '{{ $args.message }}',
      ...(approvers === undefined ? {} : { approvers }),
      ...(approvalTimeoutMs === undefined ? {} : { timeoutMs: approvalTimeoutMs }),
    },
  })
  if (pause) return { pause }
  const { approved, timedOut, comment } = output as Record<string, unknown>
  if (approved) return { approved: true }
  if (timedOut) return { refusal: { error: 'nobody has decided in time whether this may be called' } }
  return { refusal: { error: 'denied', comment } }
}
