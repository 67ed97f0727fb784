import * as v from 'valibot'
import { formSchema } from '../form.ts'
import { choice, computed, duration, name, node, record, text, whole } from './fields.ts'

export const APPROVER_ROLES = ['OPERATOR', 'BUILDER', 'ADMIN'] as const

const APPROVER = `must be ${APPROVER_ROLES.join(', ')} or an e-mail address`

/** Who may decide: a role, with those above it, or one person by e-mail address. */
export const approver = v.union(
  [v.picklist(APPROVER_ROLES), v.pipe(v.string(), v.maxLength(320, APPROVER), v.email(APPROVER))],
  APPROVER,
)
export const approvers = v.pipe(
  v.array(approver, 'must be an array'),
  v.maxLength(100, 'must hold at most 100'),
)
export const approvals = whole(1, 20)
/** How long somebody is waited for. */
export const patience = v.pipe(duration, v.minValue(1, 'must be at least 1'))
export const workflowId = v.pipe(
  v.string('must be a text'),
  v.regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, "must be a workflow's id"),
)
const flag = v.boolean('must be true or false')

/** What waits for somebody or something outside of the run. */
export const PAUSES = {
  APPROVAL: node('pause', {
    summary:
      'Waits until approvers (roles, or e-mail addresses; without any OPERATOR and up) approve or reject, or the time ' +
      'is up; outputs its input with {decision, approved, comment, form, decidedBy, decidedAt, decisions}.',
    config: v.object({
      approvers: v.optional(
        computed(
          v.pipe(v.array(computed(approver), 'must be an array'), v.maxLength(100, 'must hold at most 100')),
        ),
      ),
      message: v.optional(text),
      form: v.optional(formSchema),
      required: v.optional(computed(approvals), 1),
      selfApproval: v.optional(flag, true),
      timeoutMs: v.optional(computed(patience)),
      onTimeout: v.optional(choice('timeout', 'approved', 'rejected'), 'timeout'),
    }),
    handles: () => ['approved', 'rejected', 'timeout'],
  }),
  WAIT_FOR_EVENT: node('pause', {
    summary:
      'Waits for POST /api/executions/:id/events/:name, or for a call of its one-time URL, which is ' +
      '$execution.resumeUrls.<node id>; outputs what was sent.',
    config: v.object({ name: computed(name), timeoutMs: v.optional(computed(patience)) }),
    handles: () => [null, 'timeout'],
  }),
  SUB_WORKFLOW: node('pause', {
    summary:
      'Runs another workflow of the team from its SUB_WORKFLOW_TRIGGER and outputs what that puts out, or, without ' +
      'waiting, {executionId}. Its input is what the node gets, where none is given.',
    config: v.object({
      workflowId: computed(workflowId),
      input: v.optional(computed(record)),
      wait: v.optional(computed(flag), true),
    }),
  }),
} as const
