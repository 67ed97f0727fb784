import { Hono } from 'hono'
import * as v from 'valibot'
import { checkText } from '../../activities/guardrails/check.ts'
import type { Detection } from '../../activities/guardrails/detectors.ts'
import { loadTeamChecks } from '../../activities/guardrails/team.ts'
import { SEVERITIES, VIOLATION_TYPES } from '../../activities/guardrails/violations.ts'
import { THREADS_BUSY } from '../../activities/threads.ts'
import { Fault } from '../../db/fault.ts'
import {
  ACTIONS,
  CONTENT_TYPES,
  DEFAULT_SENSITIVITY,
  NAMED_PII_TYPES,
  readNames,
  splitKindNames,
} from '../../workflows/guardrails/names.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { documentAs, objectField, uuidField } from '../http/fields.ts'
import { countSchema } from '../http/responses.ts'

/** The most UTF-16 units of a text. */
const MAX_TEXT = 100_000

const isOn = (description: string) =>
  v.pipe(v.optional(v.boolean('must be true or false'), false), v.description(description))

/** Names separated by commas, in any order; left out, it is all of them. */
function namesField<const Name extends string>(all: readonly Name[], description: string) {
  const isName = (name: string): name is Name => (all as readonly string[]).includes(name)
  const names = `(?:${all.join('|')})`
  return v.pipe(
    v.optional(
      v.pipe(
        v.string('must be a string'),
        documentAs<string>({
          type: 'string',
          pattern: `^\\s*${names}\\s*(?:,\\s*${names}\\s*)*$`,
          maxLength: 1_000,
        }),
        v.maxLength(1_000, 'must have at most 1000 characters'),
        v.check(
          (text) => splitKindNames(text).every(isName),
          `must be names of ${all.join(', ')}, separated by commas`,
        ),
        v.transform((text) => readNames(all, text)),
      ),
      all.join(','),
    ),
    v.description(description),
  )
}

const NewCheck = v.pipe(
  v.object({
    text: v.pipe(
      v.string('must be a string'),
      documentAs<string>({ type: 'string', maxLength: MAX_TEXT }),
      v.check((text) => text.length <= MAX_TEXT, `must have at most ${MAX_TEXT} UTF-16 units`),
      v.description(`Any text of at most ${MAX_TEXT} UTF-16 units (what JavaScript calls its length)`),
    ),
    detectPromptInjection: isOn('Looks for attempts to change what a model was told to do'),
    injectionSensitivity: v.pipe(
      v.optional(
        v.pipe(
          v.number('must be a number'),
          v.minValue(0, 'must be at least 0'),
          v.maxValue(1, 'must be at most 1'),
        ),
        DEFAULT_SENSITIVITY,
      ),
      v.description('Higher flags more: raising it never removes a violation'),
    ),
    redactPii: isOn('Looks for personal data and secrets, and gives `redactedContent`'),
    piiTypes: namesField(
      NAMED_PII_TYPES,
      'What redactPii looks for, separated by commas; default: all but iban',
    ),
    filterContent: isOn('Looks for content that many do not want'),
    contentCategories: namesField(
      CONTENT_TYPES,
      'What filterContent looks for, separated by commas; default: all',
    ),
    validateSchema: isOn('Whether the text must be JSON that fits `jsonSchema`'),
    jsonSchema: v.optional(
      v.pipe(
        objectField,
        v.description('A JSON Schema of the draft 2020-12, 2019-09 or 07; needed by validateSchema'),
      ),
    ),
    applyCustomRules: isOn("Applies the team's enabled rules"),
    detectSemanticManipulation: isOn('Looks for texts that mean what known attacks mean'),
    onViolation: v.pipe(
      v.optional(v.picklist(ACTIONS, `must be one of ${ACTIONS.join(', ')}`), 'BLOCKED'),
      v.description('The action of every violation but those of personal data, which are REDACTED'),
    ),
  }),
  v.forward(
    v.partialCheck(
      [['validateSchema'], ['jsonSchema']],
      ({ validateSchema, jsonSchema }) => !validateSchema || jsonSchema !== undefined,
      'is needed by validateSchema',
    ),
    ['jsonSchema'],
  ),
)

