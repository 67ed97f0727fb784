import { Hono } from 'hono'
import type { Logger } from 'pino'
import { createMetrics, type Metrics } from '../activities/metrics.ts'
import type { Registered } from '../activities/schedules.ts'
import type { Tracing } from '../activities/tracing.ts'
import type { Bus } from '../db/bus.ts'
import type { Errand } from '../db/outbox.ts'
import type { Scope, Store } from '../db/scope.ts'
import type { Plan } from '../db/teams.ts'
import { createAccountRoutes } from './accounts.ts'
import { createAloneRoutes } from './alone.ts'
import { createApprovalRoutes } from './approvals.ts'
import { createAuthRoutes } from './auth.ts'
import { createConsoleRoutes } from './console.ts'
import { allowOrigins } from './cors.ts'
import type { FindTeam } from './count.ts'
import { createDocsRoutes } from './docs.ts'
import { answerError, answerUnknown } from './errors.ts'
import { createEventRoutes } from './events.ts'
import { createExecutionRoutes } from './executions.ts'
import { createExportRoutes } from './export.ts'
import { shrink } from './gzip.ts'
import { createHealthRoutes } from './health.ts'
import { createHookRoutes } from './hooks.ts'
import { createLimitRoutes } from './limits.ts'
import { keepLiteral } from './literal.ts'
import { createMaskingRoutes } from './masking.ts'
import { createMemberRoutes } from './members.ts'
import { createMetricsRoutes } from './metrics.ts'
import { createNodeTypeRoutes } from './nodetypes.ts'
import { observe } from './observe.ts'
import { createRecoveryRoutes } from './recovery.ts'
import { receive } from './request.ts'
import { createScheduleRoutes } from './schedules.ts'
import { createTeamRoutes } from './teams.ts'
import { createTokenRoutes } from './tokens.ts'
import { createTransferRoutes } from './transfer.ts'
import { createVariableRoutes } from './variables.ts'
import { createVersionRoutes } from './versions.ts'
import { createWaitRoutes } from './waits.ts'
import { createWorkflowRoutes } from './workflows.ts'

/** What every handler finds: `scope` behind any `accept` but a public one, the others always. */
export type AppEnv = {
  Variables: {
    scope: Scope
    requestId: string
    ip: string
    log: Logger
    /** Of the request's span, where requests are traced. */
    traceparent?: string
    /** Finds out who asks, once per request; throws UNAUTHENTICATED. */
    authenticate: () => Promise<Scope>
    /** Counts the request against its rate limit, once; throws THROTTLED. */
    count: (findTeam?: FindTeam) => Promise<void>
  }
}

export type ApiDeps = {
  store: Store
  /** What the database tells this process of; who streams or waits ends when it stops. */
  bus: Bus
  log: Logger
  /** The address users see; an https one makes cookies Secure. */
  publicUrl: string
  /** How many proxies stand in front and append to X-Forwarded-For; 0 (the default) ignores that header. */
  proxyHops?: number
  /** Origins beside the own one whose pages may use the API; none by default. */
  corsOrigins?: string[]
  /** False lifts the rate limits; requests are counted and told all the same. */
  rateLimits?: boolean
  /** Whether strangers may make accounts; closed by default. */
  signUp?: 'open' | 'closed'
  /** Of new teams; without it the database's default, ENTERPRISE. */
  defaultPlan?: Plan
  /** Counts of the whole process; without them this API counts for itself. */
  metrics?: Metrics
  tracing?: Tracing | undefined
  /** Who may read the metrics: whoever knows this, or without it this machine. */
  metricsToken?: string | undefined
  /** How often streams of events show that they live, and look whether the caller still may. */
  streams?: { heartbeatMs?: number; checkMs?: number; stallMs?: number }
  isReady: () => Promise<{ database: boolean; temporal: boolean; worker: boolean }>
  /** Carries out what the outbox says of one execution. Never throws; true once done. */
  carryOut: (errand: Errand) => Promise<boolean>
  /** What Temporal has of these schedules of a workflow; rejects where it cannot be asked. */
  describeSchedules?: ((workflowId: string, nodeIds: string[]) => Promise<Registered[]>) | undefined
}

/** The whole HTTP API over its dependencies; each noun brings its own routes. */
export function createApp(deps: ApiDeps) {
  const app = new Hono<AppEnv>()
  const metrics = deps.metrics ?? createMetrics()
  app.use(observe(metrics, deps.tracing))
  app.use(receive(deps))
  if (deps.corsOrigins?.length) app.use(allowOrigins(deps.corsOrigins))
  app.use(shrink)
  app.use(keepLiteral(() => app.routes))
  app.onError((error, c) => answerError(c, error))
  const routes = app
    .route('/', createHealthRoutes(deps))
    .route('/', createMetricsRoutes(deps, metrics))
    .route('/', createAuthRoutes(deps))
    .route('/', createAccountRoutes(deps))
    .route('/', createTeamRoutes(deps))
    .route('/', createMemberRoutes())
    .route('/', createTokenRoutes())
    .route('/', createWorkflowRoutes(deps))
    .route('/', createVersionRoutes(deps))
    .route('/', createTransferRoutes())
    .route('/', createScheduleRoutes(deps))
    .route('/', createAloneRoutes(deps))
    .route('/', createExecutionRoutes(deps))
    .route('/', createRecoveryRoutes(deps))
    .route('/', createEventRoutes(deps))
    .route('/', createWaitRoutes(deps))
    .route('/', createApprovalRoutes(deps))
    .route('/', createExportRoutes())
    .route('/', createHookRoutes(deps))
    .route('/', createVariableRoutes())
    .route('/', createNodeTypeRoutes())
    .route('/', createLimitRoutes())
    .route('/', createMaskingRoutes())
    .route('/', createConsoleRoutes())
    .route(
      '/',
      createDocsRoutes(deps, () => app.routes),
    )
  app.notFound(answerUnknown(app.routes))
  return routes
}

/** What a process without the API answers: its health and its metrics. */
export function createProbes(deps: ApiDeps & { metrics: Metrics }) {
  const app = new Hono<AppEnv>()
  app.use(receive(deps))
  app.onError((error, c) => answerError(c, error))
  const routes = app.route('/', createHealthRoutes(deps)).route('/', createMetricsRoutes(deps, deps.metrics))
  app.notFound(answerUnknown(app.routes))
  return routes
}

export type App = ReturnType<typeof createApp>
