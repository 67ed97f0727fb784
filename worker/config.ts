import { isIP } from 'node:net'
import { totalmem } from 'node:os'
import { resolve } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import * as v from 'valibot'
import type { SmtpOptions } from '../activities/mail/smtp.ts'
import type { TracingOptions } from '../activities/tracing.ts'
import { isLoopback } from '../api/http/host.ts'
import type { TeamPlan } from '../db/people/teams.ts'
import type { EmailProof } from '../db/scope.ts'
import type { Keys } from '../db/seal.ts'
import { environment, traces } from './environment.ts'
import { readTemporalTls, type TemporalTls } from './tls.ts'

export type Config = {
  port: Port
  host: string
  /** Has no slash at the end. */
  publicUrl: string
  dataDir: string
  databaseUrl: string | undefined
  /** Undefined if the kind of the process decides. */
  poolSize: number | undefined
  temporal: {
    address: string | undefined
    namespace: string
    tls: TemporalTls
    apiKey: string | undefined
    /** Further ports of its host that workflows must not call: its HTTP API, its metrics. */
    guardedPorts: number[]
    /** Where people's browsers find its web UI; has no slash at the end. */
    uiUrl: string | undefined
  }
  temporalCli: string | undefined
  temporalPort: Port
  /** The port of the embedded server's web UI; undefined if it has none. */
  temporalUiPort: number | undefined
  postgresPort: Port
  taskQueue: string
  /** The name that Temporal has for this installation's workers, over all of their versions. */
  deploymentName: string
  /** The version of this process's worker, to which runs are pinned; undefined where workers are not versioned. */
  buildId: string | undefined
  /** Whether this process binds what Temporal stores to its run, which the release before cannot open. */
  sealBound: boolean
  admin: { email: string | undefined; password: string | undefined }
  /** From PERDURE_KEYS. If it is not set, worker/keys.ts reads the keys from the data folder. */
  keys: Keys | undefined
  /**
   * Where users' connections may lead: to this machine or not, besides public addresses to those of `allow`, and
   * never to those of `deny`.
   */
  egress: { allowLoopback: boolean; allow: string[]; deny: string[] }
  /** How many proxies in front of the service append to X-Forwarded-For. */
  proxyHops: number
  /** Host names, besides that of `publicUrl`, under which the service is reached; `*.example.com` for all below. */
  allowedHosts: string[]
  /** Origins, besides the service's own, whose pages may use the API. */
  corsOrigins: string[]
  rateLimits: boolean
  /** Whether a text passes a guardrail check that could not be made. */
  guardrailOnError: 'open' | 'closed'
  /** Whether anyone may create an account. */
  signUp: 'open' | 'closed'
  /** The server that sends mail; undefined without one. */
  smtp: SmtpOptions | undefined
  /** How e-mail addresses are confirmed. */
  emailProof: EmailProof
  /** To which domains teams' mails go without a yes. */
  mailDomains: readonly string[] | 'any'
  /** How many mails of teams an hour; undefined: the usual number. */
  mailsPerHour: number | undefined
  /** The service is set up for this machine alone: listener and public address are loopback, without proxies. */
  isLocal: boolean
  /**
   * The parts that are open only because the service is local and no setting says otherwise. They are closed once a
   * request shows that others reach the service.
   */
  openByDefault: { signUp: boolean; loopback: boolean }
  /** The plan that new teams get. */
  defaultPlan: TeamPlan
  /**
   * The bearer token that /metrics requires. If undefined, /metrics serves only requests from this machine.
   */
  metricsToken: string | undefined
  /**
   * The port on which a process that is only a worker serves
   * /metrics, /healthz and /readyz; undefined for none.
   */
  workerMetricsPort: number | undefined
  /** Undefined if nothing is traced. */
  tracing: TracingOptions | undefined
  logLevel: string
  /** How long the calls under way may go on when a worker stops. */
  stopGraceMs: number
  /** How long calls to models may, when it is stopped by SIGTERM. */
  modelStopGraceMs: number
  /** How many calls to models and tools of agents one worker makes at once. */
  modelCallsAtOnce: number
  /** How long a model's vendor may send nothing before it is given up. */
  modelSilenceMs: number
  /** The bytes that answers and large inputs of nodes may take in one process, all together. */
  budgetBytes: number
  continueAfterEvents: number | undefined
  /** How many streams of chat replies an API process keeps open for a person, a team and a page's visitor. */
  replyStreams: { ofPerson: number; ofTeam: number; ofVisitor: number }
}

