/** In ascending order: each role may also do what those before it may. Only an SDK token can be a VIEWER. */
export const ROLES = ['VIEWER', 'OPERATOR', 'BUILDER', 'ADMIN'] as const
export type Role = (typeof ROLES)[number]

/** Whether `role` may do everything that `least` may. */
export function covers(role: Role, least: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least)
}

export function lesserRole(a: Role, b: Role): Role {
  return covers(b, a) ? a : b
}

/** An act that must go on while the team's audit chain is broken: it stops something, or shows what is wrong. */
type ActKind = { resource: string; urgent?: true }

/** Every act on a team, or on the instance, in the words of the audit: its least role and what it acts on. */
export const ACTS = {
  TEAM_CREATED: { role: 'ADMIN', resource: 'TEAM' },
  TEAM_UPDATED: { role: 'ADMIN', resource: 'TEAM' },
  TEAM_PLAN_CHANGED: { role: 'ADMIN', resource: 'TEAM' },
  TEAM_DELETED: { role: 'ADMIN', resource: 'TEAM' },
  MEMBER_ADDED: { role: 'ADMIN', resource: 'MEMBER' },
  MEMBER_ROLE_CHANGED: { role: 'ADMIN', resource: 'MEMBER' },
  MEMBER_REMOVED: { role: 'ADMIN', resource: 'MEMBER', urgent: true },
  SDK_TOKEN_CREATED: { role: 'ADMIN', resource: 'SDK_TOKEN' },
  SDK_TOKEN_REVOKED: { role: 'ADMIN', resource: 'SDK_TOKEN', urgent: true },
  WORKFLOW_CREATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_UPDATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_ACTIVATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_DEACTIVATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  /** Not of a PUT, which publishes what it changes: those are WORKFLOW_UPDATED. */
  WORKFLOW_PUBLISHED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_DRAFT_SAVED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_DRAFT_DISCARDED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_VERSION_RESTORED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_VERSION_DELETED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_DELETED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_EXAMPLE_CREATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_EXAMPLE_UPDATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_EXAMPLE_DELETED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_EXPORTED: { role: 'VIEWER', resource: 'WORKFLOW' },
  EXECUTIONS_EXPORTED: { role: 'OPERATOR', resource: 'EXECUTION' },
  BATCH_EVALUATION_CREATED: { role: 'BUILDER', resource: 'BATCH_EVALUATION' },
  BATCH_EVALUATION_CANCELLED: { role: 'BUILDER', resource: 'BATCH_EVALUATION', urgent: true },
  BATCH_EVALUATION_DELETED: { role: 'BUILDER', resource: 'BATCH_EVALUATION' },
  BATCH_EVALUATION_EXPORTED: { role: 'VIEWER', resource: 'BATCH_EVALUATION' },
  VARIABLE_CREATED: { role: 'BUILDER', resource: 'VARIABLE' },
  VARIABLE_UPDATED: { role: 'BUILDER', resource: 'VARIABLE' },
  VARIABLE_DELETED: { role: 'BUILDER', resource: 'VARIABLE' },
  TABLE_CREATED: { role: 'BUILDER', resource: 'DATA_TABLE' },
  TABLE_UPDATED: { role: 'BUILDER', resource: 'DATA_TABLE' },
  TABLE_DELETED: { role: 'BUILDER', resource: 'DATA_TABLE' },
  /** By people and programs: what nodes write, their executions say. */
  TABLE_ROWS_CHANGED: { role: 'OPERATOR', resource: 'DATA_TABLE' },
  CONNECTOR_CREATED: { role: 'BUILDER', resource: 'CONNECTOR' },
  CONNECTOR_UPDATED: { role: 'BUILDER', resource: 'CONNECTOR' },
  CONNECTOR_DELETED: { role: 'BUILDER', resource: 'CONNECTOR' },
  /** One of its actions, by a person or a program, outside of executions. */
  CONNECTOR_TRIED: { role: 'BUILDER', resource: 'CONNECTOR' },
  GUARDRAIL_RULE_CREATED: { role: 'BUILDER', resource: 'GUARDRAIL_RULE' },
  GUARDRAIL_RULE_UPDATED: { role: 'BUILDER', resource: 'GUARDRAIL_RULE' },
  GUARDRAIL_RULE_DELETED: { role: 'BUILDER', resource: 'GUARDRAIL_RULE' },
  CREDENTIAL_CREATED: { role: 'BUILDER', resource: 'CREDENTIAL' },
  CREDENTIAL_UPDATED: { role: 'BUILDER', resource: 'CREDENTIAL' },
  CREDENTIAL_DELETED: { role: 'BUILDER', resource: 'CREDENTIAL' },
  CREDENTIAL_TESTED: { role: 'BUILDER', resource: 'CREDENTIAL' },
  CREDENTIAL_CONNECT_BEGUN: { role: 'BUILDER', resource: 'CREDENTIAL' },
  CREDENTIAL_CONNECTED: { role: 'BUILDER', resource: 'CREDENTIAL' },
  /** By attempts of nodes, audit forwarders and guardrails: one entry for a credential, who has opened it, and an hour. */
  CREDENTIAL_USED: { role: 'BUILDER', resource: 'CREDENTIAL' },
  GUARDRAIL_EXEMPLAR_CREATED: { role: 'BUILDER', resource: 'GUARDRAIL_EXEMPLAR' },
  GUARDRAIL_EXEMPLAR_UPDATED: { role: 'BUILDER', resource: 'GUARDRAIL_EXEMPLAR' },
  GUARDRAIL_EXEMPLAR_DELETED: { role: 'BUILDER', resource: 'GUARDRAIL_EXEMPLAR' },
  ALERT_ACKNOWLEDGED: { role: 'OPERATOR', resource: 'ALERT' },
  ALERT_RESOLVED: { role: 'OPERATOR', resource: 'ALERT' },
  ALERTS_ACKNOWLEDGED: { role: 'OPERATOR', resource: 'TEAM' },
  MODEL_PRICES_UPDATED: { role: 'ADMIN', resource: 'TEAM' },
  MONITORING_CONFIG_UPDATED: { role: 'ADMIN', resource: 'MONITORING_CONFIG' },
  /** What calls to models took, one by one, without their text. */
  USAGE_EXPORTED: { role: 'VIEWER', resource: 'USAGE' },
  SCHEDULED_REPORT_CREATED: { role: 'ADMIN', resource: 'SCHEDULED_REPORT' },
  SCHEDULED_REPORT_UPDATED: { role: 'ADMIN', resource: 'SCHEDULED_REPORT' },
  SCHEDULED_REPORT_DELETED: { role: 'ADMIN', resource: 'SCHEDULED_REPORT' },
  /** A user asked for it; a report at its slots has no entry. */
  SCHEDULED_REPORT_SENT: { role: 'ADMIN', resource: 'SCHEDULED_REPORT' },
  GUARDRAIL_SETTINGS_UPDATED: { role: 'ADMIN', resource: 'TEAM' },
  NOTIFICATION_CHANNEL_CREATED: { role: 'ADMIN', resource: 'NOTIFICATION_CHANNEL' },
  NOTIFICATION_CHANNEL_UPDATED: { role: 'ADMIN', resource: 'NOTIFICATION_CHANNEL' },
  NOTIFICATION_CHANNEL_DELETED: { role: 'ADMIN', resource: 'NOTIFICATION_CHANNEL' },
  NOTIFICATION_CHANNEL_TESTED: { role: 'ADMIN', resource: 'NOTIFICATION_CHANNEL' },
  NOTIFICATION_CHANNEL_SECRET_ROTATED: { role: 'ADMIN', resource: 'NOTIFICATION_CHANNEL' },
  PLAYBOOK_CREATED: { role: 'ADMIN', resource: 'PLAYBOOK' },
  PLAYBOOK_UPDATED: { role: 'ADMIN', resource: 'PLAYBOOK' },
  PLAYBOOK_DELETED: { role: 'ADMIN', resource: 'PLAYBOOK' },
  EVAL_CONFIG_UPDATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  EVAL_CONFIG_DELETED: { role: 'BUILDER', resource: 'WORKFLOW' },
  TEAM_EVAL_CONFIG_UPDATED: { role: 'ADMIN', resource: 'TEAM' },
  TEAM_EVAL_CONFIG_DELETED: { role: 'ADMIN', resource: 'TEAM' },
  EVAL_DIMENSIONS_UPDATED: { role: 'ADMIN', resource: 'TEAM' },
  /** Secrets of a workflow's graph are in credentials now. */
  CREDENTIALS_EXTRACTED: { role: 'BUILDER', resource: 'WORKFLOW' },
  EXECUTION_CANCELLED: { role: 'OPERATOR', resource: 'EXECUTION', urgent: true },
  APPROVAL_DECIDED: { role: 'OPERATOR', resource: 'APPROVAL' },
  EXECUTIONS_CANCELLED: { role: 'OPERATOR', resource: 'EXECUTION', urgent: true },
  EXECUTION_RETRIED: { role: 'OPERATOR', resource: 'EXECUTION' },
  EXECUTION_RERUN: { role: 'OPERATOR', resource: 'EXECUTION' },
  EXECUTION_DELETED: { role: 'BUILDER', resource: 'EXECUTION' },
  EXECUTIONS_DELETED: { role: 'BUILDER', resource: 'EXECUTION' },
  EVENT_SENT: { role: 'OPERATOR', resource: 'EXECUTION' },
  EXECUTIONS_RETRIED: { role: 'OPERATOR', resource: 'EXECUTION' },
  /** Messages are no acts: they are private, and the executions say when there was one. */
  AGENT_CHAT_SESSION_CREATED: { role: 'OPERATOR', resource: 'AGENT_CHAT_SESSION' },
  AGENT_CHAT_SESSION_UPDATED: { role: 'OPERATOR', resource: 'AGENT_CHAT_SESSION' },
  AGENT_CHAT_SESSION_CLEARED: { role: 'OPERATOR', resource: 'AGENT_CHAT_SESSION' },
  AGENT_CHAT_SESSION_DELETED: { role: 'OPERATOR', resource: 'AGENT_CHAT_SESSION' },
  WIDGET_CREATED: { role: 'BUILDER', resource: 'WIDGET' },
  WIDGET_UPDATED: { role: 'BUILDER', resource: 'WIDGET' },
  WIDGET_KEY_ROTATED: { role: 'BUILDER', resource: 'WIDGET' },
  WIDGET_DELETED: { role: 'BUILDER', resource: 'WIDGET' },
  /** Urgent, because an export also shows what is wrong with a broken chain. */
  AUDIT_EXPORTED: { role: 'ADMIN', resource: 'AUDIT', urgent: true },
  /** The personal data of entries was erased; its details name them. Only the operator can do it. */
  AUDIT_DETAILS_ERASED: { role: 'ADMIN', resource: 'USER' },
  AUDIT_PURGED: { role: 'ADMIN', resource: 'AUDIT' },
  AUDIT_RETENTION_UPDATED: { role: 'ADMIN', resource: 'AUDIT' },
  /** Urgent: a broken chain must not stop those who watch it, least of all then. */
  AUDIT_SIEM_READ: { role: 'ADMIN', resource: 'AUDIT', urgent: true },
  AUDIT_FORWARDER_CREATED: { role: 'ADMIN', resource: 'AUDIT_FORWARDER' },
  AUDIT_FORWARDER_UPDATED: { role: 'ADMIN', resource: 'AUDIT_FORWARDER' },
  AUDIT_FORWARDER_DELETED: { role: 'ADMIN', resource: 'AUDIT_FORWARDER' },
  AUDIT_FORWARDER_TESTED: { role: 'ADMIN', resource: 'AUDIT_FORWARDER' },
  /** A report is what shows that a chain is broken, so that it can be asked for and read then too. */
  AUDIT_REPORT_CREATED: { role: 'ADMIN', resource: 'AUDIT_REPORT', urgent: true },
  AUDIT_REPORT_DOWNLOADED: { role: 'ADMIN', resource: 'AUDIT_REPORT', urgent: true },
  AUDIT_REPORT_DELETED: { role: 'ADMIN', resource: 'AUDIT_REPORT' },
  /** These are about the instance, not a team. */
  MASKING_UPDATED: { role: 'ADMIN', resource: 'MASKING' },
  TEAM_EGRESS_UPDATED: { role: 'ADMIN', resource: 'TEAM' },
  /** Requests through a proxy no longer close what is open by default, or close it again. */
  EXPOSURE_OPENED: { role: 'ADMIN', resource: 'EXPOSURE' },
  EXPOSURE_CLOSED: { role: 'ADMIN', resource: 'EXPOSURE' },
  EMAIL_CONFIRMED: { role: 'ADMIN', resource: 'USER' },
  KEYS_ROTATED: { role: 'ADMIN', resource: 'KEY' },
  /** Rows of executions are written anew from Temporal's histories. */
  EXECUTIONS_REBUILT: { role: 'ADMIN', resource: 'EXECUTION', urgent: true },
  /** Begins a new segment of an audit chain that was tampered with: only the operator can do it. */
  AUDIT_REOPENED: { role: 'ADMIN', resource: 'AUDIT_CHAIN' },
} as const satisfies Record<string, ActKind & { role: Role }>

