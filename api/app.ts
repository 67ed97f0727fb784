import { Hono } from 'hono'
import type { Logger } from 'pino'
import type { Scope, Store } from '../db/scope.ts'
import { createAuthRoutes } from './auth.ts'
import { allowOrigins } from './cors.ts'
import type { FindTeam } from './count.ts'
import { answerError, answerUnknown } from './errors.ts'
import { createExecutionRoutes } from './executions.ts'
import { shrink } from './gzip.ts'
import { createHealthRoutes } from './health.ts'
import { createHookRoutes } from './hooks.ts'
import { createLimitRoutes } from './limits.ts'
import { createNodeTypeRoutes } from './nodetypes.ts'
import { receive } from './request.ts'
import { createTokenRoutes } from './tokens.ts'
import { createWorkflowRoutes } from './workflows.ts'

/** What every handler finds: `scope` behind any `accept` but a public one, the others always. */
export type AppEnv = {
  Variables: {
    scope: Scope
    requestId: string
    ip: string
    log: Logger
    /** Finds out who asks, once per request; throws UNAUTHENTICATED. */
    authenticate: () => Promise<Scope>
    /** Counts the request against its rate limit, once; throws THROTTLED. */
    count: (findTeam?: FindTeam) => Promise<void>
  }
}

export type ApiDeps = {
  store: Store
  log: Logger
  /** The address users see; an https one makes cookies Secure. */
  publicUrl: string
  /** How many proxies stand in front and append to X-Forwarded-For; 0 (the default) ignores that header. */
  proxyHops?: number
  /** Origins beside the own one whose pages may use the API; none by default. */
  corsOrigins?: string[]
  /** False lifts the rate limits; requests are counted and told all the same. */
  rateLimits?: boolean
  isReady: () => Promise<{ database: boolean; temporal: boolean; worker: boolean }>
  /** Carries out what the outbox says of one execution. Never throws; true once done. */
  carryOut: (executionId: string, kind: 'START' | 'CANCEL' | 'DELETE') => Promise<boolean>
}

/** The whole HTTP API over its dependencies; each noun brings its own routes. */
export function createApp(deps: ApiDeps) {
  const app = new Hono<AppEnv>()
  app.use(receive(deps))
  if (deps.corsOrigins?.length) app.use(allowOrigins(deps.corsOrigins))
  app.use(shrink)
  app.onError((error, c) => answerError(c, error))
  const routes = app
    .route('/', createHealthRoutes(deps))
    .route('/', createAuthRoutes(deps))
    .route('/', createTokenRoutes())
    .route('/', createWorkflowRoutes(deps))
    .route('/', createExecutionRoutes(deps))
    .route('/', createHookRoutes(deps))
    .route('/', createNodeTypeRoutes())
    .route('/', createLimitRoutes())
  app.notFound(answerUnknown(app.routes))
  return routes
}

export type App = ReturnType<typeof createApp>