/** If a port set by hand is taken, the start fails; a default port is replaced by a free one. */
export type Port = { number: number; byHand: boolean }

/** The environment is wrong. The message has one line for every wrong variable. */
export class ConfigError extends Error {}

/**
 * Reads all environment variables of the service. An empty variable counts as not set.
 * Throws a ConfigError that says what is wrong with each variable, never its value: it may be a secret.
 */
export function readConfig(env: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value?.trim()))
  const read = v.safeParse(environment, given)
  const isTraced = given.OTEL_EXPORTER_OTLP_ENDPOINT ?? given.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
  const traced = isTraced ? v.safeParse(traces, given) : undefined
  const { tls, problems } = readTemporalTls(given)
  if (given.SMTP_URL !== undefined && given.MAIL_FROM === undefined)
    problems.push('MAIL_FROM must be set, because SMTP_URL is')
  if (!read.success || traced?.success === false || problems.length > 0) {
    const issues = [...(read.issues ?? []), ...(traced?.issues ?? [])]
    const lines = [...issues.map((issue) => `${String(issue.path?.[0]?.key)} ${issue.message}`), ...problems]
    throw new ConfigError([...new Set(lines)].join('\n'))
  }
  const set = read.output
  const choose = (number: number | undefined, usual: number): Port => ({
    number: number ?? usual,
    byHand: number !== undefined,
  })
  const any = set.EGRESS === 'any'
  const publicUrl = (set.PUBLIC_URL ?? `http://${nameHost(set.HOST)}:${set.PORT ?? 3000}`).replace(/\/+$/, '')
  const isLocal =
    isLoopback(set.HOST) &&
    isLoopback(new URL(publicUrl).hostname) &&
    set.PROXY_HOPS === 0 &&
    set.ALLOWED_HOSTS.length === 0
  const signUp = set.SIGNUP ?? (isLocal ? 'open' : 'closed')
  return {
    port: choose(set.PORT, 3000),
    host: set.HOST,
    publicUrl,
    dataDir: resolve(set.DATA_DIR),
    databaseUrl: set.DATABASE_URL,
    poolSize: set.POOL_SIZE,
    temporal: {
      address: set.TEMPORAL_ADDRESS,
      namespace: set.TEMPORAL_NAMESPACE,
      tls,
      apiKey: set.TEMPORAL_API_KEY,
      guardedPorts: set.TEMPORAL_GUARDED_PORTS.map(Number),
      uiUrl: set.TEMPORAL_UI_URL?.replace(/\/+$/, ''),
    },
    temporalUiPort: set.TEMPORAL_UI_PORT,
    temporalCli: set.TEMPORAL_CLI,
    temporalPort: choose(set.TEMPORAL_PORT, 7233),
    postgresPort: choose(set.POSTGRES_PORT, 54_329),
    taskQueue: set.TASK_QUEUE,
    // Temporal separates name and build id by one of these.
    deploymentName: set.TASK_QUEUE.replace(/[.:]/g, '-'),
    buildId: set.DEPLOYMENT_BUILD_ID,
    sealBound: set.SEAL_VERSION === '2',
    admin: { email: set.ADMIN_EMAIL, password: set.ADMIN_PASSWORD },
    keys: set.PERDURE_KEYS,
    egress: {
      allowLoopback: any || isLocal,
      allow: any ? ['0.0.0.0/0', '::/0'] : set.EGRESS_ALLOW,
      deny: set.EGRESS_DENY,
    },
    proxyHops: set.PROXY_HOPS,
    allowedHosts: set.ALLOWED_HOSTS,
    corsOrigins: set.CORS_ORIGINS,
    rateLimits: set.RATE_LIMITS === 'on',
    guardrailOnError: set.GUARDRAIL_ON_ERROR,
    signUp,
    smtp: set.SMTP_URL ? readSmtp(set.SMTP_URL, set.MAIL_FROM!) : undefined,
    // Where strangers can make teams, these must not mail to whom they like.
    mailDomains: set.MAIL_DOMAINS ?? (signUp === 'open' ? [] : 'any'),
    mailsPerHour: set.MAIL_PER_HOUR,
    // If only this machine's own users can make accounts, e-mail addresses need no proof.
    emailProof: set.SMTP_URL ? 'mail' : isLocal && signUp === 'open' ? 'none' : 'operator',
    isLocal,
    openByDefault: { signUp: isLocal && set.SIGNUP === undefined, loopback: isLocal && !any },
    defaultPlan: set.DEFAULT_PLAN,
    metricsToken: set.METRICS_TOKEN,
    workerMetricsPort: set.WORKER_METRICS_PORT,
    tracing: traced && readTracing(traced.output),
    logLevel: set.LOG_LEVEL,
    stopGraceMs: 1_000 * set.STOP_GRACE_SECONDS,
    modelStopGraceMs: 1_000 * set.MODEL_STOP_GRACE_SECONDS,
    modelCallsAtOnce: set.MODEL_CALLS_AT_ONCE,
    modelSilenceMs: 1_000 * set.MODEL_SILENCE_SECONDS,
    budgetBytes: 1_048_576 * (set.MEMORY_BUDGET_MB ?? chooseBudgetMegabytes()),
    continueAfterEvents: set.CONTINUE_AS_NEW_EVENTS,
    replyStreams: {
      ofPerson: set.CHAT_STREAMS_PER_USER,
      ofTeam: set.CHAT_STREAMS_PER_TEAM,
      ofVisitor: set.CHAT_STREAMS_PER_VISITOR,
    },
  }
}

