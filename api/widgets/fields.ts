import * as v from 'valibot'
import { WIDGET_POSITIONS } from '../../db/widgets/widgets.ts'
import { boundedString, documentAs, trimmedString, unblankString, uuidField } from '../http/fields.ts'
import { EXAMPLE_ID, idSchema, timeSchema } from '../http/responses.ts'

const MAX_ORIGINS = 20
const MAX_ORIGIN = 300
const MAX_OF_VISITOR = 10_000
const MAX_OF_DAY = 1_000_000

const ORIGIN = 'must be an origin: http or https, a host, and a port if it is not the usual one'

const originField = v.pipe(
  boundedString(MAX_ORIGIN),
  documentAs<string>({ type: 'string', maxLength: MAX_ORIGIN, pattern: '^https?://[^/?#*;,\\s]+$' }),
  v.check((text) => readOrigin(text) !== undefined, ORIGIN),
  v.transform((text) => readOrigin(text)!),
)

const originsField = v.pipe(
  v.array(originField, 'must be an array'),
  v.maxLength(MAX_ORIGINS, `must have at most ${MAX_ORIGINS} entries`),
  v.transform((origins) => [...new Set(origins)]),
)

/** A name or an address. Other characters of URLs could add more than an origin to a policy. */
const HOST = /^([a-z0-9_.-]+|\[[0-9a-f:.]+\])$/

/** The origin as browsers send it; undefined if the text is something else, or more. */
function readOrigin(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || !HOST.test(url.hostname))
    return undefined
  return /^https?:\/\/[^/?#\\\s]+\/?$/i.test(text) ? url.origin : undefined
}

const colourField = v.pipe(
  v.string('must be a string'),
  documentAs<string>({ type: 'string', pattern: '^#[0-9a-fA-F]{6}$' }),
  v.regex(/^#[0-9a-f]{6}$/i, 'must be a colour such as #1f5fd0'),
  v.toLowerCase(),
)

const given = 'must be an object'

const themeField = v.object(
  {
    colours: v.optional(
      v.object(
        {
          accent: v.optional(colourField),
          background: v.optional(colourField),
          text: v.optional(colourField),
        },
        given,
      ),
    ),
    title: v.optional(trimmedString(60)),
    welcomeText: v.optional(unblankString(1_000)),
    position: v.optional(v.picklist(WIDGET_POSITIONS, `must be one of ${WIDGET_POSITIONS.join(', ')}`)),
  },
  given,
)

function countField(max: number) {
  const within = `must be a whole number from 1 to ${max}`
  return v.pipe(v.number(within), v.integer(within), v.minValue(1, within), v.maxValue(max, within))
}

const limitsField = v.object(
  { perVisitor: v.optional(countField(MAX_OF_VISITOR)), perDay: v.optional(countField(MAX_OF_DAY)) },
  given,
)

const settings = {
  allowedOrigins: v.optional(originsField),
  enabled: v.optional(v.boolean('must be true or false')),
  theme: v.optional(themeField),
  limits: v.optional(limitsField),
  collectEmail: v.optional(v.boolean('must be true or false')),
}

export const NewWidget = v.object({
  teamId: uuidField,
  name: trimmedString(200),
  workflowId: uuidField,
  ...settings,
})
export const WidgetPatchBody = v.object({
  name: v.optional(trimmedString(200)),
  workflowId: v.optional(uuidField),
  ...settings,
})

export const NEW_WIDGET_EXAMPLE = {
  teamId: EXAMPLE_ID,
  name: 'Help desk',
  workflowId: EXAMPLE_ID,
  allowedOrigins: ['https://www.example.com'],
}

const ThemeSchema = v.pipe(
  v.object({
    colours: v.object({ accent: v.string(), background: v.string(), text: v.string() }),
    title: v.pipe(v.string(), v.examples(['Chat with us'])),
    welcomeText: v.pipe(v.string(), v.examples(['Hello! How can we help?'])),
    position: v.picklist(WIDGET_POSITIONS),
  }),
  v.title('WidgetTheme'),
)

const limit = v.pipe(v.number(), v.integer(), v.minValue(1))

export const WidgetSchema = v.pipe(
  v.object({
    id: idSchema,
    key: v.pipe(
      v.string(),
      v.description('What the snippet on a page has; no secret'),
      v.examples(['wk_3q2-7wAAAAAAAAAAAAAAAAAA']),
    ),
    teamId: idSchema,
    name: v.pipe(v.string(), v.examples(['Help desk'])),
    workflowId: v.pipe(v.nullable(idSchema), v.description('Null once the workflow is deleted')),
    allowedOrigins: v.pipe(
      v.array(v.string()),
      v.description('The pages that may show it, by their origins'),
      v.examples([['https://www.example.com']]),
    ),
    enabled: v.boolean(),
    theme: ThemeSchema,
    limits: v.pipe(
      v.object({ perVisitor: limit, perDay: limit }),
      v.description('Messages of a visitor, and of all visitors, in a day (UTC)'),
    ),
    collectEmail: v.pipe(
      v.boolean(),
      v.description('Whether visitors are asked for their e-mail address before they can chat'),
    ),
    createdAt: timeSchema,
    updatedAt: timeSchema,
  }),
  v.title('Widget'),
)

/** The facts that a page with the widget may know. */
export const PublicWidgetSchema = v.pipe(
  v.object({ theme: ThemeSchema, collectEmail: v.boolean() }),
  v.title('PublicWidget'),
)

export const VisitorMessageSchema = v.pipe(
  v.object({
    role: v.picklist(['user', 'assistant']),
    status: v.picklist(['STREAMING', 'COMPLETE', 'FAILED', 'STOPPED']),
    content: v.string(),
    createdAt: timeSchema,
  }),
  v.title('VisitorMessage'),
)
