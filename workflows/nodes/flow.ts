import * as v from 'valibot'
import { object } from '../object.ts'
import { EXHAUSTED } from '../walk.ts'
import { computed, condition, conditionAt, duration, items, name, node, text } from './fields.ts'

const INSTANT = 'must be an ISO 8601 time'

/** What decides where a run goes, and when. */
export const FLOW = {
  IF_ELSE: node('pure', {
    summary: 'Passes its input on by the handle true or false.',
    config: v.object({ condition }),
    handles: () => ['true', 'false'],
    conditions: (config) => conditionAt('condition', config.condition),
  }),
  SWITCH: node('pure', {
    summary: 'Passes its input on by the handle of the first case that holds, else by default.',
    config: v.object({
      cases: v.pipe(
        v.array(object({ handle: name, condition }), 'must be an array'),
        v.maxLength(100, 'must hold at most 100 cases'),
        v.check(
          (cases) => new Set(cases.map((c) => c.handle)).size === cases.length,
          'must not name a handle twice',
        ),
        v.check(
          (cases) => !cases.some((c) => c.handle === 'default'),
          'the handle default is the last one already',
        ),
      ),
    }),
    handles: (config) => [
      ...(Array.isArray(config.cases) ? config.cases.map((c) => String(c?.handle)) : []),
      'default',
    ],
    conditions: (config) =>
      (Array.isArray(config.cases) ? config.cases : []).flatMap((c, i) =>
        conditionAt(`cases[${i}].condition`, c?.condition),
      ),
  }),
  MERGE: node('pure', {
    summary: 'Joins branches: combine merges objects in edge order, append makes one array of them.',
    config: v.object({
      mode: v.optional(v.picklist(['combine', 'append'], 'must be combine or append'), 'combine'),
    }),
  }),
  FOR_EACH: node('loop', {
    summary:
      "Runs its children once per item ($item, $index); outputs {items}, the iterations' results in order.",
    config: v.object({
      items: computed(items),
      concurrency: v.optional(
        v.pipe(
          v.number('must be a number'),
          v.integer('must be a whole number'),
          v.minValue(1, 'must be at least 1'),
          v.maxValue(64, 'must be at most 64'),
        ),
        1,
      ),
      onItemError: v.optional(v.picklist(['stop', 'collect'], 'must be stop or collect'), 'stop'),
    }),
  }),
  REPEAT: node('loop', {
    summary:
      "Runs its children until the condition holds ($input is the iteration's result); outputs the last result. Where " +
      'maxIterations ended it, it leaves by the handle exhausted, or by the main one if no edge takes that up.',
    config: v.object({
      until: condition,
      maxIterations: v.optional(
        v.pipe(
          v.number('must be a number'),
          v.integer('must be a whole number'),
          v.minValue(1, 'must be at least 1'),
          v.maxValue(100_000, 'must be at most 100000'),
        ),
        100,
      ),
    }),
    handles: () => [null, EXHAUSTED],
    conditions: (config) => conditionAt('until', config.until),
  }),
  WAIT: node('wait', {
    summary: 'Waits for a duration or until an instant, then passes its input on.',
    config: v.pipe(
      v.object({
        durationMs: v.optional(computed(duration)),
        until: v.optional(computed(v.pipe(v.string(INSTANT), v.isoTimestamp(INSTANT)))),
      }),
      v.check(
        (config) => (config.durationMs === undefined) !== (config.until === undefined),
        'must hold either durationMs or until',
      ),
    ),
  }),
  STOP_AND_ERROR: node('pure', {
    summary: 'Fails with its message.',
    config: v.object({ message: text }),
  }),
  NO_OP: node('pure', {
    summary: 'Passes its input on.',
    config: v.object({}),
  }),
} as const
