import * as v from 'valibot'
import { PLAYBOOK_ALERTS, PLAYBOOK_SEVERITIES } from '../../../db/monitoring/playbooks/playbooks.ts'
import { PLAYBOOK_RUN_STATUSES } from '../../../db/monitoring/playbooks/runs.ts'
import { objectField, trimmedString, uuidField } from '../../http/fields.ts'
import { idSchema, pageSchema, timeSchema } from '../../http/responses.ts'

const MOST_STEPS = 20
const MOST_WORKFLOWS = 100
const MAX_INPUT_BYTES = 16_384

const types = `must be one of ${PLAYBOOK_ALERTS.join(', ')}`
const severities = `must be one of ${PLAYBOOK_SEVERITIES.join(', ')}`

const conditions = v.object(
  {
    alertTypes: v.pipe(
      v.optional(
        v.pipe(
          v.array(v.picklist(PLAYBOOK_ALERTS, types), 'must be an array'),
          v.maxLength(PLAYBOOK_ALERTS.length, `must have at most ${PLAYBOOK_ALERTS.length} entries`),
        ),
      ),
      v.description('Alerts of these types. Not given: of all; empty: no alerts'),
    ),
    minSeverity: v.optional(v.picklist(PLAYBOOK_SEVERITIES, severities)),
    evaluations: v.pipe(
      v.optional(v.boolean('must be true or false')),
      v.description('Evaluations that scored too low, too. Not given: false'),
    ),
    workflowIds: v.pipe(
      v.optional(
        v.nullable(
          v.pipe(
            v.array(uuidField, 'must be an array'),
            v.maxLength(MOST_WORKFLOWS, `must have at most ${MOST_WORKFLOWS} entries`),
          ),
        ),
      ),
      v.description(
        'Only what is about these workflows. Null, or not given: all, and what is about the team',
      ),
    ),
  },
  'must be an object',
)

const input = v.pipe(
  objectField,
  v.check(
    (value) => Buffer.byteLength(JSON.stringify(value)) <= MAX_INPUT_BYTES,
    `must have at most ${MAX_INPUT_BYTES} bytes as JSON`,
  ),
)

const step = v.variant(
  'type',
  [
    v.object({ type: v.literal('NOTIFY'), channelId: uuidField }),
    v.object({
      type: v.literal('START_WORKFLOW'),
      workflowId: uuidField,
      input: v.pipe(v.optional(input), v.description('What it is started with, besides `notice`')),
    }),
    v.object({
      type: v.literal('DEACTIVATE_WORKFLOW'),
      workflowId: v.pipe(
        v.optional(uuidField),
        v.description('Not given: the workflow that the alert or the evaluation is about'),
      ),
    }),
  ],
  'must have a type: NOTIFY, START_WORKFLOW or DEACTIVATE_WORKFLOW',
)

const steps = v.pipe(
  v.array(step, 'must be an array'),
  v.minLength(1, 'must have at least one step'),
  v.maxLength(MOST_STEPS, `must have at most ${MOST_STEPS} steps`),
)

const enabled = v.boolean('must be true or false')

export const PlaybookBody = v.object({
  name: trimmedString(100),
  enabled: v.pipe(v.optional(enabled), v.description('Not given: true')),
  on: v.pipe(v.optional(conditions), v.description('All of it must hold. Not given: every alert')),
  steps,
})

export const PlaybookPatchBody = v.object({
  name: v.optional(trimmedString(100)),
  enabled: v.optional(enabled),
  on: v.optional(conditions),
  steps: v.optional(steps),
})

export const PlaybookSchema = v.pipe(
  v.object({
    id: idSchema,
    teamId: idSchema,
    name: v.string(),
    enabled: v.boolean(),
    on: v.object({
      alertTypes: v.array(v.picklist(PLAYBOOK_ALERTS)),
      minSeverity: v.picklist(PLAYBOOK_SEVERITIES),
      evaluations: v.boolean(),
      workflowIds: v.nullable(v.array(idSchema)),
    }),
    steps: v.array(
      v.object({
        type: v.picklist(['NOTIFY', 'START_WORKFLOW', 'DEACTIVATE_WORKFLOW']),
        channelId: v.optional(idSchema),
        workflowId: v.optional(idSchema),
        input: v.optional(v.record(v.string(), v.unknown())),
      }),
    ),
    createdAt: timeSchema,
    updatedAt: timeSchema,
  }),
  v.title('Playbook'),
)

const RunSchema = v.pipe(
  v.object({
    id: idSchema,
    playbookId: idSchema,
    noticeId: idSchema,
    workflowId: v.nullable(idSchema),
    title: v.pipe(v.string(), v.description('Of what it ran for')),
    status: v.picklist(PLAYBOOK_RUN_STATUSES),
    reason: v.pipe(v.nullable(v.string()), v.description('Why it was skipped or stopped')),
    steps: v.array(
      v.object({
        type: v.picklist(['NOTIFY', 'START_WORKFLOW', 'DEACTIVATE_WORKFLOW']),
        outcome: v.nullable(
          v.object({
            status: v.picklist(['DONE', 'FAILED']),
            message: v.string(),
            executionId: v.optional(idSchema),
            endedAt: timeSchema,
          }),
        ),
      }),
    ),
    createdAt: timeSchema,
    endedAt: v.nullable(timeSchema),
  }),
  v.title('PlaybookRun'),
)

export const PlaybookRunPage = pageSchema('PlaybookRunPage', RunSchema)
