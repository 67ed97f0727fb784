import { Hono } from 'hono'
import { createMetrics, type Metrics } from '../activities/metrics.ts'
import { createAuditRoutes } from './audit/audit.ts'
import { createAuditExportRoutes } from './audit/export.ts'
import { noteRefused } from './audit/refusals.ts'
import { createAuditReportRoutes } from './audit/reports.ts'
import { createAuditRetentionRoutes } from './audit/retention.ts'
import { createForwarderRoutes } from './audit/siem/forwarders.ts'
import { createSiemRoutes } from './audit/siem/siem.ts'
import { createBodyReader } from './bodies/away.ts'
import { createChatMessageRoutes } from './chat/messages.ts'
import { createReplyStreams } from './chat/replies.ts'
import { createChatSessionRoutes } from './chat/sessions.ts'
import { createConnectorRoutes } from './connectors/connectors.ts'
import { createConsoleRoutes } from './console.ts'
import { createCredentialRoutes } from './credentials/credentials.ts'
import { createExtractRoutes } from './credentials/extract.ts'
import { createOAuthRoutes } from './credentials/oauth.ts'
import { createCredentialTestRoutes } from './credentials/test.ts'
import { createCredentialTypeRoutes } from './credentials/types.ts'
import { createDocsRoutes } from './docs/docs.ts'
import type { ApiDeps, AppEnv } from './env.ts'
import { createBatchRoutes } from './evaluation/batches/batches.ts'
import { createBatchEventRoutes } from './evaluation/batches/events.ts'
import { createEvalConfigRoutes } from './evaluation/config.ts'
import { createEvaluationRoutes } from './evaluation/evaluations.ts'
import { createAttemptRoutes } from './executions/attempts.ts'
import { createBulkRoutes } from './executions/bulk.ts'
import { createEventRoutes } from './executions/events.ts'
import { createExecutionRoutes } from './executions/executions.ts'
import { createExportRoutes } from './executions/export.ts'
import { createRequestRoutes } from './executions/requests.ts'
import { createSeats } from './executions/seats.ts'
import { createListeningRoutes } from './executions/starts/listening.ts'
import { createRetryRoutes } from './executions/starts/retry.ts'
import { createSingleRoutes } from './executions/starts/single.ts'
import { createStartRoutes } from './executions/starts/start.ts'
import { createWebhookRoutes } from './executions/starts/webhooks.ts'
import { createApprovalRoutes } from './executions/waits/approvals.ts'
import { createWaitRoutes } from './executions/waits/events.ts'
import { createEvaluateRoutes } from './expressions/evaluate.ts'
import { createFileRoutes } from './files/files.ts'
import { createFormRoutes } from './forms/forms.ts'
import { createFormStepRoutes } from './forms/steps.ts'
import { createGuardrailRoutes } from './guardrails/check.ts'
import { createExemplarRoutes } from './guardrails/exemplars.ts'
import { createRuleRoutes } from './guardrails/rules.ts'
import { createGuardrailSettingsRoutes } from './guardrails/settings.ts'
import { allowOrigins } from './http/cors.ts'
import { countAnswering } from './http/download.ts'
import { createNotFoundHandler, respondWithError } from './http/errors.ts'
import { compressJson } from './http/gzip.ts'
import { guardHost } from './http/host.ts'
import { observe } from './http/observe.ts'
import { receive } from './http/receive.ts'
import { guardStaticPaths } from './http/staticpaths.ts'
import { createMailChoiceRoutes } from './mail/choices.ts'
import { createMcpRoutes } from './mcp/mcp.ts'
import { createAlertRoutes } from './monitoring/alerts.ts'
import { createChannelRoutes } from './monitoring/channels/channels.ts'
import { createDeliveryRoutes } from './monitoring/channels/deliveries.ts'
import { createMonitoringConfigRoutes } from './monitoring/config.ts'
import { createExecutionStatisticsRoutes } from './monitoring/executions.ts'
import { createPlaybookRoutes } from './monitoring/playbooks/playbooks.ts'
import { createScheduledReportRoutes } from './monitoring/reports/reports.ts'
import { createShiftRoutes } from './monitoring/shifts.ts'
import { createTelemetryTotalRoutes } from './monitoring/telemetry/totals.ts'
import { createTraceRoutes } from './monitoring/telemetry/traces.ts'
import { createBreakdownRoutes } from './monitoring/usage/breakdowns.ts'
import { createUsageExportRoutes } from './monitoring/usage/export.ts'
import { createPriceRoutes } from './monitoring/usage/prices.ts'
import { createUsageRoutes } from './monitoring/usage/usage.ts'
import { createEgressRoutes } from './operation/egress.ts'
import { createHealthRoutes } from './operation/health.ts'
import { createLimitRoutes } from './operation/limits.ts'
import { createMaskingRoutes } from './operation/masking.ts'
import { createMetricsRoutes } from './operation/metrics.ts'
import { createAccountRoutes } from './people/accounts.ts'
import { createAuthRoutes } from './people/auth.ts'
import { createEmailRoutes } from './people/emails.ts'
import { createMemberRoutes } from './people/members.ts'
import { createTeamRoutes } from './people/teams.ts'
import { createTokenRoutes } from './people/tokens.ts'
import { createScheduleRoutes } from './schedules/schedules.ts'
import { createTableRoutes } from './tables/tables.ts'
import { createVariableRoutes } from './variables/variables.ts'
import { createEmbedRoutes } from './widgets/embed.ts'
import { createPublicWidgetRoutes } from './widgets/public.ts'
import { createWidgetRoutes } from './widgets/widgets.ts'
import { createDraftRoutes } from './workflows/drafts.ts'
import { createExampleRoutes } from './workflows/examples.ts'
import { createNodeTypeRoutes } from './workflows/nodetypes.ts'
import { createSchemaRoutes } from './workflows/schema.ts'
import { createTransferRoutes } from './workflows/transfer.ts'
import { createVersionRoutes } from './workflows/versions.ts'
import { createWorkflowRoutes } from './workflows/workflows.ts'

