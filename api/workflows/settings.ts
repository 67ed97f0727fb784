import * as v from 'valibot'
import { CONCURRENCY_POLICIES } from '../../db/workflows/settings.ts'
import { findTimezone } from '../../workflows/cron/zones.ts'
import { readPathTemplate } from '../../workflows/expressions/paths.ts'
import { MAX_NOTE_SIZE, MAX_NOTE_TEXT, MAX_NOTES, NOTE_COLOURS } from '../../workflows/graph/notes.ts'
import { described, strictObject } from '../../workflows/object.ts'
import { boundedString, uuidField } from '../http/fields.ts'
import { idSchema } from '../http/responses.ts'

const DAY_MS = 86_400_000

function integerOf(what: string, min: number, max: number) {
  return v.pipe(
    v.number(`must be a number of ${what}`),
    v.integer(`must be a whole number of ${what}`),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
}

const flag = v.optional(v.boolean('must be true or false'), true)

const key = v.pipe(
  boundedString(1_000),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    try {
      readPathTemplate(dataset.value)
    } catch (error) {
      addIssue({ message: (error as Error).message })
    }
  }),
  v.examples(['{{ $trigger.body.customer }}']),
)

const concurrency = strictObject(
  described(
    {
      limit: integerOf('executions', 1, 1_000),
      key: v.optional(v.nullable(key), null),
      policy: v.optional(
        v.picklist(CONCURRENCY_POLICIES, `must be one of ${CONCURRENCY_POLICIES.join(', ')}`),
        'queue',
      ),
    },
    {
      limit: 'How many may be under way at once.',
      key: 'Executions with the same key share the limit. Its expressions can only be paths into the data that starts the execution.',
      policy:
        'What becomes of an execution that finds no place: it waits (queue), is refused (reject), or takes the place of the oldest (replace).',
    },
  ),
)

const timezone = v.pipe(
  boundedString(100),
  v.check((name) => findTimezone(name) !== undefined, 'must be a time zone such as Europe/Berlin'),
  v.examples(['Europe/Berlin']),
)

const retention = strictObject(
  described(
    {
      days: v.optional(v.nullable(integerOf('days', 1, 3_650)), null),
      count: v.optional(v.nullable(integerOf('executions', 1, 1_000_000)), null),
    },
    {
      days: 'They are removed so many days after their end.',
      count: 'They are removed once there are so many newer ones.',
    },
  ),
)

const coordinate = v.pipe(v.number('must be a number'), v.finite('must be finite'))
const extent = v.pipe(
  v.number('must be a number'),
  v.minValue(1, 'must be at least 1'),
  v.maxValue(MAX_NOTE_SIZE, `must be at most ${MAX_NOTE_SIZE}`),
)

const note = strictObject(
  described(
    {
      id: boundedString(100),
      text: boundedString(MAX_NOTE_TEXT, 0),
      position: strictObject(
        described({ x: coordinate, y: coordinate }, { x: 'From the left.', y: 'From the top.' }),
      ),
      size: strictObject(
        described({ width: extent, height: extent }, { width: 'Its width.', height: 'Its height.' }),
      ),
      colour: v.optional(v.picklist(NOTE_COLOURS, `must be one of ${NOTE_COLOURS.join(', ')}`), 'yellow'),
    },
    {
      id: 'Names the note.',
      text: 'What it says.',
      position: 'Where its upper left corner is.',
      size: 'How large it is.',
      colour: 'Its colour.',
    },
  ),
)

