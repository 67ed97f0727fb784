import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import * as v from 'valibot'
import { SAMPLERS, type TracingOptions } from '../activities/tracing.ts'
import type { Keys } from '../db/seal.ts'
import { findPasswordFault } from '../db/strength.ts'
import { PLANS, type Plan } from '../db/teams.ts'

export type Config = {
  port: Port
  host: string
  /** Without a slash at the end. */
  publicUrl: string
  dataDir: string
  databaseUrl: string | undefined
  poolSize: number
  temporal: { address: string | undefined; namespace: string; tls: boolean; apiKey: string | undefined }
  temporalCli: string | undefined
  temporalPort: Port
  postgresPort: Port
  taskQueue: string
  admin: { email: string | undefined; password: string | undefined }
  /** From PERDURE_KEYS; without it worker/keys.ts looks into the data folder. */
  keys: Keys | undefined
  /** Where requests that users aim may go: CIDRs beside the public addresses, and whether to this machine. */
  egress: { allowLoopback: boolean; allow: string[] }
  /** How many proxies stand in front and append to X-Forwarded-For. */
  proxyHops: number
  /** Origins whose pages may use the API beside the own one. */
  corsOrigins: string[]
  rateLimits: boolean
  /** Whether strangers may make accounts. */
  signUp: 'open' | 'closed'
  /** Of new teams. */
  defaultPlan: Plan
  /** What /metrics asks for; without it, that the caller is on this machine. */
  metricsToken: string | undefined
  /** Where a process that is only a worker answers /metrics, /healthz and /readyz; nowhere without it. */
  workerMetricsPort: number | undefined
  /** Undefined where nothing is traced. */
  tracing: TracingOptions | undefined
  logLevel: string
  stuckRunMinutes: number
  continueAfterEvents: number | undefined
}

/** A port set by hand is taken or the start fails; a usual one gives way to a free one. */
export type Port = { number: number; byHand: boolean }

/** What a wrong environment says: one line per variable, all at once. */
export class ConfigError extends Error {}

const whole = (least: number, most: number) =>
  v.pipe(
    v.string(),
    v.regex(/^\d+$/, 'must be a whole number'),
    v.transform(Number),
    v.minValue(least, `must be at least ${least}`),
    v.maxValue(most, `must be at most ${most}`),
  )

const port = v.optional(whole(1, 65535))

const text = (what: string, fits: (value: string) => boolean) => v.pipe(v.string(), v.check(fits, what))

const flag = v.pipe(
  v.picklist(['true', 'false', '1', '0'], 'must be true or false'),
  v.transform((value) => value === 'true' || value === '1'),
)

const environment = v.object({
  PORT: port,
  HOST: v.optional(text('must be an IP address or localhost', isHost), '127.0.0.1'),
  PUBLIC_URL: v.optional(text('must be an http or https URL', (value) => isUrl(value, ['http:', 'https:']))),
  DATA_DIR: v.optional(v.string(), '.perdure'),
  DATABASE_URL: v.optional(
    text('must be a postgres:// URL', (value) => isUrl(value, ['postgres:', 'postgresql:'])),
  ),
  POOL_SIZE: v.optional(whole(2, 1000)),
  TEMPORAL_ADDRESS: v.optional(
    text('must be host:port', (value) => /^(\[[\da-f:]+\]|[^\s:/]+):\d+$/i.test(value)),
  ),
  TEMPORAL_NAMESPACE: v.optional(v.string(), 'default'),
  TEMPORAL_TLS: v.optional(flag),
  TEMPORAL_API_KEY: v.optional(v.string()),
  TEMPORAL_CLI: v.optional(v.string()),
  TEMPORAL_PORT: port,
  POSTGRES_PORT: port,
  TASK_QUEUE: v.optional(v.string(), 'perdure'),
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
  DEFAULT_PLAN: v.optional(v.picklist(PLANS, `must be one of ${PLANS.join(', ')}`), 'ENTERPRISE'),
  PERDURE_KEYS: v.optional(v.pipe(v.string(), v.rawTransform(readKeys))),
  EGRESS_ALLOW: v.optional(
    v.pipe(
      v.string(),
      v.transform((value) =>
        value
          .split(',')
          .map((part) => part.trim())
          .filter(Boolean),
      ),
      v.array(text('must be CIDRs such as 10.0.0.0/8, separated by commas', ipaddr.isValidCIDR)),
    ),
    '',
  ),
  EGRESS: v.optional(v.picklist(['public', 'any'], 'must be public or any'), 'public'),
  PROXY_HOPS: v.optional(whole(0, 10), '0'),
  CORS_ORIGINS: v.optional(
    v.pipe(
      v.string(),
      v.transform((value) => value.split(',').map((part) => part.trim().replace(/\/$/, ''))),
      v.array(text('must be origins such as https://app.example.com, separated by commas', isOrigin)),
    ),
  ),
  RATE_LIMITS: v.optional(v.picklist(['on', 'off'], 'must be on or off'), 'on'),
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
      'must be a pino level, such as info',
    ),
    'info',
  ),
  STUCK_RUN_MINUTES: v.optional(whole(1, 525_600), '60'),
  CONTINUE_AS_NEW_EVENTS: v.optional(whole(10, 50_000)),
})

