import { isIP } from 'node:net'
import * as v from 'valibot'
import { findEgressRuleFault } from '../activities/egress/egressrules.ts'
import { SAMPLERS } from '../activities/tracing.ts'
import { findPasswordFault } from '../db/people/strength.ts'
import { TEAM_PLANS } from '../db/people/teams.ts'
import type { Keys } from '../db/seal.ts'

const wholeNumber = (least: number, most: number) =>
  v.pipe(
    v.string(),
    v.regex(/^\d+$/, 'must be a whole number'),
    v.transform(Number),
    v.minValue(least, `must be at least ${least}`),
    v.maxValue(most, `must be at most ${most}`),
  )

const port = v.optional(wholeNumber(1, 65535))

const stringThat = (message: string, fits: (value: string) => boolean) =>
  v.pipe(v.string(), v.check(fits, message))

function splitList(value: string): string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)
}

/** A list separated by commas. Each part is tidied, and must then fit. */
function commaList(message: string, fits: (part: string) => boolean, tidy = (part: string) => part) {
  return v.pipe(
    v.string(),
    v.transform((value) => splitList(value).map(tidy)),
    v.array(stringThat(message, fits)),
  )
}

const egressList = v.pipe(
  v.string(),
  v.transform(splitList),
  v.check(
    (entries) => entries.every((entry) => findEgressRuleFault(entry) === null),
    ({ input }) => {
      const bad = input.filter((entry) => findEgressRuleFault(entry) !== null)
      const named = bad.map((entry) => JSON.stringify(entry)).join(' and ')
      return `must be addresses, ranges such as 10.0.0.0/8, and hosts such as api.example.com or *.example.com, separated by commas, unlike ${named}`
    },
  ),
)

const flag = v.pipe(
  v.picklist(['true', 'false', '1', '0'], 'must be true or false'),
  v.transform((value) => value === 'true' || value === '1'),
)

/** Every environment variable of the service, as it is written. `readConfig` (config.ts) makes the settings of it. */
export const environment = v.object({
  PORT: port,
  HOST: v.optional(stringThat('must be an IP address or localhost', isHost), '127.0.0.1'),
  PUBLIC_URL: v.optional(
    stringThat('must be an http or https URL', (value) => isUrl(value, ['http:', 'https:'])),
  ),
  DATA_DIR: v.optional(v.string(), '.perdure'),
  DATABASE_URL: v.optional(
    stringThat('must be a postgres:// URL', (value) => isUrl(value, ['postgres:', 'postgresql:'])),
  ),
  POOL_SIZE: v.optional(wholeNumber(2, 1000)),
  TEMPORAL_ADDRESS: v.optional(
    stringThat('must be host:port', (value) => /^(\[[\da-f:]+\]|[^\s:/]+):\d+$/i.test(value)),
  ),
  TEMPORAL_NAMESPACE: v.optional(v.string(), 'default'),
  TEMPORAL_TLS: v.optional(flag),
  TEMPORAL_API_KEY: v.optional(v.string()),
  // worker/tls.ts reads and checks the files that these name.
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: v.optional(v.string()),
  TEMPORAL_TLS_CLIENT_CERT_PATH: v.optional(v.string()),
  TEMPORAL_TLS_CLIENT_KEY_PATH: v.optional(v.string()),
  TEMPORAL_TLS_SERVER_NAME: v.optional(
    stringThat('must be a host name such as temporal.example.com', isHostName),
  ),
  TEMPORAL_GUARDED_PORTS: v.optional(
    commaList('must be port numbers, separated by commas', (part) => v.is(port, part)),
    '7243',
  ),
  TEMPORAL_UI_URL: v.optional(
    stringThat('must be an http or https URL', (value) => isUrl(value, ['http:', 'https:'])),
  ),
  TEMPORAL_UI_PORT: port,
  TEMPORAL_CLI: v.optional(v.string()),
  TEMPORAL_PORT: port,
  POSTGRES_PORT: port,
  TASK_QUEUE: v.optional(v.string(), 'perdure'),
  DEPLOYMENT_BUILD_ID: v.optional(
    v.pipe(v.string(), v.regex(/^[\w.+-]{1,100}$/, 'must be 1 to 100 letters, digits and . _ + - only')),
  ),
  SEAL_VERSION: v.optional(v.picklist(['1', '2'], 'must be 1 or 2'), '1'),
  ADMIN_EMAIL: v.optional(v.pipe(v.string(), v.email('must be an e-mail address'))),
  ADMIN_PASSWORD: v.optional(
    v.pipe(
      v.string(),
      v.rawCheck(({ dataset, addIssue }) => {
        const message = dataset.typed && findPasswordFault(dataset.value)
        if (message) addIssue({ message })
      }),
    ),
  ),
  SIGNUP: v.optional(v.picklist(['open', 'closed'], 'must be open or closed')),
  SMTP_URL: v.optional(
    stringThat(
      'must be smtp://host:port or smtps://host:port, with user:password@ if the server wants that',
      isSmtp,
    ),
  ),
  MAIL_FROM: v.optional(v.pipe(v.string(), v.rfcEmail('must be an e-mail address'))),
  MAIL_DOMAINS: v.optional(
    commaList(
      'must be domains such as example.com or *.example.com, separated by commas',
      isHostName,
      (part) => part.toLowerCase(),
    ),
  ),
  MAIL_PER_HOUR: v.optional(wholeNumber(1, 1_000_000)),
  DEFAULT_PLAN: v.optional(v.picklist(TEAM_PLANS, `must be one of ${TEAM_PLANS.join(', ')}`), 'ENTERPRISE'),
  PERDURE_KEYS: v.optional(v.pipe(v.string(), v.rawTransform(parseKeys))),
  EGRESS_ALLOW: v.optional(egressList, ''),
  EGRESS_DENY: v.optional(egressList, ''),
  EGRESS: v.optional(v.picklist(['public', 'any'], 'must be public or any'), 'public'),
  PROXY_HOPS: v.optional(wholeNumber(0, 10), '0'),
  ALLOWED_HOSTS: v.optional(
    commaList(
      'must be host names such as app.example.com or *.example.com, separated by commas',
      isHostName,
      (part) => part.toLowerCase(),
    ),
    '',
  ),
  CORS_ORIGINS: v.optional(
    commaList('must be origins such as https://app.example.com, separated by commas', isOrigin, (part) =>
      part.replace(/\/$/, ''),
    ),
    '',
  ),
  RATE_LIMITS: v.optional(v.picklist(['on', 'off'], 'must be on or off'), 'on'),
  GUARDRAIL_ON_ERROR: v.optional(v.picklist(['open', 'closed'], 'must be open or closed'), 'closed'),
  METRICS_TOKEN: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[\w.~+/=-]+$/, 'must be letters, digits and . _ ~ + / = - only'),
      v.minLength(16, 'must have at least 16 characters'),
    ),
  ),
  WORKER_METRICS_PORT: port,
  LOG_LEVEL: v.optional(
    v.picklist(
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'must be trace, debug, info, warn, error, fatal or silent',
    ),
    'info',
  ),
  STOP_GRACE_SECONDS: v.optional(wholeNumber(1, 86_400), '5'),
  MODEL_STOP_GRACE_SECONDS: v.optional(wholeNumber(1, 86_400), '120'),
  MODEL_CALLS_AT_ONCE: v.optional(wholeNumber(2, 10_000), '200'),
  MODEL_SILENCE_SECONDS: v.optional(wholeNumber(1, 3_600), '30'),
  MEMORY_BUDGET_MB: v.optional(wholeNumber(32, 1_000_000)),
  CONTINUE_AS_NEW_EVENTS: v.optional(wholeNumber(10, 50_000)),
  CHAT_STREAMS_PER_USER: v.optional(wholeNumber(1, 10_000), '10'),
  CHAT_STREAMS_PER_TEAM: v.optional(wholeNumber(1, 10_000), '200'),
  CHAT_STREAMS_PER_VISITOR: v.optional(wholeNumber(1, 10_000), '2'),
})

