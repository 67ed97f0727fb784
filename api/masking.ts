import { Hono } from 'hono'
import * as v from 'valibot'
import { findPatternFault, MASK_STYLES, readMasking, updateMasking } from '../db/masking.ts'
import { PII_KINDS, type PiiKind } from '../db/pii.ts'
import { object } from '../workflows/object.ts'
import { accept, line, shown, text } from './accept.ts'
import { time } from './answers.ts'
import type { AppEnv } from './app.ts'

const MAX_PATTERNS = 20
const MAX_KEYS = 100

const switches = <T>(one: T) => Object.fromEntries(PII_KINDS.map((kind) => [kind, one])) as Record<PiiKind, T>
const name = v.pipe(
  v.string('must be a text'),
  v.regex(/^[A-Z][A-Z0-9_]{0,30}$/, 'must be capitals, digits and _, at most 31'),
  v.examples(['CUSTOMER']),
)
const style = v.pipe(
  v.picklist(MASK_STYLES, `must be one of ${MASK_STYLES.join(', ')}`),
  v.description('LABEL: [EMAIL]; PARTIAL: b***@a.example'),
)
const pattern = v.pipe(
  text(200),
  shown<string>({ type: 'string', minLength: 1, maxLength: 200 }),
  v.rawCheck(({ dataset, addIssue }) => {
    const message = dataset.typed && dataset.value !== '' && findPatternFault(dataset.value)
    if (message) addIssue({ message })
  }),
  v.description('A regular expression of RE2: no look-around, no back-references'),
  v.examples(['cust-\\d{4,9}']),
)
const key = v.pipe(line(100), v.minLength(3, 'must have at least 3 characters'), v.examples(['customerRef']))

const MaskingPatch = v.object({
  detectors: v.optional(object(switches(v.optional(v.boolean('must be true or false'))))),
  style: v.optional(style),
  patterns: v.optional(
    v.pipe(
      v.array(object({ name, pattern }), 'must be a list'),
      v.maxLength(MAX_PATTERNS, `must have at most ${MAX_PATTERNS} entries`),
    ),
  ),
  keys: v.optional(
    v.pipe(v.array(key, 'must be a list'), v.maxLength(MAX_KEYS, `must have at most ${MAX_KEYS} entries`)),
  ),
})
const MaskingAnswer = v.pipe(
  v.object({
    detectors: v.pipe(
      v.object(switches(v.boolean())),
      v.description('Which personal data exports mask; secrets are masked in any case'),
    ),
    style,
    patterns: v.pipe(
      v.array(v.object({ name: v.string(), pattern: v.string() })),
      v.description('What is masked besides, as [NAME]'),
    ),
    keys: v.pipe(v.array(v.string()), v.description('Further names of keys whose values are secret')),
    updatedAt: v.nullable(time),
  }),
  v.title('Masking'),
)

/** What exports and audit entries mask, for the instance's admin. */
export function createMaskingRoutes() {
  const answer = { 200: { description: 'The masking as it stands', schema: MaskingAnswer } }
  return new Hono<AppEnv>()
    .get(
      '/api/admin/masking',
      accept({
        id: 'readMasking',
        tag: 'Operation',
        summary: 'Read what is masked',
        role: 'instance',
        responses: answer,
      }),
      async (c) => c.json(await readMasking(c.get('scope'))),
    )
    .put(
      '/api/admin/masking',
      accept({
        id: 'updateMasking',
        tag: 'Operation',
        summary: 'Change what is masked',
        description: 'Changes what is given; a list replaces the one before. It holds for all teams.',
        role: 'instance',
        json: MaskingPatch,
        responses: answer,
      }),
      async (c) => c.json(await updateMasking(c.get('scope'), c.req.valid('json'))),
    )
}
