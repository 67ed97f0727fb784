import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createOutsides } from '../../../activities/egress/outside.ts'
import { createApp } from '../../../api/app.ts'
import { describeApi, type Operation } from '../../../api/docs/openapi.ts'
import { isInTeam } from '../../../api/docs/roles.ts'
import { findRule, type Rule } from '../../../api/http/accept.ts'
import { EXAMPLE_ID } from '../../../api/http/responses.ts'
import { covers, type Role } from '../../../db/acts.ts'
import { createForwarder } from '../../../db/audit/siem/forwarders.ts'
import { INSTANCE_CHAIN } from '../../../db/audit/signing.ts'
import { createConnector } from '../../../db/connectors/connectors.ts'
import { createCredential } from '../../../db/credentials/credentials.ts'
import { createBatchRun } from '../../../db/evaluation/batches/create.ts'
import { listenForCalls } from '../../../db/executions/starts/listeners.ts'
import { makeResumeToken } from '../../../db/executions/waits/events.ts'
import { storeFile } from '../../../db/files/store.ts'
import { createExemplar } from '../../../db/guardrails/exemplars.ts'
import { createRule } from '../../../db/guardrails/rules.ts'
import { makeChoiceToken } from '../../../db/mail/choices.ts'
import { createChannel } from '../../../db/monitoring/channels/channels.ts'
import { createPlaybook } from '../../../db/monitoring/playbooks/playbooks.ts'
import { createScheduledReport } from '../../../db/monitoring/reports/reports.ts'
import { hashEmailToken } from '../../../db/people/mails.ts'
import { createTeam } from '../../../db/people/teams.ts'
import { createToken } from '../../../db/people/tokens.ts'
import { type Scope, serviceScope } from '../../../db/scope.ts'
import { writeRows } from '../../../db/tables/rows.ts'
import { createTable } from '../../../db/tables/tables.ts'
import { createVariable } from '../../../db/variables/variables.ts'
import { createWidget } from '../../../db/widgets/widgets.ts'
import { createExample } from '../../../db/workflows/examples.ts'
import { updateWorkflow } from '../../../db/workflows/update.ts'
import { createWorkflow } from '../../../db/workflows/workflows.ts'
import { PETS } from '../../support/connectors/content.ts'
import { keep } from '../../support/keep.ts'
import { PASSWORD, type Service, startService } from '../../support/service.ts'

/** The callers: their role in the team, and the kind of their credentials. */
const CALLERS = {
  nobody: {},
  'a stranger': { cookie: true },
  "the instance's admin": { cookie: true, instance: true },
  'an OPERATOR': { cookie: true, role: 'OPERATOR' },
  'a BUILDER': { cookie: true, role: 'BUILDER' },
  'an ADMIN': { cookie: true, role: 'ADMIN' },
  'a VIEWER token': { token: true, role: 'VIEWER' },
  'an OPERATOR token': { token: true, role: 'OPERATOR' },
  'a BUILDER token': { token: true, role: 'BUILDER' },
  'an ADMIN token': { token: true, role: 'ADMIN' },
  "another team's ADMIN token": { token: true },
} as const satisfies Record<string, Caller>
type Caller = { cookie?: boolean; token?: boolean; instance?: boolean; role?: Role }

/** Routes that check more than the caller's role, as a chat is its owner's. Their own tests cover that. */
const OWN_GUARD = new Set([
  'readMetrics',
  // Every team has some, others are their team's.
  'readConnector',
  'finishConnect',
  'createChatSession',
  'readChatSession',
  'renameChatSession',
  'deleteChatSession',
  'clearChatSession',
  'postChatMessage',
  'listChatMessages',
  'readChatMessage',
  'followChatReply',
  'stopChatReply',
  // Each tool has its own role, and a cookie is not taken.
  'callMcp',
  // Visitors have no role: pages and tokens let them in.
  'readPublicWidget',
  'openVisitorSession',
  'postVisitorMessage',
  'listVisitorMessages',
  // Nor have people who fill in forms: passwords, sessions and one-time addresses do.
  'showForm',
  'sendForm',
  'sendFormPassword',
  'showTestForm',
  'sendTestForm',
  'sendTestFormPassword',
  'showFormStep',
  'sendFormStep',
  'followForm',
])

/** Acts whose example finds nothing to do, and what only reads, so that there is no transaction. */
const IDLE = new Set([
  'cancelExecutions',
  'evaluateExpression',
  'validateWorkflow',
  'listConnectorOptions',
  'checkText',
  'testGuardrailRule',
  'receiveTraces',
  // A file that no decision names is deleted.
  'sendApprovalFile',
])

