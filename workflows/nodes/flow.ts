import * as v from 'valibot'
import { described, strictObject } from '../object.ts'
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
import { MERGE_MAIN, mergeConfig } from './merge.ts'

const switchCase = v.pipe(
  strictObject(
    described(
      {
        handle: nameField,
        condition: v.optional(conditionField),
        conditions: v.optional(conditionsField),
      },
      {
        handle: 'The name of the output that is taken.',
        condition: 'An expression that is true or false, such as $input.total > 100.',
        conditions: 'A list of comparisons, in place of one expression.',
      },
    ),
  ),
  eitherCondition(),
)

/** The n8n node that a STOP_AND_ERROR replaces, because an import could not take it over. */
const replacedField = strictObject(
  described(
    {
      type: v.string('must be a string'),
      version: v.number('must be a number'),
      parameters: v.string('must be a string'),
    },
    {
      type: "The type of n8n's node.",
      version: 'Its version.',
      parameters: 'What it was set to, as JSON.',
    },
  ),
)

const INSTANT = 'must be an ISO 8601 time'

/** Node types that decide where an execution goes on, and when. */
export const FLOW_NODES = {
  IF_ELSE: nodeTypeRow('pure', {
    summary: 'Passes its input on by the handle true or false.',
    config: v.pipe(
      v.object(
        described(
          { condition: v.optional(conditionField), conditions: v.optional(conditionsField) },
          {
            condition: 'An expression that is true or false, such as $input.total > 100.',
            conditions: 'A list of comparisons, in place of one expression.',
          },
        ),
      ),
      eitherCondition(),
    ),
    main: ['condition'],
    handles: () => ['true', 'false'],
    conditions: (config) => conditionAt('condition', config.condition),
  }),
  SWITCH: nodeTypeRow('pure', {
    summary: 'Passes its input on by the handle of the first case that holds, else by default.',
    config: v.object(
      described(
        {
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
        },
        {
          cases: 'The first case that holds is taken; if none does, the output default.',
          all: 'All cases that hold are taken, not only the first one.',
          choose: 'The number of the case to take, from 0, in place of conditions.',
          otherwise: 'The output of a case that is also taken if none holds.',
        },
      ),
    ),
    main: ['cases', 'all'],
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
    main: ['mode'],
    mainBy: { key: 'mode', keys: MERGE_MAIN },
  }),
  FOR_EACH: nodeTypeRow('loop', {
    summary:
      'Executes its children once per item ($item, $index); outputs {items}, the results of the iterations ' +
      'in order.',
    config: v.object(
      described(
        {
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
        },
        {
          items: 'The list: what is inside is done once for each of its items ($item, $index).',
          concurrency: 'How many items are worked on at the same time.',
          onItemError:
            'Whether the first failure ends the loop, or stands as {error} in the place of its result.',
        },
      ),
    ),
    main: ['items', 'concurrency', 'onItemError'],
  }),
  REPEAT: nodeTypeRow('loop', {
    summary:
      "Executes its children until the condition holds ($input is the iteration's result); outputs the last " +
      'result. If maxIterations ended it, it leaves by the handle exhausted, or by the main one if no edge ' +
      'uses exhausted.',
    config: v.object(
      described(
        {
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
        },
        {
          until: 'It goes on until this is true; $input is the result of the iteration.',
          maxIterations: 'It stops after so many iterations in any case, by the output exhausted.',
        },
      ),
    ),
    main: ['until', 'maxIterations'],
    handles: () => [null, EXHAUSTED],
    conditions: (config) => conditionAt('until', config.until),
  }),
  WAIT: nodeTypeRow('wait', {
    main: ['durationMs', 'until'],
    summary: 'Waits for a duration or until an instant, then passes its input on.',
    config: v.pipe(
      v.object(
        described(
          {
            durationMs: v.optional(computed(durationField)),
            until: v.optional(computed(v.pipe(v.string(INSTANT), v.isoTimestamp(INSTANT)))),
          },
          {
            durationMs: 'How long it waits, in milliseconds.',
            until: 'The time until which it waits (ISO 8601), in place of a duration.',
          },
        ),
      ),
      v.check(
        (config) => (config.durationMs === undefined) !== (config.until === undefined),
        'must have exactly one of durationMs and until',
      ),
    ),
  }),
  STOP_AND_ERROR: nodeTypeRow('pure', {
    main: ['message'],
    summary: 'Fails with its message.',
    config: v.object(
      described(
        { message: textField, replaces: v.optional(replacedField) },
        {
          message: 'The message of the failure.',
          replaces: 'The node of n8n whose place it keeps, since an import could not take it over.',
        },
      ),
    ),
  }),
  NO_OP: nodeTypeRow('pure', {
    summary: 'Passes its input on.',
    config: v.object({}),
  }),
} as const
