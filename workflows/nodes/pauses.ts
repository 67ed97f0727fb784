import * as v from 'valibot'
import { formSchema } from '../graph/form.ts'
import { described } from '../object.ts'
import {
  anyObject,
  computed,
  durationField,
  nameField,
  nodeTypeRow,
  oneOf,
  textField,
  wholeNumber,
} from './fields.ts'

const APPROVER_ROLES = ['OPERATOR', 'BUILDER', 'ADMIN'] as const

const APPROVER = `must be ${APPROVER_ROLES.join(', ')} or an e-mail address`

/** Who may decide: a role and the roles above it, or one person by e-mail address. */
const approverField = v.union(
  [v.picklist(APPROVER_ROLES), v.pipe(v.string(), v.maxLength(320, APPROVER), v.rfcEmail(APPROVER))],
  APPROVER,
)
export const approversField = v.pipe(
  v.array(approverField, 'must be an array'),
  v.maxLength(100, 'must have at most 100 entries'),
)
export const approvalCountField = wholeNumber(1, 20)

/** How long a pause waits, in milliseconds. */
export const waitLimitField = v.pipe(durationField, v.minValue(1, 'must be at least 1'))
export const workflowIdField = v.pipe(
  v.string('must be a string'),
  v.regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, "must be a workflow's id"),
)
const flag = v.boolean('must be true or false')

/** Node types that wait for something outside the run: a person, an event, another execution. */
export const PAUSE_NODES = {
  APPROVAL: nodeTypeRow('pause', {
    summary:
      'Waits until approvers (roles or e-mail addresses; by default OPERATOR and above) approve or reject, ' +
      'or until the time is up; outputs its input with {decision, approved, comment, form, decidedBy, ' +
      'decidedAt, decisions}.',
    config: v.object(
      described(
        {
          approvers: v.optional(
            computed(
              v.pipe(
                v.array(computed(approverField), 'must be an array'),
                v.maxLength(100, 'must have at most 100 entries'),
              ),
            ),
          ),
          message: v.optional(textField),
          form: v.optional(formSchema),
          required: v.optional(computed(approvalCountField), 1),
          selfApproval: v.optional(flag, true),
          timeoutMs: v.optional(computed(waitLimitField)),
          onTimeout: v.optional(oneOf('timeout', 'approved', 'rejected'), 'timeout'),
        },
        {
          approvers: 'Who may decide: e-mails of members, or roles. Without any: every OPERATOR.',
          message: 'What is asked.',
          form: 'What to fill in, as a JSON Schema.',
          required: 'How many must approve. One rejection is enough.',
          selfApproval: 'Whether the one who started the execution may decide.',
          timeoutMs: 'How long it waits, in milliseconds. Without it for ever.',
          onTimeout:
            'What happens when the time is up: it leaves by timeout, or counts as approved or rejected.',
        },
      ),
    ),
    main: ['message', 'approvers', 'required', 'form', 'timeoutMs', 'onTimeout'],
    handles: () => ['approved', 'rejected', 'timeout'],
  }),
  WAIT_FOR_EVENT: nodeTypeRow('pause', {
    summary:
      'Waits for POST /api/executions/:id/events/:name, or for a request to its one-time URL, which is ' +
      '$execution.resumeUrls.<node id>; outputs what was sent.',
    config: v.object(
      described(
        { name: computed(nameField), timeoutMs: v.optional(computed(waitLimitField)) },
        {
          name: 'The name by which the event is sent.',
          timeoutMs: 'How long it waits, in milliseconds, before it leaves by timeout. Without it for ever.',
        },
      ),
    ),
    main: ['name', 'timeoutMs'],
    handles: () => [null, 'timeout'],
  }),
  SUB_WORKFLOW: nodeTypeRow('pause', {
    summary:
      'Executes another workflow of the team from its SUB_WORKFLOW_TRIGGER and outputs its result, or, ' +
      "without waiting, {executionId}. If no input is given, the node's own input is passed on.",
    config: v.object(
      described(
        {
          workflowId: computed(workflowIdField),
          input: v.optional(computed(anyObject)),
          itemInput: v.optional(anyObject),
          passOn: v.optional(flag),
          wait: v.optional(computed(flag), true),
        },
        {
          workflowId: 'The workflow that is executed.',
          input: 'What its trigger outputs. Without it what comes into the node.',
          itemInput: 'What it gets for each item of this node, as {items}.',
          passOn: 'The node outputs its own items. For one that does not wait.',
          wait: 'Waits, and outputs what that execution outputs. Off: outputs {executionId} at once.',
        },
      ),
    ),
    main: ['workflowId', 'input', 'wait'],
  }),
} as const
