import * as v from 'valibot'
import { findMembers, openPause, type Pause, readPause } from '../../db/pauses.ts'
import { cleanText } from '../../db/text.ts'
import { formSchema } from '../../workflows/form.ts'
import { isObject } from '../../workflows/inputs.ts'
import { approvals, approvers as approverList, patience } from '../../workflows/nodes/pauses.ts'
import { readKey, readText } from './config.ts'
import { invalidConfig, NodeFailure } from './failure.ts'
import type { NodeContext, NodeResult, NodeRunner } from './node.ts'

/** APPROVAL: asks, and waits for a decision. */
export const runApproval: NodeRunner = async (context) => {
  const { config, spot } = context
  const approvers = await readApprovers(context)
  const pause = await openPause(spot.store, spot, {
    kind: 'APPROVAL',
    message: config.message === undefined ? null : cleanText(await readText(context, 'message')),
    approvers,
    approverIds: await findApprovers(context, approvers),
    form: (await readKey(context, 'form', v.optional(formSchema))) ?? null,
    required: await readKey(context, 'required', v.optional(approvals, 1)),
    selfApproval: config.selfApproval !== false,
    timeoutMs: (await readKey(context, 'timeoutMs', v.optional(patience))) ?? null,
  })
  return leave(context, pause)
}

/** APPROVAL that was nudged, or whose time is up. */
export const resumeApproval: NodeRunner = async (context) =>
  leave(context, await readPause(context.spot.store, context.spot))

// What was to name the approvers and is nothing must not let everybody decide.
async function readApprovers(context: NodeContext): Promise<string[]> {
  const { config, bindings, evaluator } = context
  if (config.approvers === undefined) return []
  const given = await evaluator.render(config.approvers, bindings)
  const list = typeof given === 'string' && given !== '' ? [given] : given
  const parsed = v.safeParse(approverList, list)
  if (!parsed.success) throw invalidConfig('approvers', parsed.issues[0].message)
  if (parsed.output.length === 0 && typeof config.approvers === 'string') {
    throw invalidConfig('approvers', 'is nothing')
  }
  return parsed.output
}

// Whom nobody can approve for would wait for ever.
async function findApprovers({ spot }: NodeContext, approvers: string[]): Promise<string[]> {
  const emails = approvers.filter((approver) => approver.includes('@'))
  const ids = await findMembers(spot.store, spot.executionId, emails)
  if (ids.length > 0 || emails.length < approvers.length || approvers.length === 0) return ids
  throw invalidConfig('approvers', `are no members of the team: ${emails.join(', ').slice(0, 300)}`)
}

function leave({ input, config }: NodeContext, pause: Pause | undefined): NodeResult {
  const { status, decisions, leftMs } = demandPause(pause)
  if (status === 'OPEN') return waitOn(leftMs)
  const timedOut = status === 'EXPIRED'
  const decision = timedOut ? String(config.onTimeout ?? 'timeout') : status.toLowerCase()
  const last = timedOut ? undefined : decisions.at(-1)
  const facts = {
    decision,
    approved: decision === 'approved',
    timedOut,
    comment: last?.comment ?? null,
    form: last?.form ?? null,
    decidedBy: last?.by ?? null,
    decidedAt: last?.at ?? null,
    decisions,
  }
  return { output: { ...(isObject(input) ? input : { value: input }), ...facts }, handle: decision }
}

/** The pause behind a node; a run that has ended has none open. */
export function demandPause(pause: Pause | undefined): Pause {
  if (pause && pause.status !== 'ABANDONED') return pause
  throw new NodeFailure('The run had ended before anything came', { type: 'Abandoned' })
}

export function waitOn(leftMs: number | null): NodeResult {
  return { pause: { until: leftMs === null ? null : Date.now() + Math.ceil(leftMs) } }
}