const url = v.optional(text('must be an http or https URL', isHttp))
const protocol = v.optional(v.literal('http/protobuf', 'must be http/protobuf (port 4318 of a collector)'))

// OpenTelemetry's own variables: looked at only where one of the two addresses is set, for they may be meant for others.
const traces = v.object({
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

/**
 * Reads every environment variable of the service, once. An empty one counts as not set.
 * Throws ConfigError that names each wrong variable and why; values are never repeated (they may be secrets).
 */
export function readConfig(env: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value?.trim()))
  const read = v.safeParse(environment, given)
  const isTraced = given.OTEL_EXPORTER_OTLP_ENDPOINT ?? given.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
  const traced = isTraced ? v.safeParse(traces, given) : undefined
  if (!read.success || traced?.success === false) {
    const issues = [...(read.issues ?? []), ...(traced?.issues ?? [])]
    const lines = issues.map((issue) => `${String(issue.path?.[0]?.key)} ${issue.message}`)
    throw new ConfigError([...new Set(lines)].join('\n'))
  }
  const set = read.output
  const choose = (number: number | undefined, usual: number): Port => ({
    number: number ?? usual,
    byHand: number !== undefined,
  })
  const any = set.EGRESS === 'any'
  const loopback = isLoopback(set.HOST)
  return {
    port: choose(set.PORT, 3000),
    host: set.HOST,
    publicUrl: (set.PUBLIC_URL ?? `http://${nameHost(set.HOST)}:${set.PORT ?? 3000}`).replace(/\/+$/, ''),
    dataDir: resolve(set.DATA_DIR),
    databaseUrl: set.DATABASE_URL,
    poolSize: set.POOL_SIZE ?? Math.min(40, 10 + 5 * availableParallelism()),
    temporal: {
      address: set.TEMPORAL_ADDRESS,
      namespace: set.TEMPORAL_NAMESPACE,
      tls: set.TEMPORAL_TLS ?? set.TEMPORAL_API_KEY !== undefined,
      apiKey: set.TEMPORAL_API_KEY,
    },
    temporalCli: set.TEMPORAL_CLI,
    temporalPort: choose(set.TEMPORAL_PORT, 7233),
    postgresPort: choose(set.POSTGRES_PORT, 54_329),
    taskQueue: set.TASK_QUEUE,
    admin: { email: set.ADMIN_EMAIL, password: set.ADMIN_PASSWORD },
    keys: set.PERDURE_KEYS,
    egress: {
      allowLoopback: any || loopback,
      allow: any ? ['0.0.0.0/0', '::/0'] : set.EGRESS_ALLOW,
    },
    proxyHops: set.PROXY_HOPS,
    corsOrigins: set.CORS_ORIGINS ?? [],
    rateLimits: set.RATE_LIMITS === 'on',
    signUp: set.SIGNUP ?? (loopback ? 'open' : 'closed'),
    defaultPlan: set.DEFAULT_PLAN,
    metricsToken: set.METRICS_TOKEN,
    workerMetricsPort: set.WORKER_METRICS_PORT,
    tracing: traced && readTracing(traced.output),
    logLevel: set.LOG_LEVEL,
    stuckRunMinutes: set.STUCK_RUN_MINUTES,
    continueAfterEvents: set.CONTINUE_AS_NEW_EVENTS,
  }
}

function readTracing(set: v.InferOutput<typeof traces>): TracingOptions | undefined {
  if (set.OTEL_SDK_DISABLED || set.OTEL_TRACES_EXPORTER === 'none') return undefined
  // The address for traces stands as it is, the one for everything gets the path.
  const all = set.OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/+$/, '')
  const url = set.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? `${all}/v1/traces`
  return { url, sampler: set.OTEL_TRACES_SAMPLER, ratio: set.OTEL_TRACES_SAMPLER_ARG }
}

/** How a browser on this machine names a host that the service listens on. */
export function nameHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return isIP(host) === 6 ? `[${host}]` : host
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && ipaddr.process(host).range() === 'loopback')
}

function isHost(value: string): boolean {
  return value === 'localhost' || isIP(value) !== 0
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

function readKeys({ dataset, addIssue, NEVER }: v.RawTransformContext<string>): Keys {
  const byId = new Map<string, Buffer>()
  for (const part of dataset.value.split(',')) {
    const [id, encoded = ''] = part.trim().split(':', 2)
    const key = Buffer.from(encoded, 'base64')
    if (!id || !/^[A-Za-z0-9_-]{1,8}$/.test(id) || key.length !== 32 || byId.has(id)) {
      addIssue({
        message:
          'must be id:key[,id:key...]: each id 1 to 8 letters or digits and its own, each key 32 bytes as base64',
      })
      return NEVER
    }
    byId.set(id, key)
  }
  return { current: byId.keys().next().value!, byId }
}