/**
 * The audit entries that each operation makes which changes something, or lets data out: exactly these, in the order of
 * their names. Starting executions, posting messages, evaluating expressions and checking texts make none.
 */
const ENTRIES: Record<string, string[]> = {
  executeWorkflow: [],
  fireWebhook: [],
  testWebhook: [],
  listenForCalls: [],
  stopListening: [],
  runNode: [],
  evaluateExpression: [],
  checkText: [],
  // Usage, as that of executions: it is in the totals.
  receiveTraces: [],
  testGuardrailRule: [],
  createGuardrailRule: ['GUARDRAIL_RULE_CREATED'],
  updateGuardrailRule: ['GUARDRAIL_RULE_UPDATED'],
  deleteGuardrailRule: ['GUARDRAIL_RULE_DELETED'],
  // Who has got a mail says it, of their own address: the team has done nothing.
  chooseMail: [],
  signIn: ['SIGNED_IN'],
  refreshSession: ['SESSION_REFRESHED'],
  signOut: ['SIGNED_OUT'],
  register: ['ACCOUNT_CREATED'],
  updateAccount: ['ACCOUNT_UPDATED'],
  changePassword: ['PASSWORD_CHANGED'],
  confirmEmail: ['EMAIL_CONFIRMED'],
  resendConfirmation: ['EMAIL_CONFIRMATION_SENT'],
  confirmUser: ['EMAIL_CONFIRMED'],
  createTeam: ['TEAM_CREATED'],
  updateTeam: ['TEAM_UPDATED'],
  deleteTeam: ['TEAM_DELETED'],
  addMember: ['MEMBER_ADDED'],
  changeRole: ['MEMBER_ROLE_CHANGED'],
  removeMember: ['MEMBER_REMOVED'],
  createSdkToken: ['SDK_TOKEN_CREATED'],
  revokeSdkToken: ['SDK_TOKEN_REVOKED'],
  createWorkflow: ['WORKFLOW_CREATED'],
  updateWorkflow: ['WORKFLOW_DEACTIVATED'],
  // It only reads.
  validateWorkflow: [],
  deleteWorkflow: ['WORKFLOW_DELETED'],
  publishWorkflow: ['WORKFLOW_PUBLISHED'],
  discardDraft: ['WORKFLOW_DRAFT_DISCARDED'],
  restoreVersion: ['WORKFLOW_VERSION_RESTORED'],
  deleteVersion: ['WORKFLOW_VERSION_DELETED'],
  createExample: ['WORKFLOW_EXAMPLE_CREATED'],
  updateExample: ['WORKFLOW_EXAMPLE_UPDATED'],
  deleteExample: ['WORKFLOW_EXAMPLE_DELETED'],
  exportWorkflow: ['WORKFLOW_EXPORTED'],
  importWorkflow: ['WORKFLOW_CREATED'],
  createVariable: ['VARIABLE_CREATED'],
  updateVariable: ['VARIABLE_UPDATED'],
  deleteVariable: ['VARIABLE_DELETED'],
  createConnector: ['CONNECTOR_CREATED'],
  updateConnector: ['CONNECTOR_UPDATED'],
  deleteConnector: ['CONNECTOR_DELETED'],
  tryConnector: ['CONNECTOR_TRIED'],
  // It only reads.
  listConnectorOptions: [],
  createTable: ['TABLE_CREATED'],
  updateTable: ['TABLE_UPDATED'],
  deleteTable: ['TABLE_DELETED'],
  writeRows: ['TABLE_ROWS_CHANGED'],
  updateRows: ['TABLE_ROWS_CHANGED'],
  deleteRows: ['TABLE_ROWS_CHANGED'],
  updateRow: ['TABLE_ROWS_CHANGED'],
  deleteRow: ['TABLE_ROWS_CHANGED'],
  // What it lets out is what every member reads page by page.
  exportRows: [],
  importRows: ['TABLE_ROWS_CHANGED'],
  createGuardrailExemplar: ['GUARDRAIL_EXEMPLAR_CREATED'],
  updateGuardrailExemplar: ['GUARDRAIL_EXEMPLAR_UPDATED'],
  deleteGuardrailExemplar: ['GUARDRAIL_EXEMPLAR_DELETED'],
  startBatch: ['BATCH_EVALUATION_CREATED'],
  cancelBatch: ['BATCH_EVALUATION_CANCELLED'],
  deleteBatch: ['BATCH_EVALUATION_DELETED'],
  exportBatch: ['BATCH_EVALUATION_EXPORTED'],
  createCredential: ['CREDENTIAL_CREATED'],
  updateCredential: ['CREDENTIAL_UPDATED'],
  deleteCredential: ['CREDENTIAL_DELETED'],
  testCredential: ['CREDENTIAL_TESTED'],
  connectCredential: ['CREDENTIAL_CONNECT_BEGUN'],
  // A graph that was saved has no secrets to move: test/api/credentials/extract.test.ts puts some there.
  extractCredentials: [],
  updateModelPrices: ['MODEL_PRICES_UPDATED'],
  updateMonitoringPrices: ['MODEL_PRICES_UPDATED'],
  updateMonitoringConfig: ['MONITORING_CONFIG_UPDATED'],
  exportTokenUsage: ['USAGE_EXPORTED'],
  createScheduledReport: ['SCHEDULED_REPORT_CREATED'],
  updateScheduledReport: ['SCHEDULED_REPORT_UPDATED'],
  deleteScheduledReport: ['SCHEDULED_REPORT_DELETED'],
  sendScheduledReport: ['SCHEDULED_REPORT_SENT'],
  createNotificationChannel: ['NOTIFICATION_CHANNEL_CREATED'],
  updateNotificationChannel: ['NOTIFICATION_CHANNEL_UPDATED'],
  deleteNotificationChannel: ['NOTIFICATION_CHANNEL_DELETED'],
  rotateNotificationChannelSecret: ['NOTIFICATION_CHANNEL_SECRET_ROTATED'],
  testNotificationChannel: ['NOTIFICATION_CHANNEL_TESTED'],
  createPlaybook: ['PLAYBOOK_CREATED'],
  updatePlaybook: ['PLAYBOOK_UPDATED'],
  deletePlaybook: ['PLAYBOOK_DELETED'],
  acknowledgeAlert: ['ALERT_ACKNOWLEDGED'],
  resolveAlert: ['ALERT_RESOLVED'],
  acknowledgeAlerts: ['ALERTS_ACKNOWLEDGED'],
  updateGuardrailSettings: ['GUARDRAIL_SETTINGS_UPDATED'],
  updateEvalConfig: ['EVAL_CONFIG_UPDATED'],
  deleteEvalConfig: ['EVAL_CONFIG_DELETED'],
  updateTeamEvalConfig: ['TEAM_EVAL_CONFIG_UPDATED'],
  deleteTeamEvalConfig: ['TEAM_EVAL_CONFIG_DELETED'],
  updateEvalDimensions: ['EVAL_DIMENSIONS_UPDATED'],
  cancelExecution: ['EXECUTION_CANCELLED'],
  cancelExecutions: ['EXECUTIONS_CANCELLED'],
  deleteExecution: ['EXECUTION_DELETED'],
  deleteExecutions: ['EXECUTIONS_DELETED'],
  retryExecution: ['EXECUTION_RETRIED'],
  rerunExecution: ['EXECUTION_RERUN'],
  retryExecutions: ['EXECUTIONS_RETRIED'],
  exportExecutions: ['EXECUTIONS_EXPORTED'],
  sendEvent: ['EVENT_SENT'],
  resumeExecution: ['EVENT_SENT'],
  decideApproval: ['APPROVAL_DECIDED'],
  sendApprovalFile: [],
  updateMasking: ['MASKING_UPDATED'],
  updateTeamEgress: ['TEAM_EGRESS_UPDATED'],
  createWidget: ['WIDGET_CREATED'],
  updateWidget: ['WIDGET_UPDATED'],
  rotateWidgetKey: ['WIDGET_KEY_ROTATED'],
  deleteWidget: ['WIDGET_DELETED'],
  updateAuditRetention: ['AUDIT_RETENTION_UPDATED'],
  purgeAudit: ['AUDIT_PURGED'],
  exportAudit: ['AUDIT_EXPORTED'],
  readAuditForSiem: ['AUDIT_SIEM_READ'],
  createAuditForwarder: ['AUDIT_FORWARDER_CREATED'],
  updateAuditForwarder: ['AUDIT_FORWARDER_UPDATED'],
  deleteAuditForwarder: ['AUDIT_FORWARDER_DELETED'],
  testAuditForwarder: ['AUDIT_FORWARDER_TESTED'],
  createAuditReport: ['AUDIT_REPORT_CREATED'],
  deleteAuditReport: ['AUDIT_REPORT_DELETED'],
  downloadAuditReport: ['AUDIT_REPORT_DOWNLOADED'],
}

