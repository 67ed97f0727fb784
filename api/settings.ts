import * as v from 'valibot'
import { findTimezone } from '../workflows/cron.ts'
import { object } from '../workflows/object.ts'
import { readPathTemplate } from '../workflows/paths.ts'
import { text, uuid } from './accept.ts'
import { id } from './answers.ts'

const DAY_MS = 86_400_000

const POLICIES = ['queue', 'reject', 'replace'] as const

function whole(what: string, min: number, max: number) {
  return v.pipe(
    v.number(`must be a number of ${what}`),
    v.integer(`must be a whole number of ${what}`),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
}

const flag = v.optional(v.boolean('must be true or false'), true)

const key = v.pipe(
  text(1_000),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    try {
      readPathTemplate(dataset.value)
    } catch (error) {
      addIssue({ message: (error as Error).message })
    }
  }),
  v.description('Runs count by it. Its expressions are paths into what starts the run'),
  v.examples(['{{ $trigger.body.customer }}']),
)

const concurrency = object({
  limit: whole('runs', 1, 1_000),
  key: v.optional(v.nullable(key), null),
  policy: v.optional(v.picklist(POLICIES, `must be one of ${POLICIES.join(', ')}`), 'queue'),
})

const timezone = v.pipe(
  text(100),
  v.check((name) => findTimezone(name) !== undefined, 'must be a time zone such as Europe/Berlin'),
  v.examples(['Europe/Berlin']),
)

const retention = object({
  days: v.optional(v.nullable(whole('days', 1, 3_650)), null),
  count: v.optional(v.nullable(whole('runs', 1, 1_000_000)), null),
})

/** What is given replaces what stands, setting by setting. */
export const settings = object({
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
  errorWorkflowId: v.optional(v.nullable(uuid)),
  timezone: v.optional(v.nullable(timezone)),
  retention: v.optional(v.nullable(retention)),
  saveData: v.optional(object({ inputs: flag, outputs: flag })),
})

const number = v.nullable(v.number())

export const settingsShown = v.pipe(
  v.object({
    timeoutMs: v.pipe(number, v.description('The time limit of a run')),
    concurrency: v.pipe(
      v.nullable(v.object({ limit: v.number(), key: v.nullable(v.string()), policy: v.picklist(POLICIES) })),
      v.description(
        'How many runs (of one key, where there is one) may be under way. One that finds no place is queued as ' +
          'PENDING, refused with 409, or takes the place of the oldest, which is cancelled',
      ),
    ),
    errorWorkflowId: v.pipe(
      v.nullable(id),
      v.description('The workflow that starts at its ERROR_TRIGGER when a run has failed'),
    ),
    timezone: v.pipe(v.nullable(v.string()), v.description('For nodes that name none')),
    retention: v.pipe(
      v.nullable(v.object({ days: number, count: number })),
      v.description('Runs that ended so many days ago are removed, and those behind so many younger ones'),
    ),
    saveData: v.pipe(
      v.object({ inputs: v.boolean(), outputs: v.boolean() }),
      v.description(
        'Whether what runs were started with and what their nodes put out is kept beyond their end',
      ),
    ),
  }),
  v.title('WorkflowSettings'),
)