/**
 * A quarter of the heap's limit, but not more than a sixteenth of the memory that the process may use: an
 * answer takes up to three times its share for a moment, and the evaluator processes need theirs.
 */
function chooseBudgetMegabytes(): number {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
  const bytes = Math.min(getHeapStatistics().heap_size_limit / 4, memory / 16)
  return Math.max(32, Math.floor(bytes / 1_048_576))
}

function readTracing(set: v.InferOutput<typeof traces>): TracingOptions | undefined {
  if (set.OTEL_SDK_DISABLED || set.OTEL_TRACES_EXPORTER === 'none') return undefined
  // As OpenTelemetry specifies: the address for traces is used unchanged, the general one gets a path.
  const all = set.OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/+$/, '')
  const url = set.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? `${all}/v1/traces`
  return { url, sampler: set.OTEL_TRACES_SAMPLER, ratio: set.OTEL_TRACES_SAMPLER_ARG }
}

function readSmtp(text: string, from: string): SmtpOptions {
  const { protocol, hostname, port, username, password } = new URL(text)
  const host = hostname.replace(/^\[|\]$/g, '')
  const auth = username
    ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
    : undefined
  const usual = protocol === 'smtps:' ? 465 : 587
  // A password never leaves this machine in clear text.
  const starttls = isLoopback(host) ? 'never' : auth ? 'required' : 'offered'
  const tls = protocol === 'smtps:' ? 'always' : starttls
  return { host, port: Number(port) || usual, tls, auth, from }
}

/** The host part of a URL under which a browser on this machine reaches a service that listens on `host`. */
export function nameHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return isIP(host) === 6 ? `[${host}]` : host
}
