import * as v from 'valibot'
import { isObject } from '../json.ts'
import { NODES, nodeType } from '../nodes/nodes.ts'
import { suggestType } from '../nodes/words.ts'
import { described, strictObject } from '../object.ts'
import { describeIssues, type Problem, quoteShort } from '../problem.ts'
import { ON_ERROR } from '../run/plan.ts'
import { explainMissing } from './advice/keys.ts'
import type { GraphEdge, GraphNode } from './graph.ts'

const DAY_MS = 86_400_000
const TAKEN_IDS = ['__proto__', 'prototype', 'constructor']

const line = (max: number) =>
  v.pipe(
    v.string('must be a string'),
    v.nonEmpty('must not be empty'),
    v.maxLength(max, `must have at most ${max} characters`),
    v.check((text) => !text.includes('\0') && text.isWellFormed(), 'must not contain NUL or broken Unicode'),
  )
const within = (min: number, max: number) =>
  v.pipe(
    v.number('must be a number'),
    v.minValue(min, `must be at least ${min}`),
    v.maxValue(max, `must be at most ${max}`),
  )
const whole = (min: number, max: number) => v.pipe(within(min, max), v.integer('must be a whole number'))
const coordinate = v.pipe(v.number('must be a number'), v.finite('must be finite'))

const Id = v.pipe(
  v.string('must be a string'),
  v.regex(/^[A-Za-z0-9_-]{1,100}$/, 'must be 1 to 100 letters, digits, _ or -'),
  v.check((id) => !TAKEN_IDS.includes(id), `must not be one of ${TAKEN_IDS.join(', ')}`),
)

function describeUnknownType(given: string): string {
  const similar = suggestType(given)
  if (similar) return `there is no type ${quoteShort(given)}; did you mean "${similar}"?`
  return `must be one of ${Object.keys(NODES).join(', ')}, not ${quoteShort(given)}`
}

/** A node without its config. Editors send null for what is not set, so null counts as missing. */
export const GraphNodeSchema = v.object(
  described(
    {
      id: v.nullish(Id),
      type: v.pipe(
        v.string('must be a string'),
        v.check(
          (type) => nodeType(type) !== undefined,
          ({ input }) => describeUnknownType(input),
        ),
      ),
      name: v.nullish(line(200)),
      position: v.nullish(
        strictObject(
          described({ x: coordinate, y: coordinate }, { x: 'From the left.', y: 'From the top.' }),
        ),
      ),
      parentId: v.nullish(line(100)),
      retry: v.nullish(
        strictObject(
          described(
            {
              maxAttempts: v.optional(whole(1, 100)),
              initialIntervalMs: v.optional(whole(1, DAY_MS)),
              backoffCoefficient: v.optional(within(1, 100)),
              maxIntervalMs: v.optional(whole(1, DAY_MS)),
            },
            {
              maxAttempts: 'How often it is tried, the first time included.',
              initialIntervalMs: 'How long it waits before the second attempt, in milliseconds.',
              backoffCoefficient: 'How many times longer each further pause is.',
              maxIntervalMs: 'The longest pause, in milliseconds.',
            },
          ),
        ),
      ),
      timeoutMs: v.nullish(whole(1, DAY_MS)),
      onError: v.nullish(v.picklist(ON_ERROR, 'must be FAIL, CONTINUE or BRANCH'), 'FAIL'),
      disabled: v.nullish(v.boolean('must be true or false')),
      perItem: v.nullish(
        v.union(
          [
            v.boolean(),
            strictObject(
              described(
                { concurrency: v.optional(whole(1, 64)) },
                {
                  concurrency: 'How many calls it makes at the same time.',
                },
              ),
            ),
          ],
          'must be true, false or {concurrency}, with a whole number from 1 to 64',
        ),
      ),
      allItems: v.nullish(v.boolean('must be true or false')),
      itemOptions: v.nullish(
        strictObject(
          described(
            {
              firstOnly: v.optional(v.boolean('must be true or false')),
              alwaysOne: v.optional(v.boolean('must be true or false')),
              errors: v.optional(v.picklist(['text', 'pass'], 'must be text or pass')),
            },
            {
              firstOnly: 'It works on the first item only.',
              alwaysOne: 'If no item would leave by its first output, an empty one does.',
              errors: 'How a failed item goes on: with the error as a text, or as it came.',
            },
          ),
        ),
      ),
    },
    {
      id: 'What edges and expressions name it by.',
      type: 'One of the node types.',
      name: 'What people see.',
      position: 'Where an editor draws it; within a loop it is measured from the corner of the loop.',
      parentId: 'The loop that it is inside.',
      retry: 'How often, and when, it is tried again. What is missing is as its type has it.',
      timeoutMs: 'The limit of one attempt, in milliseconds.',
      onError:
        'What follows from an error: the execution fails, it goes on with the error as output, or leaves by the output error.',
      disabled: 'It passes its input on, and leaves no record.',
      perItem: 'It works on each of the items that come to it.',
      allItems: 'It works once on all items that come to it, and not at all without any.',
      itemOptions: 'How it works on items.',
    },
  ),
)