const url = v.optional(stringThat('must be an http or https URL', isHttp))
const protocol = v.optional(v.literal('http/protobuf', 'must be http/protobuf (port 4318 of a collector)'))

// OpenTelemetry's own variables. They may be meant for other programs, so they are read only if one of the
// two addresses is set.
export const traces = v.object({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: protocol,
  OTEL_TRACES_EXPORTER: v.optional(v.picklist(['otlp', 'none'], 'must be otlp or none'), 'otlp'),
  OTEL_TRACES_SAMPLER: v.optional(
    v.picklist(SAMPLERS, `must be one of ${SAMPLERS.join(', ')}`),
    'parentbased_always_on',
  ),
  OTEL_TRACES_SAMPLER_ARG: v.optional(
    v.pipe(v.string(), v.regex(/^(0(\.\d+)?|1(\.0+)?)$/, 'must be 0 to 1'), v.transform(Number)),
    '1',
  ),
  OTEL_SDK_DISABLED: v.optional(flag, 'false'),
})

function isHost(value: string): boolean {
  return value === 'localhost' || isIP(value) !== 0
}

function isHostName(value: string): boolean {
  const name = value.replace(/^\*\./, '')
  return URL.canParse(`http://${name}`) && new URL(`http://${name}`).hostname === name
}

function isOrigin(value: string): boolean {
  return isUrl(value, ['http:', 'https:']) && new URL(value).origin === value
}

function isHttp(value: string): boolean {
  return isUrl(value, ['http:', 'https:'])
}

function isUrl(value: string, protocols: string[]): boolean {
  return URL.canParse(value) && protocols.includes(new URL(value).protocol)
}

function isSmtp(value: string): boolean {
  if (!isUrl(value, ['smtp:', 'smtps:'])) return false
  const { hostname, pathname, search, hash, username, password } = new URL(value)
  const whole = hostname !== '' && pathname.length <= 1 && search === '' && hash === ''
  return whole && [username, password].every(isEncoded)
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function parseKeys({ dataset, addIssue, NEVER }: v.RawTransformContext<string>): Keys {
  const byId = new Map<string, Buffer>()
  for (const part of dataset.value.split(',')) {
    const [id, encoded = ''] = part.trim().split(':', 2)
    const key = Buffer.from(encoded, 'base64')
    if (!id || !/^[A-Za-z0-9_-]{1,8}$/.test(id) || key.length !== 32 || byId.has(id)) {
      addIssue({
        message:
          'must be id:key[,id:key...]: each id unique, 1 to 8 letters, digits, _ or -; each key 32 bytes as base64',
      })
      return NEVER
    }
    byId.set(id, key)
  }
  return { current: byId.keys().next().value!, byId }
}