const { routes } = createApp({
  store: { db: {} } as Service['store'],
  bus: { onTold: () => {} } as unknown as Service['bus'],
  log: pino({ level: 'silent' }),
  publicUrl: 'http://127.0.0.1:3000',
  isReady: async () => ({ database: true, temporal: true, worker: true }),
  carryOut: async () => false,
})
const document = describeApi(routes, '0')
const table = routes.flatMap(({ method, path, handler }) => {
  const rule = findRule(handler)
  if (!rule || OWN_GUARD.has(rule.id)) return []
  const methods = Object.entries(document.paths[path.replace(/:(\w+)/g, '{$1}')]!)
  const chosen = methods.filter(([verb]) => method === 'ALL' || verb === method.toLowerCase())
  return chosen.map(([verb, operation]) => ({
    name: `${verb.toUpperCase()} ${path}`,
    verb,
    path,
    rule,
    operation,
  }))
})

const outside = createOutsides({ allowLoopback: false, allow: [] })
const service = await keep(
  startService({
    rateLimits: false,
    // Each refused request has an entry of its own here.
    refusals: { ofCaller: 10_000, ofChain: 100_000 },
    signUp: 'open',
    emailProof: () => 'mail',
    outside,
  }),
)
const stranger = await service.otherTeam()
const people: Record<string, { id: string; email: string; cookie: string }> = {
  'a stranger': stranger,
  "the instance's admin": { id: service.user.id, email: service.user.email, cookie: service.admin },
  'an OPERATOR': await service.signUp(),
  'a BUILDER': await service.signUp(),
  'an ADMIN': await service.signUp(),
  colleague: await service.signUp(),
}
const foreignToken = await service.token('ADMIN', stranger.cookie, stranger.teamId)

