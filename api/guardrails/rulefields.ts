import * as v from 'valibot'
import { checkRuleCode } from '../../activities/guardrails/rules/javascript.ts'
import { SEVERITIES } from '../../activities/guardrails/violations.ts'
import { RULE_KINDS, type RuleKind } from '../../db/guardrails/rules.ts'
import { ACTIONS } from '../../workflows/guardrails/names.ts'
import { boundedString, documentAs, objectField, trimmedString, unblankString } from '../http/fields.ts'
import { countSchema, idSchema, timeSchema, versionSchema } from '../http/responses.ts'

const MAX_PATTERN = 2_000
const MAX_KEYWORDS = 5_000
const MAX_KEYWORD = 200
const MAX_RULE_CODE = 20_000
const MAX_INSTRUCTION = 4_000

const codeField = v.pipe(
  unblankString(MAX_RULE_CODE),
  documentAs<string>({ type: 'string', minLength: 1, maxLength: MAX_RULE_CODE }),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed || dataset.issues) return
    for (const message of checkRuleCode(dataset.value)) addIssue({ message })
  }),
)

/** The config of each kind of rule, as it is sent. */
export const RULE_CONFIGS = {
  REGEX: v.object({
    pattern: v.pipe(
      boundedString(MAX_PATTERN),
      v.description('Of RE2: without look-around and back-references. It is looked for in the text as it is'),
    ),
    flags: v.pipe(
      v.optional(
        v.pipe(
          v.string('must be a string'),
          documentAs<string>({ type: 'string', pattern: '^[ims]*$', maxLength: 3 }),
          v.check(
            (flags) => /^[ims]*$/.test(flags) && new Set(flags).size === flags.length,
            'must be letters of ims, each once',
          ),
        ),
        '',
      ),
      v.description('i: case does not matter; m: ^ and $ stand for lines; s: . is any character'),
    ),
  }),
  KEYWORD_LIST: v.object({
    keywords: v.pipe(
      v.array(trimmedString(MAX_KEYWORD), 'must be a list'),
      v.minLength(1, 'must not be empty'),
      v.maxLength(MAX_KEYWORDS, `must have at most ${MAX_KEYWORDS} keywords`),
    ),
    wholeWord: v.pipe(
      v.optional(v.boolean('must be true or false'), true),
      v.description('A keyword within a longer word does not count'),
    ),
    caseSensitive: v.pipe(
      v.optional(v.boolean('must be true or false'), false),
      v.description(
        'Looks for the keywords as they are written, in the text as it is: nothing is folded or decoded',
      ),
    ),
  }),
  JAVASCRIPT: v.object({
    code: v.pipe(
      codeField,
      v.description('The body of a function that sees `text`, and returns what is wrong with it'),
    ),
  }),
  LLM_PROMPT: v.object({
    instruction: v.pipe(unblankString(MAX_INSTRUCTION), v.description('What the model is to flag')),
  }),
} as const

const name = v.pipe(trimmedString(100), v.description('No other rule of the team has it'))
const description = v.nullable(boundedString(1_000, 0))
const isEnabled = v.boolean('must be true or false')
const severity = v.picklist(SEVERITIES, `must be one of ${SEVERITIES.join(', ')}`)
const action = v.pipe(
  v.picklist(ACTIONS, `must be one of ${ACTIONS.join(', ')}`),
  v.description('The action of its violations, whatever `onViolation` of a check says'),
)
const KINDS = `must be one of ${RULE_KINDS.join(', ')}`

const settings = {
  name,
  description: v.optional(description, null),
  enabled: v.optional(isEnabled, true),
  severity: v.optional(severity, 'MEDIUM'),
  action: v.optional(action, 'BLOCKED'),
}

/** A schema for each kind, with more entries. */
function eachKind<const Entries extends v.ObjectEntries>(entries: Entries) {
  const of = <const Kind extends RuleKind>(kind: Kind) =>
    v.object({ ...entries, kind: v.literal(kind, KINDS), config: RULE_CONFIGS[kind] })
  return v.variant('kind', [of('REGEX'), of('KEYWORD_LIST'), of('JAVASCRIPT'), of('LLM_PROMPT')], KINDS)
}

export const NewRule = eachKind(settings)

/** A rule that is tried out; what is given besides is not needed for that. */
export const TriedRule = eachKind({})

export const RulePatch = v.object({
  name: v.optional(name),
  description: v.optional(description),
  enabled: v.optional(isEnabled),
  severity: v.optional(severity),
  action: v.optional(action),
  config: v.optional(v.pipe(objectField, v.description("Whole, and of the rule's kind, which stays"))),
})

export const RuleSchema = v.pipe(
  v.object({
    id: idSchema,
    teamId: idSchema,
    name: v.pipe(v.string(), v.examples(['No project names'])),
    description: v.nullable(v.string()),
    kind: v.picklist(RULE_KINDS),
    enabled: v.boolean(),
    severity: v.picklist(SEVERITIES),
    action: v.picklist(ACTIONS),
    config: v.pipe(
      v.union([
        v.object({ pattern: v.string(), flags: v.string() }),
        v.object({ keywords: v.array(v.string()), wholeWord: v.boolean(), caseSensitive: v.boolean() }),
        v.object({ code: v.string() }),
        v.object({ instruction: v.string() }),
      ]),
      v.description('By its kind'),
      v.examples([{ keywords: ['Project Zebra'], wholeWord: true, caseSensitive: false }]),
    ),
    version: v.pipe(versionSchema, v.description('Counts its changes')),
    createdAt: timeSchema,
    updatedAt: timeSchema,
  }),
  v.title('GuardrailRule'),
)

export const TrialSchema = v.pipe(
  v.object({
    results: v.pipe(
      v.array(
        v.object({
          flagged: v.boolean(),
          matches: v.array(
            v.object({
              start: v.optional(countSchema),
              end: v.optional(countSchema),
              message: v.optional(v.string()),
              confidence: v.number(),
            }),
          ),
          more: v.pipe(
            countSchema,
            v.description('How many matches there are besides, as far as they are counted'),
          ),
          durationMs: countSchema,
          error: v.optional(v.pipe(v.string(), v.description('Why the rule could not be applied'))),
        }),
      ),
      v.description('One for each sample, in their order'),
    ),
  }),
  v.title('GuardrailRuleTest'),
)