/** The settings of a request. Each setting that is given replaces the stored one. */
export const settingsField = strictObject(
  described(
    {
      timeoutMs: v.optional(
        v.nullable(
          v.pipe(
            v.number('must be a number of milliseconds'),
            v.integer('must be a whole number of milliseconds'),
            v.minValue(1, 'must be at least 1'),
            v.maxValue(366 * DAY_MS, 'must be at most 366 days'),
          ),
        ),
      ),
      concurrency: v.optional(v.nullable(concurrency)),
      errorWorkflowId: v.optional(v.nullable(uuidField)),
      timezone: v.optional(v.nullable(timezone)),
      retention: v.optional(v.nullable(retention)),
      saveData: v.optional(
        strictObject(
          described(
            { inputs: flag, outputs: flag },
            {
              inputs: 'The data that executions were started with is kept after their end.',
              outputs: 'The outputs of their nodes are kept after their end.',
            },
          ),
        ),
      ),
      strict: v.optional(v.boolean('must be true or false')),
      chatHistoryTokens: v.optional(integerOf('tokens', 100, 1_000_000)),
      notes: v.optional(
        v.pipe(
          v.array(note, 'must be an array'),
          v.maxLength(MAX_NOTES, `must have at most ${MAX_NOTES} notes`),
          v.check(
            (notes) => new Set(notes.map(({ id }) => id)).size === notes.length,
            'must not repeat an id',
          ),
        ),
      ),
    },
    {
      timeoutMs: 'The time limit of an execution, in milliseconds. Without it there is none.',
      concurrency: 'How many executions may be under way at once.',
      errorWorkflowId: 'The workflow that is started, at its ERROR_TRIGGER, when an execution has failed.',
      timezone: 'The time zone of schedules and dates that name none, such as Europe/Berlin. Without it UTC.',
      retention: 'When ended executions are removed. Without it all are kept.',
      saveData: 'What is kept of executions that have ended. What is not kept cannot be run again.',
      strict:
        'An expression that reads a path which does not exist fails its node, instead of leaving a warning. It is kept with the version of the graph.',
      chatHistoryTokens:
        "About how many tokens of a chat's earlier messages an execution gets; what is older is summarised.",
      notes: 'Notes on the canvas, with places in the units of the positions of nodes.',
    },
  ),
)

/** The settings that belong together, as a form shows them. */
export const SETTING_GROUPS: { title: string; keys: (keyof typeof settingsField.entries)[] }[] = [
  { title: 'Executions', keys: ['timeoutMs', 'concurrency', 'errorWorkflowId'] },
  { title: 'Time and expressions', keys: ['timezone', 'strict'] },
  { title: 'What is kept', keys: ['saveData', 'retention'] },
  { title: 'Chats', keys: ['chatHistoryTokens'] },
]

/** The notes of a stored version. */
export const notesSchema = v.array(
  v.pipe(
    v.object({
      id: v.string(),
      text: v.pipe(v.string(), v.description('Markdown')),
      position: v.object({ x: v.number(), y: v.number() }),
      size: v.object({ width: v.number(), height: v.number() }),
      colour: v.picklist(NOTE_COLOURS),
    }),
    v.title('CanvasNote'),
  ),
)

const number = v.nullable(v.number())

export const settingsSchema = v.pipe(
  v.object({
    timeoutMs: v.pipe(number, v.description('The time limit of an execution, in milliseconds')),
    concurrency: v.pipe(
      v.nullable(
        v.object({
          limit: v.number(),
          key: v.nullable(v.string()),
          policy: v.picklist(CONCURRENCY_POLICIES),
        }),
      ),
      v.description(
        'How many executions (with the same key, if a key is set) may be under way at once. At the ' +
          'limit, `policy` decides about a new one: it is queued as PENDING, refused with 409, or takes ' +
          'the place of the oldest, which is cancelled',
      ),
    ),
    errorWorkflowId: v.pipe(
      v.nullable(idSchema),
      v.description('The workflow that is started at its ERROR_TRIGGER when an execution has failed'),
    ),
    timezone: v.pipe(
      v.nullable(v.string()),
      v.description('The time zone of nodes that do not set their own'),
    ),
    retention: v.pipe(
      v.nullable(v.object({ days: number, count: number })),
      v.description(
        'When ended executions are removed: `days` after their end, or once there are `count` newer ' +
          'executions',
      ),
    ),
    saveData: v.pipe(
      v.object({ inputs: v.boolean(), outputs: v.boolean() }),
      v.description(
        'Whether the data that executions were started with (inputs) and the outputs of their nodes are ' +
          'kept after the execution has ended',
      ),
    ),
    strict: v.pipe(
      v.boolean(),
      v.description(
        'Whether an expression that reads a path which does not exist fails, instead of leaving a warning. ' +
          "Only under the rules 2 for expressions. It is kept with the graph's version: changing it makes a new one",
      ),
    ),
    chatHistoryTokens: v.pipe(
      v.number(),
      v.description(
        "About how many tokens of a chat's earlier messages an execution gets; what is older is summarised",
      ),
    ),
    notes: v.pipe(
      notesSchema,
      v.description(
        'Notes on the canvas, with places in the units of the positions of nodes. They are kept with the version: ' +
          'changing them makes a new one',
      ),
    ),
  }),
  v.title('WorkflowSettings'),
)