/** What the rule says about a caller: whether they pass, or the status they get. */
function expected(rule: Rule, { cookie, token, instance, role }: Caller): 'passes' | 401 | 403 {
  if (rule.role === 'public') return 'passes'
  if (!cookie && !token) return 401
  // A token has no session to extend.
  if (rule.id === 'refreshSession' && token) return 401
  if (rule.role === 'user') return 'passes'
  if (rule.role === 'session') return token ? 403 : 'passes'
  if (rule.role === 'instance') return instance ? 'passes' : 403
  if (!role || (rule.person && token)) return 403
  return rule.role === 'member' || covers(role, rule.role) ? 'passes' : 403
}

/** A new team with one resource of each kind, and with all callers in their roles. */
async function makeWorld() {
  const { db } = service.store
  const userId = people['an ADMIN']!.id
  const admin = { kind: 'USER', id: userId, name: 'ADMIN' } as const
  // A person can make only a few teams, and the instance's admin any number.
  const founder = serviceScope(service.store, admin, [], { userId, instanceAdmin: true })
  const { id: teamId } = await createTeam(founder, { name: 'World' })
  const roles = { 'an OPERATOR': 'OPERATOR', 'a BUILDER': 'BUILDER', colleague: 'OPERATOR' }
  const members = Object.entries(roles).map(([who, role]) => ({ teamId, userId: people[who]!.id, role }))
  await db.insertInto('members').values(members).execute()
  const scope = serviceScope(service.store, admin, [[teamId, 'ADMIN']], { userId })
  const tokens: Partial<Record<Role, { id: string; token: string }>> = {}
  for (const role of ['VIEWER', 'OPERATOR', 'BUILDER', 'ADMIN'] as const)
    tokens[role] = await createToken(scope, teamId, { name: role, role })
  const spare = await createToken(scope, teamId, { name: 'spare', role: 'VIEWER' })
  const workflow = await createWorkflow(scope, { teamId, name: 'World', nodes: NODES, edges: EDGES })
  // Version 1 has no executions and is not the current version, so it can be deleted.
  await updateWorkflow(scope, workflow.id, {
    active: true,
    nodes: NODES.map((node) => ({ ...node, name: node.id })),
    edges: EDGES,
  })
  await updateWorkflow(scope, workflow.id, { draft: true, nodes: NODES, edges: EDGES })
  const call = { name: 'World', trigger: 'GET', request: {} }
  const example = await createExample(scope, workflow.id, call)
  await listenForCalls(scope, workflow.id)
  const totals = { nodes: 0, works: 0, noted: 0, stopped: 0 }
  const report = JSON.stringify({ mapped: [], problems: [], stickyNotes: 0, totals, groups: [] })
  await db.insertInto('importReports').values({ workflowId: workflow.id, report }).execute()
  const executionId = crypto.randomUUID()
  await db
    .insertInto('executions')
    .values({
      id: executionId,
      teamId,
      workflowId: workflow.id,
      workflowName: 'World',
      workflowVersion: 2,
      nodeCount: HOOKS.length,
      trigger: 'API',
      triggerNodeId: 'GET',
      inputData: '{}',
      inputBytes: 2,
      startedByKind: 'USER',
    })
    .execute()
  const endedId = crypto.randomUUID()
  const { rows } =
    await sql`insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count,
      trigger, trigger_node_id, input_data, input_bytes, started_by_kind, status, completed_at)
    select ${endedId}, team_id, workflow_id, workflow_name, workflow_version, node_count, trigger, trigger_node_id,
      input_data, input_bytes, started_by_kind, 'FAILED', now() from executions where id = ${executionId}
    returning id`.execute(db)
  if (rows.length === 0) throw new Error('no ended execution')
  const evaluationId = crypto.randomUUID()
  const judged = { teamId, workflowId: workflow.id }
  await db
    .insertInto('evaluations')
    .values({ id: evaluationId, ...judged, executionId })
    .execute()
  await db
    .insertInto('evalConfigs')
    .values([
      { id: crypto.randomUUID(), ...judged },
      { id: crypto.randomUUID(), teamId },
    ])
    .execute()
  const recordId = crypto.randomUUID()
  await db
    .insertInto('nodeExecutions')
    .values({
      id: recordId,
      executionId,
      nodeId: 'pass',
      nodeName: 'pass',
      nodeType: 'NO_OP',
      status: 'RUNNING',
      startedAt: new Date(),
    })
    .execute()
  const bytes = (async function* () {
    yield Buffer.from('a file')
  })()
  const file = await storeFile(service.store, { executionId }, { name: 'a.txt' }, bytes)
  const variable = await createVariable(scope, { teamId, key: 'place', value: 1 })
  const connector = await createConnector(scope, { teamId, name: 'world', content: PETS })
  const dataTable = await createTable(scope, {
    ...{ teamId, name: 'World' },
    columns: [
      { name: 'email', type: 'text' },
      { name: 'orders', type: 'number' },
    ],
  })
  const { rows: dataRows } = await writeRows(scope, dataTable.id, {
    rows: [{ email: people['a stranger']!.email }],
  })
  const meaning = { model: 'none', rows: Buffer.alloc(0) }
  const exemplar = await createExemplar(
    scope,
    teamId,
    { name: 'World', category: 'other', text: 'A text' },
    async () => meaning,
  )
  const data = { token: 'a token' }
  const credential = await createCredential(scope, { teamId, name: 'World', type: 'HTTP_BEARER', data })
  const client = { clientId: 'c', clientSecret: 's', authorizationUrl: HERE, tokenUrl: HERE }
  const connectable = await createCredential(scope, { teamId, name: 'OAuth', type: 'OAUTH2', data: client })
  const waiting = { executionId, teamId, workflowId: workflow.id, nodeName: 'a', iteration: '' }
  const approvalId = crypto.randomUUID()
  const form = { properties: { contract: { type: 'file' } }, required: [] }
  await db
    .insertInto('pauses')
    .values([
      { ...waiting, id: approvalId, kind: 'APPROVAL', nodeId: 'a', form: JSON.stringify(form) },
      { ...waiting, id: crypto.randomUUID(), kind: 'EVENT', nodeId: 'b', name: 'paid' },
    ])
    .execute()
  const reportId = crypto.randomUUID()
  const reportFile = { bytes: 2, sha256: '00'.repeat(32) }
  const files = JSON.stringify({ html: reportFile, json: reportFile })
  const period = { fromAt: new Date(0), toAt: new Date(), expiresAt: new Date('2100-01-01') }
  await db
    .insertInto('auditReports')
    .values({
      ...{ id: reportId, teamId, name: 'World', type: 'ACTIVITY', status: 'COMPLETED', files },
      ...period,
      createdByName: 'ADMIN',
    })
    .execute()
  const page = Buffer.from('{}')
  await db
    .insertInto('auditReportParts')
    .values([{ reportId, format: 'html', part: 0, bytes: page }])
    .execute()
  const resumeToken = makeResumeToken(service.store.keys, { executionId, nodeId: 'c', iteration: '' })
  const receiver = { type: 'HTTPS', url: 'https://127.0.0.1/', host: null, port: null } as const
  const unused = { caCertificate: null, credentialId: null }
  const forwarder = await createForwarder(scope, teamId, { name: 'World', ...receiver, ...unused })
  const scheduled = await createScheduledReport(scope, teamId, {
    ...{ name: 'World', schedule: '0 7 * * *', timezone: 'UTC', enabled: true },
    ...{ recipients: ['ada@example.com'], metrics: ['token_usage'], credentialId: null },
  })
  const rule = await createRule(scope, teamId, {
    ...{ name: 'World', description: null, enabled: true, severity: 'LOW', action: 'LOGGED' },
    ...{ kind: 'REGEX', config: { pattern: 'a', flags: '' } },
  })
  const channel = await createChannel(scope, teamId, {
    ...{ name: 'World', type: 'WEBHOOK', config: { url: 'https://127.0.0.1/' } },
  })
  const steps = [{ type: 'DEACTIVATE_WORKFLOW' } as const]
  const playbook = await createPlaybook(scope, teamId, { name: 'World', steps })
  const alertId = crypto.randomUUID()
  await db
    .insertInto('alerts')
    .values({
      ...{
        id: alertId,
        teamId,
        type: 'ANOMALY',
        severity: 'HIGH',
        metric: 'latency',
        observed: 2,
        message: 'Slow',
      },
      ...{ windowFrom: new Date(0), windowTo: new Date(3_600_000) },
    })
    .execute()
  const key = { apiKey: 'k' }
  const judge = await createCredential(scope, { teamId, name: 'Judge', type: 'OPENAI', data: key })
  const settings = {
    ...{ name: 'World', provider: 'openai' as const, model: 'm', credentialId: judge.id, dimensions: [] },
    ...{ passThreshold: 3, maxCost: null, runWorkflow: false, concurrency: 1 },
  }
  const cases = [{ input: {}, output: 'a', expected: null }]
  const batch = await createBatchRun(scope, workflow.id, settings, {
    cases,
    idempotencyKey: undefined,
    asked: {},
  })
  const agentId = await addAgent(scope, { teamId, credentialId: judge.id })
  const widget = await createWidget(scope, { teamId, name: 'World', workflowId: agentId })
  const ids = {
    alertId,
    agentId,
    widgetId: widget.id,
    widgetKey: widget.key,
    channelId: channel.id,
    playbookId: playbook.id,
    workflowId: workflow.id,
    exampleId: example.id,
    judgeId: judge.id,
    batchId: batch.id,
    ruleId: rule.id,
    executionId,
    endedId,
    recordId,
    spareId: spare.id,
    variableId: variable.id,
    connectorId: connector.id,
    tableId: dataTable.id,
    rowId: dataRows[0]!.id,
    exemplarId: exemplar.id,
    evaluationId,
    credentialId: credential.id,
    forwarderId: forwarder.id,
    scheduledId: scheduled.id,
    connectableId: connectable.id,
    fileId: file.id,
    approvalId,
    reportId,
    resumeToken,
    mailToken: await makeChoiceToken(service.store, teamId, 'ada@example.com'),
  }
  return { teamId, tokens, ...ids }
}

