import type { Context } from 'hono'
import type { Logger } from 'pino'
import type { Replies } from '../activities/chat/replies.ts'
import type { Outsides } from '../activities/egress/outside.ts'
import type { Evaluator } from '../activities/expressions/evaluator.ts'
import type { Guardrails } from '../activities/guardrails/request.ts'
import type { Mailer } from '../activities/mail/smtp.ts'
import type { Metrics } from '../activities/metrics.ts'
import type { RegisteredSchedule } from '../activities/schedules/schedules.ts'
import type { CarryOptions } from '../activities/temporal/outbox.ts'
import type { Tracing } from '../activities/tracing.ts'
import type { RefusalLimits } from '../db/audit/refusals/refusals.ts'
import type { PrefixChecker } from '../db/audit/verify/prefixes.ts'
import type { ChainVerifier } from '../db/audit/verify/verifyteam.ts'
import type { Bus } from '../db/bus.ts'
import type { TraceContext } from '../db/executions/starts/origins.ts'
import type { TemporalUi } from '../db/executions/temporal.ts'
import type { Exposure } from '../db/operation/exposure.ts'
import type { CountedCaller, RequestCount } from '../db/operation/limits.ts'
import type { Errand } from '../db/outbox.ts'
import type { TeamPlan } from '../db/people/teams.ts'
import type { Scope, Store } from '../db/scope.ts'
import type { OpenWidget } from '../db/widgets/visitors.ts'
import type { Graph } from '../workflows/graph/graph.ts'
import type { Problem } from '../workflows/problem.ts'
import type { ErrorBody } from './http/responses.ts'

/** The values that a handler can read from its context. `scope` is set after each `accept` whose role is not 'public'. */
export type AppEnv = {
  Variables: {
    scope: Scope
    /** The rule of the route, once `accept` has begun. */
    rule?: {
      id: string
      role: string
      showError?: ((c: Context<AppEnv>, body: ErrorBody) => Response) | undefined
    }
    /** The team that the request is about, once that is known. */
    teamId?: string | undefined
    /** The graph of the body, if the route's rule has found one. It has been read and has no problems. */
    graph?: Graph
    /** That graph as it was sent. */
    givenGraph?: { nodes: unknown; edges: unknown }
    /** The warnings about that graph. */
    graphWarnings?: Problem[]
    /** The keys of a JSON body that the route does not know, and those that it does. */
    unknownKeys?: { unknown: string[]; known: string[] }
    /** The warning about numbers in a JSON body that are too large, if it has some. */
    largeNumbers?: string | undefined
    /** The body is made while the client reads it, and never in memory as a whole. */
    streamed?: boolean
    requestId: string
    ip: string
    log: Logger
    /** The trace context of the request's span, if the request is traced. */
    trace?: TraceContext
    /** The buckets that the request counts against, if they do not follow from its caller. */
    buckets?: CountedCaller[]
    /**
     * The widget that the request is about, and its visitor, if they have shown who they are. `isOwnPage`: it comes from
     * the page of the widget that the service itself serves.
     */
    widget?: { open: OpenWidget; visitor?: WidgetVisitor | undefined; isOwnPage: boolean }
    /** The count of the request against its token's team, once the token is found. */
    counted?: RequestCount
    /** Finds the caller, once per request unless `anew`. Throws UNAUTHENTICATED. */
    authenticate: (how?: { anew: boolean }) => Promise<Scope>
    /** The number of losses of rights that had been told when the request came. */
    rightsSeen: number
    /**
     * Calls `lost` once the caller has lost the right to call the route: work that goes on after the handler has
     * answered, or makes it wait, is bound to that right. Returns the function that ends the watch.
     */
    whileAllowed: (lost: () => void) => () => void
    /** Counts the request against its rate limit, at most once per request. Throws THROTTLED. */
    countRequest: (findTeam?: FindTeam) => Promise<void>
  }
}

/** `onPage`: they came by the service's own page of the widget, in a frame, and not by a script on another page. */
export type WidgetVisitor = { sessionId: string; onPage: boolean }

