import * as v from 'valibot'
import { findTimezone, parseCron } from '../cron.ts'
import { object } from '../object.ts'
import { duration, METHODS, name, node, text } from './fields.ts'
import { response, signature } from './hooks.ts'

/** What a schedule does with a firing that comes while the run of an earlier one is under way. */
export const OVERLAPS = ['skip', 'bufferOne', 'bufferAll', 'cancelOther', 'allowAll'] as const
export type Overlap = (typeof OVERLAPS)[number]

/** Firings missed while Temporal was away are made up for when they are no later than this. */
const CATCHUP_MS = 600_000

const cron = v.pipe(
  text,
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    for (const message of parseCron(dataset.value).problems) addIssue({ message })
  }),
)

/** What starts a run; the output is what it was started with. */
export const TRIGGERS = {
  MANUAL_TRIGGER: node('trigger', {
    summary: 'Starts a run by hand or over the API; its output is the data of the call.',
    config: v.object({}),
  }),
  WEBHOOK_TRIGGER: node('trigger', {
    summary:
      'Starts a run for each call of /hooks/:workflowId/:path; its output is {body, query, headers, method}.',
    config: v.object({
      path: name,
      method: v.optional(v.picklist(METHODS, `must be one of ${METHODS.join(', ')}`), 'POST'),
      secretHeader: v.optional(object({ name: text, value: text })),
      signature: v.optional(signature),
      ...response,
    }),
  }),
  SCHEDULE_TRIGGER: node('trigger', {
    summary:
      'Starts a run whenever its cron expression fits the clock of its time zone, while the workflow is active; ' +
      'its output is {scheduledAt, firedAt, cron, timezone, nodeId}.',
    config: v.object({
      cron,
      timezone: v.optional(
        v.pipe(
          text,
          v.check((name) => findTimezone(name) !== undefined, 'must be a time zone such as Europe/Berlin'),
        ),
      ),
      overlap: v.optional(v.picklist(OVERLAPS, `must be one of ${OVERLAPS.join(', ')}`), 'skip'),
      catchupWindowMs: v.optional(
        v.pipe(duration, v.minValue(10_000, 'must be at least 10000 (10 s)')),
        CATCHUP_MS,
      ),
    }),
  }),
  SUB_WORKFLOW_TRIGGER: node('trigger', {
    summary: 'Starts a run for a SUB_WORKFLOW node of another workflow; its output is the input given there.',
    config: v.object({}),
  }),
  ERROR_TRIGGER: node('trigger', {
    summary:
      'Starts a run when a run of a workflow has failed whose settings name this one as errorWorkflowId; its output ' +
      'is {execution, workflow}: the failed run with its errorMessage and failedNode.',
    config: v.object({}),
  }),
} as const