type World = Awaited<ReturnType<typeof makeWorld>>

/** An active workflow to chat with. */
async function addAgent(scope: Scope, { teamId, credentialId }: { teamId: string; credentialId: string }) {
  const nodes = [
    { id: 'chat', type: 'CHAT_TRIGGER', config: {} },
    { id: 'llm', type: 'LLM', config: { credentialId, model: 'm', prompt: 'x' } },
  ]
  const edges = [{ source: 'chat', target: 'llm' }]
  const { id } = await createWorkflow(scope, { teamId, name: 'Agent', nodes, edges })
  await updateWorkflow(scope, id, { active: true })
  return id
}

const HERE = 'https://accounts.example.com/'

const HOOKS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => ({
  id: method,
  type: 'WEBHOOK_TRIGGER',
  config: { path: 'hook', method },
}))

const NODES = [...HOOKS, { id: 'pass', type: 'NO_OP', config: {} }]
const EDGES = [{ source: 'GET', target: 'pass' }]

/** Fills the parameters of a path. What an `id` refers to follows from the segment before it. */
function fillPath(path: string, world: World, verb: string): string {
  const ids: Record<string, string> = {
    teamId: world.teamId,
    workflowId: world.workflowId,
    userId: people.colleague!.id,
    path: 'hook',
    version: '1',
    other: '2',
    '/workflows': world.workflowId,
    runId: world.batchId,
    // Only an ended execution can be retried, executed again or deleted.
    '/executions': /\/(retry|rerun)$/.test(path) || verb === 'delete' ? world.endedId : world.executionId,
    nodeId: 'pass',
    exampleId: world.exampleId,
    recordId: world.recordId,
    fileId: world.fileId,
    alertId: world.alertId,
    evaluationId: world.evaluationId,
    '/sdk-tokens': world.spareId,
    '/variables': world.variableId,
    '/connectors': world.connectorId,
    '/tables': world.tableId,
    rowId: world.rowId,
    '/exemplars': world.exemplarId,
    '/credentials': path.endsWith('/connect') ? world.connectableId : world.credentialId,
    '/approvals': world.approvalId,
    '/reports': world.reportId,
    '/forwarders': world.forwarderId,
    '/scheduled-reports': world.scheduledId,
    '/rules': world.ruleId,
    '/channels': world.channelId,
    '/playbooks': world.playbookId,
    '/widgets': world.widgetId,
    key: world.widgetKey,
    name: 'paid',
    choice: 'stop',
    '/mail': world.mailToken,
    token: world.resumeToken,
    chapter: 'nodes',
    image: 'execution.png',
  }
  return path
    .replace(/(\/[\w-]+)\/:(\w+)/g, (_, before: string, name: string) => {
      const id = name === 'id' || before === '/mail' ? ids[before] : ids[name]
      if (!id) throw new Error(`the matrix has no value for :${name} in ${path}`)
      return `${before}/${id}`
    })
    .replace(/\/:(\w+)/g, (_, name: string) => `/${ids[name]}`)
}

