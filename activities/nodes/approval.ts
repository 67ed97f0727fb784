import * as v from 'valibot'
import { findApprovers, openPause, type Pause, readPause } from '../../db/executions/waits/pauses.ts'
import { cleanText } from '../../db/text.ts'
import { describeStrangers, isAddress } from '../../workflows/graph/approvers.ts'
import { formSchema } from '../../workflows/graph/form.ts'
import { isObject } from '../../workflows/json.ts'
import {
  approvalCountField,
  approversField as approverList,
  waitLimitField,
} from '../../workflows/nodes/pauses.ts'
import { renderKey, renderText } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeContext, NodeResult, NodeRunner } from './kit/node.ts'
import { demandPause, keepWaiting } from './kit/pauses.ts'

/** APPROVAL: asks its approvers, and waits for their decision. */
export const runApproval: NodeRunner = async (context) => {
  const { config, spot } = context
  const { approvers, approverIds } = await findPeople(context, await readApprovers(context))
  const pause = await openPause(spot.store, spot, {
    kind: 'APPROVAL',
    message: config.message === undefined ? null : cleanText(await renderText(context, 'message')),
    approvers,
    approverIds,
    form: (await renderKey(context, 'form', v.optional(formSchema))) ?? null,
    required: await renderKey(context, 'required', v.optional(approvalCountField, 1)),
    selfApproval: config.selfApproval !== false,
    timeoutMs: (await renderKey(context, 'timeoutMs', v.optional(waitLimitField))) ?? null,
  })
  return leave(context, pause)
}

/** Looks again at an APPROVAL, after a nudge or a timeout. */
export const resumeApproval: NodeRunner = async (context) =>
  leave(context, await readPause(context.spot.store, context.spot))

// An empty list lets every OPERATOR decide. An expression that finds no approvers must fail instead.
async function readApprovers(context: NodeContext): Promise<string[]> {
  const { config, bindings, evaluator } = context
  if (config.approvers === undefined) return []
  const given = await evaluator.render(config.approvers, bindings)
  const list = typeof given === 'string' && given !== '' ? [given] : given
  const parsed = v.safeParse(approverList, list)
  if (!parsed.success) throw invalidConfig('approvers', parsed.issues[0].message)
  if (parsed.output.length === 0 && typeof config.approvers === 'string') {
    throw invalidConfig('approvers', 'must not be empty')
  }
  return parsed.output
}

/** Finds the people among the approvers, whom the approval shows by their present addresses. */
async function findPeople({ config, spot }: NodeContext, approvers: string[]) {
  const given = Array.isArray(config.approvers) ? config.approvers : []
  const isWritten = (_: string, at: number) => isAddress(given[at])
  const written = approvers.filter(isWritten)
  const others = approvers.filter((approver, at) => !isWritten(approver, at))
  const computed = others.filter((approver) => approver.includes('@'))
  const found = await findApprovers(spot.store, spot.executionId, { written, computed })
  if (found.length > 0 || computed.length < others.length || approvers.length === 0) {
    const moved = found.filter(({ address, email }) => email.toLowerCase() !== address)
    const present = (approver: string, at: number) => {
      const person = moved.find(({ address }) => address === approver.toLowerCase())
      return person && isWritten(approver, at) ? person.email : approver
    }
    return { approvers: approvers.map(present), approverIds: [...new Set(found.map(({ id }) => id))] }
  }
  // An approval without any approver would wait for ever.
  const names = computed.join(', ').slice(0, 300)
  const why = [
    ...(written.length > 0 ? [describeStrangers(written)] : []),
    ...(computed.length > 0 ? [`no member of the team has confirmed ${names}`] : []),
  ]
  throw invalidConfig('approvers', `name nobody: ${why.join('; ')}`)
}

function leave({ input, config }: NodeContext, pause: Pause | undefined): NodeResult {
  const { status, decisions, leftMs } = demandPause(pause)
  if (status === 'OPEN') return keepWaiting(leftMs)
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
