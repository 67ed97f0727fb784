import { Hono } from 'hono'
import * as v from 'valibot'
import { type PersonalKind, PII_KINDS } from '../../db/detection/pii/kinds.ts'
import { readMasking, updateMasking } from '../../db/redaction/masking.ts'
import { findPatternFault, MASK_STYLES } from '../../db/redaction/rules.ts'
import { strictObject } from '../../workflows/object.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { boundedString, documentAs, trimmedString } from '../http/fields.ts'
import { timeSchema } from '../http/responses.ts'

const MAX_PATTERNS = 20
const MAX_KEYS = 100

const switches = <T>(one: T) =>
  Object.fromEntries(PII_KINDS.map((kind) => [kind, one])) as Record<PersonalKind, T>
const patternName = v.pipe(
  v.string('must be a string'),
  v.regex(
    /^[A-Z][A-Z0-9_]{0,30}$/,
    'must be at most 31 capital letters, digits and _, beginning with a letter',
  ),
  v.examples(['CUSTOMER']),
)
const style = v.pipe(
  v.picklist(MASK_STYLES, `must be one of ${MASK_STYLES.join(', ')}`),
  v.description('How values are masked. LABEL: [EMAIL]. PARTIAL: b***@a.example'),
)
const pattern = v.pipe(
  boundedString(200),
  documentAs<string>({ type: 'string', minLength: 1, maxLength: 200 }),
  v.rawCheck(({ dataset, addIssue }) => {
    const message = dataset.typed && dataset.value !== '' && findPatternFault(dataset.value)
    if (message) addIssue({ message })
  }),
  v.description('A regular expression in RE2 syntax, without look-around and back-references'),
  v.examples(['cust-\\d{4,9}']),
)
const key = v.pipe(
  trimmedString(100),
  v.minLength(3, 'must have at least 3 characters'),
  v.examples(['customerRef']),
)

const MaskingPatch = v.object({
  detectors: v.optional(strictObject(switches(v.optional(v.boolean('must be true or false'))))),
  style: v.optional(style),
  patterns: v.optional(
    v.pipe(
      v.array(strictObject({ name: patternName, pattern }), 'must be an array'),
      v.maxLength(MAX_PATTERNS, `must have at most ${MAX_PATTERNS} entries`),
    ),
  ),
  keys: v.optional(
    v.pipe(v.array(key, 'must be an array'), v.maxLength(MAX_KEYS, `must have at most ${MAX_KEYS} entries`)),
  ),
})
const MaskingSchema = v.pipe(
  v.object({
    detectors: v.pipe(
      v.object(switches(v.boolean())),
      v.description('Which kinds of personal data exports mask. Secrets are always masked'),
    ),
    style,
    patterns: v.pipe(
      v.array(v.object({ name: v.string(), pattern: v.string() })),
      v.description('Further text to mask. A match becomes [NAME]'),
    ),
    keys: v.pipe(v.array(v.string()), v.description('Further keys whose values are masked as secrets')),
    updatedAt: v.nullable(timeSchema),
  }),
  v.title('Masking'),
)

/** The routes with which the instance's admin reads and changes what exports and audit entries mask. */
export function createMaskingRoutes() {
  const responses = { 200: { description: 'The current masking settings', schema: MaskingSchema } }
  return new Hono<AppEnv>()
    .get(
      '/api/admin/masking',
      accept({
        id: 'readMasking',
        tag: 'Operation',
        summary: 'Read the masking settings',
        description:
          'They say what exports and audit entries mask, for all teams. `patterns` and `keys` also apply to what ' +
          'is shown of HTTP requests.',
        role: 'instance',
        responses,
      }),
      async (c) => c.json(await readMasking(c.get('scope'))),
    )
    .put(
      '/api/admin/masking',
      accept({
        id: 'updateMasking',
        tag: 'Operation',
        summary: 'Change the masking settings',
        description:
          'Changes the fields that are given and keeps the rest. A given array replaces the stored one. ' +
          'The settings apply to all teams.',
        role: 'instance',
        json: MaskingPatch,
        responses,
      }),
      async (c) => c.json(await updateMasking(c.get('scope'), c.req.valid('json'))),
    )
}