function fillQuery(operation: Operation, world: World): string {
  const needed = (operation.parameters ?? []).filter(
    ({ in: where, required }) => where === 'query' && required,
  )
  // Only who has no SDK token needs it.
  if (operation.operationId === 'receiveTraces') return `?teamId=${world.teamId}`
  const { teamId, workflowId, batchId } = world
  const values: Record<string, string> = { teamId, workflowId, with: batchId, where: '[]' }
  const pairs = needed.map(({ name }) => `${name}=${values[String(name)]}`)
  return pairs.length > 0 ? `?${pairs.join('&')}` : ''
}

/** The body of an operation that takes CSV, beside what all requests have. */
const csvOf = ({ requestBody }: Operation) =>
  requestBody?.content['text/csv']
    ? { headers: { 'content-type': 'text/csv' }, body: 'email\nada@example.com\n' }
    : {}

/**
 * The document's example with real values: the team's id, the e-mail of an existing user, the right password,
 * and the token that was mailed to the caller.
 */
function fillBody({ operationId, requestBody }: Operation, world: World, emailToken: string): unknown {
  const example = requestBody?.content['application/json']?.example
  if (example === undefined) return undefined
  const fresh = `${randomBytes(6).toString('hex')}@example.com`
  const address = operationId === 'register' ? fresh : people['a stranger']!.email
  const text = JSON.stringify(example).replaceAll(EXAMPLE_ID, world.teamId)
  const body = JSON.parse(text.replaceAll('ada@example.com', address))
  if (operationId === 'signIn') body.password = PASSWORD
  if (operationId === 'cancelExecutions') return { filter: { ids: [world.executionId] } }
  if (operationId === 'deleteExecutions') return { filter: { ids: [world.endedId] } }
  if (operationId === 'acknowledgeAlerts') return { alertIds: [world.alertId], type: 'ANOMALY' }
  if (operationId === 'updateAuditRetention') body.retentionDays = 400
  if (operationId === 'extractCredentials') body.workflowId = world.workflowId
  if (operationId === 'createExample') body.trigger = 'GET'
  if (operationId === 'createWidget') body.workflowId = world.agentId
  if (operationId === 'startBatch') body.judgeCredentialId = world.judgeId
  if (operationId === 'confirmEmail') body.token = emailToken
  if (operationId === 'changePassword')
    Object.assign(body, { currentPassword: PASSWORD, newPassword: `${PASSWORD}!` })
  return body
}