/** The whole HTTP API. Each noun contributes its own routes. */
export function createApp(deps: ApiDeps) {
  const app = new Hono<AppEnv>()
  const metrics = deps.metrics ?? createMetrics()
  const streams = createReplyStreams(deps)
  const readAway = createBodyReader()
  const seats = createSeats('waiting requests', deps.waiting)
  app.use(observe(metrics, deps.tracing), countAnswering)
  app.use(receive(deps))
  app.use(guardHost(deps))
  if (deps.corsOrigins?.length) app.use(allowOrigins(deps.corsOrigins))
  app.use(compressJson)
  app.use(guardStaticPaths(() => app.routes))
  app.onError(async (error, c) => {
    await noteRefused(deps, c, error)
    return respondWithError(c, error)
  })
  const routes = app
    .route('/', createHealthRoutes(deps))
    .route('/', createMetricsRoutes(deps, metrics))
    .route('/', createAuthRoutes(deps))
    .route('/', createAccountRoutes(deps))
    .route('/', createEmailRoutes())
    .route('/', createTeamRoutes(deps))
    .route('/', createMemberRoutes())
    .route('/', createTokenRoutes())
    .route('/', createWorkflowRoutes(deps))
    .route('/', createStartRoutes(deps, seats, readAway))
    .route('/', createVersionRoutes(deps))
    .route('/', createDraftRoutes(deps))
    .route('/', createExampleRoutes())
    .route('/', createTransferRoutes())
    .route('/', createScheduleRoutes(deps))
    .route('/', createSingleRoutes(deps))
    .route('/', createExecutionRoutes(deps, seats))
    .route('/', createRetryRoutes(deps))
    .route('/', createBulkRoutes(deps))
    .route('/', createEventRoutes(deps))
    .route('/', createRequestRoutes())
    .route('/', createAttemptRoutes())
    .route('/', createFileRoutes())
    .route('/', createWaitRoutes(deps, readAway))
    .route('/', createApprovalRoutes(deps))
    .route('/', createExportRoutes())
    .route('/', createOutsideRoutes(deps, streams, readAway))
    .route('/', createListeningRoutes(deps))
    .route('/', createChatSessionRoutes())
    .route('/', createChatMessageRoutes(deps, streams))
    .route('/', createWidgetRoutes(deps))
    .route('/', createVariableRoutes())
    .route('/', createTableRoutes())
    .route('/', createConnectorRoutes(deps))
    .route('/', createCredentialRoutes())
    .route('/', createExtractRoutes())
    .route('/', createCredentialTypeRoutes())
    .route('/', createCredentialTestRoutes(deps))
    .route('/', createOAuthRoutes(deps))
    .route('/', createNodeTypeRoutes())
    .route('/', createSchemaRoutes())
    .route('/', createEvaluateRoutes(deps))
    .route('/', createGuardrailRoutes(deps))
    .route('/', createGuardrailSettingsRoutes())
    .route('/', createRuleRoutes(deps))
    .route('/', createExemplarRoutes(deps))
    .route('/', createLimitRoutes())
    .route('/', createMaskingRoutes())
    .route('/', createEgressRoutes())
    .route('/', createUsageRoutes())
    .route('/', createBreakdownRoutes())
    .route('/', createPriceRoutes())
    .route('/', createMonitoringConfigRoutes())
    .route('/', createUsageExportRoutes())
    .route('/', createExecutionStatisticsRoutes())
    .route('/', createScheduledReportRoutes())
    .route('/', createShiftRoutes())
    .route('/', createBatchRoutes(deps))
    .route('/', createBatchEventRoutes(deps))
    .route('/', createAlertRoutes())
    .route('/', createChannelRoutes(deps))
    .route('/', createDeliveryRoutes())
    .route('/', createPlaybookRoutes())
    .route('/', createTraceRoutes())
    .route('/', createTelemetryTotalRoutes())
    .route('/', createEvalConfigRoutes())
    .route('/', createEvaluationRoutes())
    .route('/', createAuditRoutes(deps))
    .route('/', createAuditRetentionRoutes(deps))
    .route('/', createSiemRoutes(deps))
    .route('/', createForwarderRoutes(deps))
    .route('/', createAuditReportRoutes())
    .route('/', createAuditExportRoutes())
    .route('/', createMcpRoutes(deps, seats, app))
    .route('/', createConsoleRoutes())
    .route(
      '/',
      createDocsRoutes(deps, () => app.routes),
    )
  app.notFound(createNotFoundHandler(app.routes))
  return routes
}

/** The routes for people and programs outside of the team. */
function createOutsideRoutes(
  deps: ApiDeps,
  streams: ReturnType<typeof createReplyStreams>,
  readAway: ReturnType<typeof createBodyReader>,
) {
  return new Hono<AppEnv>()
    .route('/', createWebhookRoutes(deps, readAway))
    .route('/', createFormRoutes(deps))
    .route('/', createFormStepRoutes(deps))
    .route('/', createPublicWidgetRoutes(deps, streams))
    .route('/', createEmbedRoutes(deps))
    .route('/', createMailChoiceRoutes(deps))
}

/** The routes of a process without the API: only its health and its metrics. */
export function createProbes(deps: ApiDeps & { metrics: Metrics }) {
  const app = new Hono<AppEnv>()
  app.use(receive(deps))
  app.onError((error, c) => respondWithError(c, error))
  const routes = app.route('/', createHealthRoutes(deps)).route('/', createMetricsRoutes(deps, deps.metrics))
  app.notFound(createNotFoundHandler(app.routes))
  return routes
}

export type App = ReturnType<typeof createApp>