export const GraphEdgeSchema = v.object(
  described(
    {
      id: v.nullish(line(200)),
      source: line(100),
      target: line(100),
      sourceHandle: v.nullish(line(100), null),
      targetHandle: v.nullish(line(200)),
    },
    {
      id: 'Kept for editors.',
      source: 'The id of the node that it begins at.',
      target: 'The id of the node that it leads to.',
      sourceHandle: 'The output that it begins at; null is the main one.',
      targetHandle: 'Kept for editors.',
    },
  ),
)

/**
 * Reads one node into its stored form and adds what is wrong with it to `problems`. Its name is empty if it has
 * none. Returns an array of one, or an empty one if `raw` is not an object.
 */
export function readNode(
  raw: unknown,
  path: string,
  makeId: () => string,
  problems: Problem[],
): PlacedElement<GraphNode>[] {
  if (!isObject(raw)) {
    problems.push({ path, message: 'must be an object' })
    return []
  }
  const parsed = v.safeParse(GraphNodeSchema, raw)
  if (!parsed.success) problems.push(...describeIssues(parsed.issues, path))
  const configPath = `${path}.${isNone(raw.config) && !isNone(raw.data) ? 'data' : 'config'}`
  const type = typeof raw.type === 'string' ? raw.type : ''
  const config = readConfig(type, raw.config ?? raw.data ?? {}, configPath, problems)
  if (!parsed.success) return [{ value: sketchNode(raw, type, config, makeId), path, configPath }]

  const { id, name, onError, ...rest } = parsed.output
  const value = {
    id: id ?? makeId(),
    type,
    name: name ?? '',
    config,
    onError,
    ...dropNone(rest),
  } as GraphNode
  return [{ value, path, configPath }]
}

/** The readable parts of an invalid node, so that its edges and expressions can still be checked. */
function sketchNode(
  raw: Record<string, unknown>,
  type: string,
  config: Record<string, unknown>,
  makeId: () => string,
): GraphNode {
  const id = typeof raw.id === 'string' ? raw.id : makeId()
  const parent = typeof raw.parentId === 'string' ? { parentId: raw.parentId } : {}
  return { id, type, name: type, config, onError: raw.onError === 'BRANCH' ? 'BRANCH' : 'FAIL', ...parent }
}

function readConfig(type: string, raw: unknown, path: string, problems: Problem[]): Record<string, unknown> {
  if (!isObject(raw)) {
    problems.push({ path, message: 'must be an object' })
    return {}
  }
  const schema = nodeType(type)?.config
  if (!schema) return raw
  const parsed = v.safeParse(schema, raw)
  if (parsed.success) return parsed.output
  problems.push(...explainMissing(describeIssues(parsed.issues, path), raw, path, schema))
  return raw
}

/**
 * Reads one edge into its stored form and adds what is wrong with it to `problems`. Returns an array of one,
 * or an empty one if the edge is invalid.
 */
export function readEdge(raw: unknown, path: string, problems: Problem[]): PlacedElement<GraphEdge>[] {
  if (!isObject(raw)) {
    problems.push({ path, message: 'must be an object' })
    return []
  }
  const parsed = v.safeParse(GraphEdgeSchema, raw)
  if (!parsed.success) {
    problems.push(...describeIssues(parsed.issues, path))
    return []
  }
  const { id, source, target, sourceHandle, targetHandle } = parsed.output
  return [
    { value: { ...dropNone({ id }), source, target, sourceHandle, ...dropNone({ targetHandle }) }, path },
  ]
}

type Some<T> = { [K in keyof T]?: NonNullable<T[K]> }

function dropNone<T extends Record<string, unknown>>(fields: T): Some<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isNone(value))) as Some<T>
}

function isNone(value: unknown): value is null | undefined {
  return value === null || value === undefined
}

/** A node or edge and its path in the author's graph; `configPath` is that of its `config` or `data`. */
export type PlacedElement<T> = { value: T; path: string; configPath?: string }