/**
 * The credentials of a caller. With an `emailToken`, which is mailed to it, they are those of a copy of the
 * account, because the request may change its session, password or e-mail.
 */
async function findCredentials(who: string, caller: Caller, world: World, emailToken: string | undefined) {
  if (caller.token) return caller.role ? world.tokens[caller.role]!.token : foreignToken
  if (!caller.cookie) return undefined
  if (emailToken === undefined) return people[who]!.cookie
  return service.signIn(await copyUser(people[who]!.id, emailToken))
}

/**
 * Makes a user with the same name, password and flags, but in no team and with an e-mail that is not confirmed
 * yet. Returns the e-mail.
 */
async function copyUser(id: string, emailToken: string): Promise<string> {
  const { db } = service.store
  const userId = crypto.randomUUID()
  const email = `${randomBytes(6).toString('hex')}@example.com`
  const user = await db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  await db
    .insertInto('users')
    .values({ ...user, id: userId, email, emailConfirmedAt: null })
    .execute()
  const expiresAt = new Date(Date.now() + 60_000)
  await db
    .insertInto('emailTokens')
    .values({ tokenHash: hashEmailToken(emailToken), userId, email, expiresAt })
    .execute()
  return email
}

test('the matrix covers every route', () => {
  expect(table.length).toBeGreaterThan(35)
  const unruled = routes.filter(
    ({ method, path, handler }) => method !== 'ALL' && path.startsWith('/api/') && !findRule(handler),
  )
  const guarded = routes.filter(({ handler }) => OWN_GUARD.has(findRule(handler)?.id ?? ''))
  const ruled = new Set([
    ...table.map(({ name }) => name),
    ...guarded.map(({ method, path }) => `${method} ${path}`),
  ])
  expect(unruled.filter(({ method, path }) => !ruled.has(`${method} ${path}`))).toEqual([])
})

