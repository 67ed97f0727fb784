import { Hono } from 'hono'
import * as v from 'valibot'
import type { Bindings } from '../../activities/expressions/bindings.ts'
import type { Evaluator } from '../../activities/expressions/evaluator.ts'
import { EXPRESSIONS_BUSY, EXPRESSIONS_DOWN } from '../../activities/expressions/failures.ts'
import { NodeFailure } from '../../activities/nodes/kit/failure.ts'
import { createNoteKeeper } from '../../activities/nodes/kit/notes.ts'
import { readBindings } from '../../db/executions/records/bindings.ts'
import { Fault } from '../../db/fault.ts'
import { NEWEST_RULES } from '../../workflows/expressions/rules.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString, uuidField } from '../http/fields.ts'
import { EXAMPLE_ID } from '../http/responses.ts'
import { rulesField, rulesSchema } from '../workflows/graph.ts'

const NewEvaluation = v.object({
  teamId: uuidField,
  expression: v.pipe(
    boundedString(100_000),
    v.description('An expression, with or without `{{ }}`, or a text with several of them'),
    v.examples(['{{ $input.order * 2 }}']),
  ),
  as: v.pipe(
    v.optional(v.picklist(['value', 'condition'], 'must be value or condition'), 'value'),
    v.description('A condition gives a boolean'),
  ),
  workflowId: v.optional(
    v.pipe(
      uuidField,
      v.description('The workflow whose draft, else its published version, says what it means'),
    ),
  ),
  executionId: v.optional(v.pipe(uuidField, v.description('The execution whose values it reads'))),
  nodeId: v.optional(
    v.pipe(
      boundedString(100),
      v.description('The node whose `$input` it reads; default: that of the trigger'),
    ),
  ),
  iteration: v.optional(
    v.pipe(
      boundedString(100),
      v.regex(/^\d+(\.\d+)*$/, 'must be the path of an iteration, such as 3 or 3.0'),
      v.description('The iteration, for a node in a loop; default: the first'),
    ),
  ),
  data: v.optional(
    v.pipe(v.unknown(), v.description('The value of `$input`, and of `$trigger` if there is no execution')),
  ),
  expressions: v.optional(
    v.pipe(
      rulesField,
      v.description("The rules; default: those of the execution's version, or of the workflow"),
    ),
  ),
})

const EvaluationSchema = v.pipe(
  v.object({
    value: v.pipe(v.unknown(), v.description('Null if the expression finds nothing, or fails')),
    error: v.pipe(
      v.nullable(v.object({ type: v.string(), message: v.string() })),
      v.description('Why it fails, as the record of a node would have it'),
    ),
    warnings: v.pipe(v.array(v.string()), v.description('What it reads that is not there')),
    console: v.pipe(
      v.array(v.object({ level: v.string(), text: v.string() })),
      v.description('What its code wrote to the console'),
    ),
    expressions: rulesSchema,
  }),
  v.title('Evaluation'),
)

/** How long a request waits for a process, when others keep them all. */
const PATIENCE_MS = 5_000

/** The route that evaluates an expression, for those who write one. */
export function createEvaluateRoutes({ evaluator }: Pick<ApiDeps, 'evaluator'>) {
  return new Hono<AppEnv>().post(
    '/api/expressions/evaluate',
    accept({
      id: 'evaluateExpression',
      tag: 'Expressions',
      summary: 'Evaluate an expression',
      description:
        'Evaluates an expression, a text with expressions, or a condition, as a node would: with `executionId` and ' +
        '`nodeId` it reads what the node has read or would read in that execution, with `data` what is given. ' +
        'Nothing is changed. An expression that fails is a 200 with `error`. The limits are those of a node; a team ' +
        'shares the processes for it with others (503 if it has to wait for more than 5 s).',
      role: 'member',
      json: NewEvaluation,
      example: { teamId: EXAMPLE_ID, expression: 'Order {{ $input.order }}', data: { order: 17 } },
      responses: { 200: { description: 'The value, or the error', schema: EvaluationSchema } },
      faults: [409, 503],
    }),
    async (c) => {
      const { expression, as, data, expressions, ...place } = c.req.valid('json')
      const { language, ...bindings } = await readBindings(c.get('scope'), place, expression)
      const { rules = NEWEST_RULES, strict = false } = {
        ...language,
        ...(expressions ? { rules: expressions } : {}),
      }
      const given = Object.hasOwn(c.req.valid('json'), 'data')
      const trigger = given && place.executionId === undefined ? data : bindings.trigger
      const scope: Bindings = { ...bindings, ...(given ? { input: data, trigger } : {}) }
      if (!evaluator)
        throw new Fault('UNAVAILABLE', 'This process evaluates no expressions', { retryAfter: 5 })
      const notes = createNoteKeeper()
      const note = (_: string, message: string) => notes.add({ warnings: [{ path: 'expression', message }] })
      const own = evaluator
        .for({ team: place.teamId, patienceMs: PATIENCE_MS })
        .under({ rules, strict, note, log: (lines) => notes.add({ console: [...lines] }) })
      const result = await evaluateAs(own, as, expression, scope)
      const { warnings = [], console = [] } = notes.kept().notes ?? {}
      const messages = warnings.map(({ message }) => message)
      return c.json({ ...result, warnings: messages, console, expressions: rules })
    },
  )
}

type Result = { value: unknown; error: { type: string; message: string } | null }

async function evaluateAs(
  evaluator: Evaluator,
  as: 'value' | 'condition',
  text: string,
  scope: Bindings,
): Promise<Result> {
  try {
    const isTemplate = text.includes('{{') || text.startsWith('=')
    const value =
      as === 'condition'
        ? await evaluator.test(text, scope)
        : await (isTemplate ? evaluator.render(text, scope) : evaluator.evaluate(text, scope))
    return { value: value ?? null, error: null }
  } catch (error) {
    if (!(error instanceof NodeFailure)) throw error
    const { type, message } = error
    if (type === EXPRESSIONS_BUSY || type === EXPRESSIONS_DOWN)
      throw new Fault('UNAVAILABLE', `${message}: try again`, { retryAfter: 1 })
    return { value: null, error: { type, message } }
  }
}