const ViolationSchema = v.pipe(
  v.object({
    type: v.picklist(VIOLATION_TYPES),
    severity: v.picklist(SEVERITIES),
    action: v.picklist(['BLOCKED', 'WARNED', 'REDACTED', 'LOGGED']),
    message: v.string(),
    confidence: v.pipe(v.number(), v.minValue(0), v.maxValue(1)),
    details: v.pipe(
      v.looseObject({ start: v.optional(countSchema), end: v.optional(countSchema) }),
      v.description(
        'Where it is in the text, in UTF-16 units; for personal data also `piiType` and `marker`, for content ' +
          '`category`, for a schema `path` and `keyword`',
      ),
    ),
  }),
  v.title('GuardrailViolation'),
)

const CheckSchema = v.pipe(
  v.object({
    passed: v.pipe(v.boolean(), v.description('Whether no violation is BLOCKED')),
    violations: v.pipe(v.array(ViolationSchema), v.description('Sorted by where they are in the text')),
    redactedContent: v.optional(
      v.pipe(v.string(), v.description('The text with markers such as `[EMAIL]`, when redactPii was on')),
    ),
    checks: v.array(
      v.object({
        type: v.picklist(VIOLATION_TYPES),
        passed: v.boolean(),
        violationsFound: countSchema,
        durationMs: countSchema,
        error: v.optional(v.pipe(v.string(), v.description('Why the check could not be made'))),
      }),
    ),
  }),
  v.title('GuardrailCheck'),
)

/** The route that checks a text. It changes nothing, and stores nothing. */
export function createGuardrailRoutes({ guardrails, store }: Pick<ApiDeps, 'guardrails' | 'store'>) {
  return new Hono<AppEnv>().post(
    '/api/guardrails/check',
    accept({
      id: 'checkText',
      tag: 'Guardrails',
      summary: 'Check a text',
      description:
        'Makes the checks that are asked for, and no others. Nothing is stored: no text, no violation, no audit entry. ' +
        "A check that cannot be made has an `error`; whether the text then passes is the operator's choice " +
        '(`GUARDRAIL_ON_ERROR`). A team shares the threads for it with others (503 if it has to wait for more than 60 s).',
      role: 'member',
      query: v.object({ teamId: uuidField }),
      json: NewCheck,
      example: { text: 'Write to ada@example.com', redactPii: true, detectPromptInjection: false },
      responses: { 200: { description: 'What was found', schema: CheckSchema } },
      faults: [503],
    }),
    async (c) => {
      const { teamId } = c.req.valid('query')
      const asked = c.req.valid('json')
      if (!guardrails) throw new Fault('UNAVAILABLE', 'This process checks no texts', { retryAfter: 5 })
      const { text, onViolation } = asked
      const schema = asked.validateSchema ? asked.jsonSchema : undefined
      const team = await loadTeamChecks(store.db, teamId, {
        rules: asked.applyCustomRules,
        semantic: asked.detectSemanticManipulation,
        model: asked.detectPromptInjection || asked.filterContent,
      })
      const request = {
        team: teamId,
        workflow: teamId,
        text,
        detection: listDetection(asked),
        schema,
        ...team,
        onViolation,
        signal: c.req.raw.signal,
      }
      try {
        return c.json(await checkText(guardrails, request))
      } catch (error) {
        if (!(error instanceof Error) || error.name !== THREADS_BUSY) throw error
        throw new Fault('UNAVAILABLE', `${error.message}: try again`, { retryAfter: 1 })
      }
    },
  )
}

function listDetection(asked: v.InferOutput<typeof NewCheck>): Detection {
  return {
    ...(asked.redactPii ? { PII_REDACTION: { kinds: asked.piiTypes } } : {}),
    ...(asked.detectPromptInjection ? { PROMPT_INJECTION: { sensitivity: asked.injectionSensitivity } } : {}),
    ...(asked.filterContent ? { CONTENT_FILTER: { categories: asked.contentCategories } } : {}),
  }
}