const NAME = '$name admits exactly the callers that its rule names'
const isSample = (_: unknown, index: number) => index % 12 === 0
test.each(table.filter(isSample))(NAME, admitsWhomItNames)
test.each(table.filter((row, index) => !isSample(row, index)))(NAME, { tags: 'long' }, admitsWhomItNames)

async function admitsWhomItNames({ verb, path, rule, operation }: (typeof table)[number]): Promise<void> {
  const writes = verb !== 'get'
  const ask = async (who: string, caller: Caller, world: World) => {
    const throwaway = writes && (rule.role === 'public' || rule.role === 'session')
    const emailToken = randomBytes(32).toString('base64url')
    const as = await findCredentials(who, caller, world, throwaway ? emailToken : undefined)
    const json = fillBody(operation, world, emailToken)
    const url = fillPath(path, world, verb) + fillQuery(operation, world)
    const response = await service.request(url, {
      method: verb.toUpperCase(),
      ...(as ? { as } : {}),
      json,
      ...csvOf(operation),
    })
    return { who, status: response.status, entries: await readEntries(response) }
  }
  const callers = Object.entries<Caller>(CALLERS).map(([who, caller]) => ({
    who,
    caller,
    due: expected(rule, caller),
  }))

  const shared = await makeWorld()
  const before = await countEntries(shared.teamId)
  for (const { who, caller, due } of callers.filter(({ due }) => due !== 'passes')) {
    const { entries, ...answer } = await ask(who, caller, shared)
    expect(answer).toEqual({ who, status: due })
    const isKnown = who !== 'nobody' && isInTeam(rule.role)
    const teamId = isKnown ? shared.teamId : INSTANCE_CHAIN
    expect({ who, entries }).toEqual({
      who,
      entries: [{ action: 'ACCESS_DENIED', outcome: 'DENIED', teamId }],
    })
  }
  expect(await countEntries(shared.teamId), 'a refused caller left something behind').toBe(before)
  const due = ENTRIES[rule.id] ?? []
  expect(
    writes && !ENTRIES[rule.id] ? rule.id : undefined,
    'the operation is not in the table',
  ).toBeUndefined()
  for (const { who, caller } of callers.filter(({ due }) => due === 'passes')) {
    const { status, entries } = await ask(who, caller, writes ? await makeWorld() : shared)
    expect({ who, status }).toEqual({ who, status: status < 300 ? status : 'below 300' })
    // Who is not signed in cannot sign out.
    const made = rule.id === 'signOut' && !caller.cookie ? [] : due
    expect({ who, made: entries.map(({ action }) => action).sort() }).toEqual({ who, made })
  }
}

const acts = table.filter(({ rule, verb }) => isInTeam(rule.role) && verb !== 'get' && !IDLE.has(rule.id))

test.each(acts)(
  '$name is refused if the caller is removed before its transaction begins',
  async ({ verb, path, operation }) => {
    const world = await makeWorld()
    const { id, cookie } = people['an ADMIN']!
    const before = await countEntries(world.teamId)
    let answer: Promise<Response> | undefined
    await service.store.db.transaction().execute(async (tx) => {
      // As the removal of a member does.
      await sql`select hold_team(${world.teamId}, true)`.execute(tx)
      const json = fillBody(operation, world, '')
      const url = fillPath(path, world, verb) + fillQuery(operation, world)
      answer = service.request(url, { method: verb.toUpperCase(), as: cookie, json, ...csvOf(operation) })
      // Acts that need the team together with others try again and again, so nobody can see them wait.
      await sleep(80)
      await tx.deleteFrom('members').where('teamId', '=', world.teamId).where('userId', '=', id).execute()
    })
    expect((await answer!).status).toBe(403)
    expect(await countEntries(world.teamId), 'the act was noted').toBe(before)
  },
)

/** What the request of a response has left in any chain. */
async function readEntries(response: Response) {
  return service.store.db
    .selectFrom('auditEntries')
    .select(['action', 'outcome', 'teamId'])
    .where('requestId', '=', response.headers.get('x-request-id'))
    .execute()
}

/** All but those of refused requests. */
async function countEntries(teamId: string): Promise<number> {
  const entries = await service.store.db
    .selectFrom('auditEntries')
    .select('id')
    .where('teamId', '=', teamId)
    .where('action', '<>', 'ACCESS_DENIED')
    .execute()
  return entries.length
}
