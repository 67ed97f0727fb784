import * as v from 'valibot'
import {
  ACTIONS,
  CONTENT_TYPES,
  DEFAULT_SENSITIVITY,
  NAMED_PII_TYPES,
  splitKindNames,
} from '../guardrails/names.ts'
import { isObject } from '../json.ts'
import { checkTextSchema } from '../jsonschema/textschema.ts'
import { described, strictObject } from '../object.ts'
import { nodeTypeRow, oneOf, textField } from './fields.ts'

const MAX_NAMES = 1_000

function namesOf(all: readonly string[]) {
  return v.pipe(
    v.string('must be a string'),
    v.maxLength(MAX_NAMES, `must have at most ${MAX_NAMES} characters`),
    v.check(
      (text) => splitKindNames(text).every((name) => all.includes(name)),
      `must be names of ${all.join(', ')}, separated by commas`,
    ),
  )
}

const isOn = v.optional(v.boolean('must be true or false'), false)

const textSchemaField = v.pipe(
  v.custom<Record<string, unknown>>(isObject, 'must be a JSON Schema, which is an object'),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { value } = dataset
    for (const { path, message } of checkTextSchema(value)) {
      if (path === '') addIssue({ message })
      else {
        const item = { type: 'object', origin: 'value', input: value, key: path, value: undefined } as const
        addIssue({ message, path: [item as unknown as v.ObjectPathItem] })
      }
    }
  }),
)

/** The checks of a text, with the names, bounds and defaults that POST /api/guardrails/check has. */
const checkFields = described(
  {
    detectPromptInjection: isOn,
    injectionSensitivity: v.optional(
      v.pipe(
        v.number('must be a number'),
        v.minValue(0, 'must be at least 0'),
        v.maxValue(1, 'must be at most 1'),
      ),
      DEFAULT_SENSITIVITY,
    ),
    redactPii: isOn,
    piiTypes: v.optional(namesOf(NAMED_PII_TYPES)),
    filterContent: isOn,
    contentCategories: v.optional(namesOf(CONTENT_TYPES)),
    validateSchema: isOn,
    jsonSchema: v.optional(textSchemaField),
    applyCustomRules: isOn,
    detectSemanticManipulation: isOn,
    onViolation: v.optional(oneOf(...ACTIONS), 'BLOCKED'),
    askModel: isOn,
  },
  {
    detectPromptInjection: 'Looks for attempts to change what a model was told to do.',
    injectionSensitivity: 'How readily it finds injection, from 0 to 1: higher flags more.',
    redactPii: 'Puts markers such as [EMAIL] in the place of personal data and secrets.',
    piiTypes: 'Which personal data, with commas between: email, ssn, iban. Without it all but iban.',
    filterContent: 'Looks for content that many do not want.',
    contentCategories: 'Which content, with commas between: hate, violence. Without it all.',
    validateSchema: 'The text must be JSON that fits the JSON Schema.',
    jsonSchema: 'The JSON Schema that the text must fit.',
    applyCustomRules: "Applies the team's enabled rules.",
    detectSemanticManipulation: 'Looks for texts that mean what known attacks mean.',
    onViolation: 'What is done about a violation. Only BLOCKED keeps a text from passing.',
    askModel: "Has the team's model for guardrails judge injection and content too.",
  },
)

/** The checks of a text. */
export type GuardrailChecks = v.InferOutput<v.ObjectSchema<typeof checkFields, undefined>>

const SWITCHES = [
  'detectPromptInjection',
  'redactPii',
  'filterContent',
  'validateSchema',
  'applyCustomRules',
  'detectSemanticManipulation',
] as const

/** The rules for several checks together. */
function demandChecks<T extends GuardrailChecks>() {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed) return
    const { value } = dataset
    const complain = (key: keyof GuardrailChecks, message: string) => {
      const path = { type: 'object', origin: 'value', input: value, key, value: value[key] } as const
      addIssue({ message, path: [path as unknown as v.ObjectPathItem] })
    }
    if (SWITCHES.every((name) => !value[name]))
      addIssue({ message: `must ask for a check: set one of ${SWITCHES.join(', ')} to true` })
    if (value.validateSchema && value.jsonSchema === undefined)
      complain('jsonSchema', 'is needed by validateSchema')
    if (value.askModel && !value.detectPromptInjection && !value.filterContent)
      complain('askModel', 'is for detectPromptInjection and filterContent: set one of them too')
  })
}

/** Checks within a config: of an agent's input, for example. */
export const GuardrailChecks = v.pipe(strictObject(checkFields), demandChecks<GuardrailChecks>())

/**
 * Whether checks call the world, or compute for long: rules may ask a model, and so may the detectors. Such checks are no
 * step of a segment.
 */
function callsOutside(checks: Record<string, unknown>): boolean {
  return ['applyCustomRules', 'detectSemanticManipulation', 'askModel'].some((name) => checks[name] === true)
}

/** Node types that keep texts from what comes after them. */
export const GUARDRAIL_NODES = {
  GUARDRAIL: nodeTypeRow('pure', {
    summary:
      'Checks a text; outputs {passed, text, violations, checks} by the handle passed or blocked. A blocked text without an ' +
      'edge at blocked fails the node.',
    config: v.pipe(
      v.object({ ...described({ text: textField }, { text: 'The text that is checked.' }), ...checkFields }),
      demandChecks<GuardrailChecks & { text: string }>(),
    ),
    main: ['text', 'detectPromptInjection', 'redactPii', 'filterContent', 'onViolation'],
    // If the node works on items, failed ones leave by the last handle: it must not be that of the passed ones.
    handles: () => ['passed', 'blocked'],
    calls: callsOutside,
    longOnItems: true,
    retry: { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2, maxIntervalMs: 30_000 },
    timeoutMs: 900_000,
  }),
} as const
