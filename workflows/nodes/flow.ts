import * as v from 'valibot'
import { strictObject } from '../object.ts'
import { EXHAUSTED } from '../run/walk.ts'
import { conditionsField, eitherCondition } from './conditions.ts'
import {
  computed,
  conditionAt,
  conditionField,
  durationField,
  itemsField,
  nameField,
  nodeTypeRow,
  textField,
  wholeNumber,
} from './fields.ts'
import { mergeConfig } from './merge.ts'

const switchCase = v.pipe(
  strictObject({
    handle: nameField,
    condition: v.optional(conditionField),
    conditions: v.optional(conditionsField),
  }),
  eitherCondition(),
)

/** What a STOP_AND_ERROR stands for that an import could not take over. */
const replacedField = strictObject({
  type: v.string('must be a string'),
  version: v.number('must be a number'),
  parameters: v.string('must be a string'),
})

const INSTANT = 'must be an ISO 8601 time'

/** Node types that decide where an execution goes on, and when. */
export const FLOW_NODES = {
  IF_ELSE: nodeTypeRow('pure', {
    summary: 'Passes its input on by the handle true or false.',
    config: v.pipe(
      v.object({ condition: v.optional(conditionField), conditions: v.optional(conditionsField) }),
      eitherCondition(),
    ),
    handles: () => ['true', 'false'],
    conditions: (config) => conditionAt('condition', config.condition),
  }),
  SWITCH: nodeTypeRow('pure', {
    summary: 'Passes its input on by the handle of the first case that holds, else by default.',
    config: v.object({
      cases: v.pipe(
        v.array(switchCase, 'must be an array'),
        v.maxLength(100, 'must have at most 100 cases'),
        v.check(
          (cases) =>
            new Set(cases.map((c) => `${c.handle} ${c.conditions ? cases.indexOf(c) : ''}`)).size ===
            cases.length,
          'must not name a handle twice',
        ),
        v.check(
          (cases) => !cases.some((c) => c.handle === 'default'),
          'must not name the handle default, which every SWITCH has already',
        ),
      ),
      all: v.optional(v.boolean('must be true or false')),
      choose: v.optional(computed(wholeNumber(0, 99))),
      otherwise: v.optional(nameField),
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
  MERGE: nodeTypeRow('pure', {
    summary:
      'Joins branches: combine merges objects in edge order, append makes an array of the inputs; the other modes ' +
      'merge lists of items by position or by fields.',
    config: mergeConfig,
  }),
  FOR_EACH: nodeTypeRow('loop', {
    summary:
      'Executes its children once per item ($item, $index); outputs {items}, the results of the iterations ' +
      'in order.',
    config: v.object({
      items: computed(itemsField),
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
  REPEAT: nodeTypeRow('loop', {
    summary:
      "Executes its children until the condition holds ($input is the iteration's result); outputs the last " +
      'result. If maxIterations ended it, it leaves by the handle exhausted, or by the main one if no edge ' +
      'uses exhausted.',
    config: v.object({
      until: conditionField,
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
  WAIT: nodeTypeRow('wait', {
    summary: 'Waits for a duration or until an instant, then passes its input on.',
    config: v.pipe(
      v.object({
        durationMs: v.optional(computed(durationField)),
        until: v.optional(computed(v.pipe(v.string(INSTANT), v.isoTimestamp(INSTANT)))),
      }),
      v.check(
        (config) => (config.durationMs === undefined) !== (config.until === undefined),
        'must have exactly one of durationMs and until',
      ),
    ),
  }),
  STOP_AND_ERROR: nodeTypeRow('pure', {
    summary: 'Fails with its message.',
    config: v.object({ message: textField, replaces: v.optional(replacedField) }),
  }),
  NO_OP: nodeTypeRow('pure', {
    summary: 'Passes its input on.',
    config: v.object({}),
  }),
} as const