export type Act = keyof typeof ACTS

/**
 * The acts of people on their own accounts, which need no role in a team, and the refusals of the service. A person who
 * signs in or changes a password may be shutting an intruder out, so that is urgent too. `outcome`: the attempt did not
 * succeed.
 */
export const ACCOUNT_ACTS = {
  SIGNED_IN: { resource: 'USER', urgent: true },
  SIGN_IN_FAILED: { resource: 'USER', urgent: true, outcome: 'FAILURE' },
  /** From now on each failure makes the account, the device or the address wait. */
  ACCOUNT_LOCKED: { resource: 'USER', urgent: true, outcome: 'DENIED' },
  SIGNED_OUT: { resource: 'USER', urgent: true },
  SESSION_REFRESHED: { resource: 'USER', urgent: true },
  ACCOUNT_CREATED: { resource: 'USER' },
  /** A sign-up for the e-mail of an existing account; its owner is told by mail. */
  SIGN_UP_REPEATED: { resource: 'USER', outcome: 'DENIED' },
  ACCOUNT_UPDATED: { resource: 'USER' },
  PASSWORD_CHANGED: { resource: 'USER', urgent: true },
  EMAIL_CHANGED: { resource: 'USER' },
  EMAIL_CONFIRMATION_SENT: { resource: 'USER' },
  EMAIL_CONFIRMED: { resource: 'USER' },
  /** These may be in a team's chain: that of the team which the refused request was about. */
  ACCESS_DENIED: { resource: 'ACCESS', urgent: true, outcome: 'DENIED' },
  REVOKED_TOKEN_USED: { resource: 'SDK_TOKEN', urgent: true, outcome: 'DENIED' },
  ENDED_SESSION_USED: { resource: 'USER', urgent: true, outcome: 'DENIED' },
} as const satisfies Record<string, ActKind & { outcome?: 'FAILURE' | 'DENIED' }>

export type AccountAct = keyof typeof ACCOUNT_ACTS
