import * as v from 'valibot'
import { parseCron } from '../cron/cron.ts'
import { findTimezone } from '../cron/zones.ts'
import { described } from '../object.ts'
import {
  durationField,
  HTTP_METHODS,
  LARGE_NUMBERS,
  largeNumbersField,
  nameField,
  nodeTypeRow,
  textField,
} from './fields.ts'
import { responseFields, secretHeaderField, signatureField, webhookFilesField } from './webhooks.ts'

/** What a schedule does with a firing that is due while the execution of an earlier one goes on. */
export const OVERLAPS = ['skip', 'bufferOne', 'bufferAll', 'cancelOther', 'allowAll'] as const
export type Overlap = (typeof OVERLAPS)[number]

/** Firings that Temporal missed while it was down are made up for if they are at most this late. */
const CATCHUP_MS = 600_000

const cron = v.pipe(
  textField,
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    for (const message of parseCron(dataset.value).problems) addIssue({ message })
  }),
)

/** Node types that start an execution; the output is what the execution was started with. */
export const TRIGGER_NODES = {
  MANUAL_TRIGGER: nodeTypeRow('trigger', {
    summary: 'Starts an execution by hand or over the API; its output is the data of the request.',
    config: v.object({}),
  }),
  WEBHOOK_TRIGGER: nodeTypeRow('trigger', {
    summary:
      'Starts an execution for each request to /hooks/:workflowId/:path; its output is {body, query, ' +
      'headers, method}.',
    config: v.object(
      described(
        {
          path: nameField,
          method: v.optional(v.picklist(HTTP_METHODS, `must be one of ${HTTP_METHODS.join(', ')}`), 'POST'),
          secretHeader: v.optional(secretHeaderField),
          signature: v.optional(signatureField),
          files: v.optional(webhookFilesField),
          rawBody: v.optional(v.boolean('must be true or false')),
          largeNumbers: v.optional(largeNumbersField),
          ...responseFields,
        },
        {
          path: 'The end of the address: /hooks/<workflow>/<path>.',
          method: 'The method of the calls that it takes.',
          secretHeader: 'Only calls that have this header with its value are taken.',
          signature: 'Only calls whose body is signed with the secret are taken.',
          files: 'What callers send as files becomes files of the execution.',
          rawBody: 'The body as it was sent becomes a file, too: rawBody.',
          largeNumbers: LARGE_NUMBERS,
          responseMode:
            'What the caller gets: an answer at once, the output of the execution, or what a RESPOND_TO_WEBHOOK says.',
          responseTimeoutMs: 'How long the caller is kept waiting, in milliseconds.',
          shape: "Gives the data the shape that n8n's webhooks have.",
          respond: 'What the caller gets where no RESPOND_TO_WEBHOOK says it.',
        },
      ),
    ),
    main: ['path', 'method', 'responseMode', 'secretHeader'],
    credentialUses: ['SIGNATURE'],
    credentialPaths: [
      ['secretHeader', 'credentialId'],
      ['signature', 'credentialId'],
    ],
  }),
  SCHEDULE_TRIGGER: nodeTypeRow('trigger', {
    summary:
      'Starts an execution whenever its cron expression matches the time in its time zone, while the ' +
      'workflow is active; its output is {scheduledAt, firedAt, cron, timezone, nodeId}.',
    config: v.object(
      described(
        {
          cron,
          timezone: v.optional(
            v.pipe(
              textField,
              v.check(
                (name) => findTimezone(name) !== undefined,
                'must be a time zone such as Europe/Berlin',
              ),
            ),
          ),
          overlap: v.optional(v.picklist(OVERLAPS, `must be one of ${OVERLAPS.join(', ')}`), 'skip'),
          catchupWindowMs: v.optional(
            v.pipe(durationField, v.minValue(10_000, 'must be at least 10000 (10 s)')),
            CATCHUP_MS,
          ),
        },
        {
          cron: 'Five fields: minute, hour, day of the month, month, day of the week. 0 9 * * 1-5 is 9:00 on weekdays.',
          timezone: "Such as Europe/Berlin. Without it the workflow's, else UTC.",
          overlap: 'What is done with a firing while the execution of an earlier one goes on.',
          catchupWindowMs: 'How late a firing that was missed is still made up for, in milliseconds.',
        },
      ),
    ),
    main: ['cron', 'timezone', 'overlap'],
  }),
  CHAT_TRIGGER: nodeTypeRow('trigger', {
    summary:
      'Starts an execution for each message of a chat, while the workflow is active; its output is {message, ' +
      'sessionId, history}.',
    config: v.object({}),
  }),
  SUB_WORKFLOW_TRIGGER: nodeTypeRow('trigger', {
    summary:
      'Starts an execution for a SUB_WORKFLOW node of another workflow; its output is the input given there.',
    config: v.object({}),
  }),
  ERROR_TRIGGER: nodeTypeRow('trigger', {
    summary:
      'Starts an execution when an execution has failed and the settings of its workflow name this one as ' +
      'errorWorkflowId; its output is {execution, workflow}: the failed execution with its errorMessage and ' +
      'failedNode.',
    config: v.object({}),
  }),
} as const