/** Finds the team that a request names, if any. The caller need not be a member. */
export type FindTeam = (scope: Scope) => Promise<string | undefined>

export type ApiDeps = {
  store: Store
  /** Notifies this process of changes. Event streams and waiting requests end when it stops. */
  bus: Bus
  log: Logger
  /** The URL under which users reach the service. If it is https, cookies are Secure. */
  publicUrl: string
  /** How many proxies in front append to X-Forwarded-For. 0 (the default) ignores that header. */
  proxyHops?: number
  /** Further host names, or `*.example.com`, under which the service is reached. Default: none. */
  allowedHosts?: string[]
  /** Further origins whose pages may use the API. Default: none. */
  corsOrigins?: string[]
  /** `false` lifts the rate limits. Requests are still counted, and the headers are still sent. */
  rateLimits?: boolean
  /** How many refused requests get audit entries of their own in a minute; tests set others. */
  refusals?: RefusalLimits
  /** `open` lets anyone create an account. Default: `closed`. */
  signUp?: 'open' | 'closed'
  /** Whether others can reach the service, which closes what is `openByDefault`. */
  exposure?: Exposure | undefined
  /** The parts that are open only as long as others cannot reach the service. */
  openByDefault?: { signUp: boolean; loopback: boolean }
  /** The team plan of new teams. The database's default is ENTERPRISE. */
  defaultPlan?: TeamPlan
  /** The metrics of the whole process. Without them the API creates its own. */
  metrics?: Metrics
  tracing?: Tracing | undefined
  /** The Bearer token that /metrics requires. Without it only this machine may read the metrics. */
  metricsToken?: string | undefined
  /**
   * Intervals of event streams in milliseconds: between heartbeats, between checks of the caller's right, and
   * until a client that reads nothing is disconnected. And how many a person and a team may have open.
   */
  streams?: { heartbeatMs?: number; checkMs?: number; stallMs?: number; ofPerson?: number; ofTeam?: number }
  /** How many requests that wait for the end of an execution a person and a team may have open. */
  waiting?: { ofPerson?: number; ofTeam?: number }
  /** How long a call of a tool over MCP waits for its execution, and the time between two reports on it, in milliseconds. */
  mcp?: { waitMs?: number; progressMs?: number }
  /** How many streams of replies this process keeps open for a person, a team and a visitor. */
  replyStreams?: { ofPerson?: number; ofTeam?: number; ofVisitor?: number }
  /** The replies that are written and read in this process. Without them, only what others write is read. */
  replies?: Replies | undefined
  isReady: () => Promise<{
    database: boolean
    temporal: boolean
    worker: boolean
    models?: boolean
    account?: boolean
  }>
  /** Verifies long audit chains beside the thread that serves requests. Without it, that thread does it. */
  verify?: ChainVerifier | undefined
  /** The same for what is to be purged. */
  checkPrefix?: PrefixChecker | undefined
  /** Evaluates what users try out. Without it that is refused with 503. */
  evaluator?: Evaluator | undefined
  /** Checks texts. Without it that is refused with 503. */
  guardrails?: Guardrails | undefined
  /** The one guarded door to the world. Without it, credentials cannot be tested. */
  outside?: Outsides | undefined
  /** The operator's SMTP server, if there is one. */
  mailer?: Mailer | undefined
  /** Carries out one errand of the outbox and returns whether it is done. Never rejects. */
  carryOut: (errand: Errand, options?: CarryOptions) => Promise<boolean>
  /**
   * Marks an execution as RUNNING whose START was carried out `unmarked`, `agoMs` ago, and returns whether that is done.
   * Never rejects.
   */
  markAwaited?: ((executionId: string, agoMs: number) => Promise<boolean>) | undefined
  /** Temporal's own web UI, if it has one that people can reach. */
  temporalUi?: TemporalUi | undefined
  /** Temporal's schedules of a workflow on these nodes. Rejects if Temporal is unreachable. */
  describeSchedules?: ((workflowId: string, nodeIds: string[]) => Promise<RegisteredSchedule[]>) | undefined
}
