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

/** Every act on a team, or on the instance, in the words of the audit: its least role and what it acts on. */
export const ACTS = {
  TEAM_CREATED: { role: 'ADMIN', resource: 'TEAM' },
  TEAM_UPDATED: { role: 'ADMIN', resource: 'TEAM' },
  TEAM_PLAN_CHANGED: { role: 'ADMIN', resource: 'TEAM' },
  TEAM_DELETED: { role: 'ADMIN', resource: 'TEAM' },
  MEMBER_ADDED: { role: 'ADMIN', resource: 'MEMBER' },
  MEMBER_ROLE_CHANGED: { role: 'ADMIN', resource: 'MEMBER' },
  MEMBER_REMOVED: { role: 'ADMIN', resource: 'MEMBER' },
  SDK_TOKEN_CREATED: { role: 'ADMIN', resource: 'SDK_TOKEN' },
  SDK_TOKEN_REVOKED: { role: 'ADMIN', resource: 'SDK_TOKEN' },
  WORKFLOW_CREATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_UPDATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_ACTIVATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_DEACTIVATED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_VERSION_RESTORED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_VERSION_DELETED: { role: 'BUILDER', resource: 'WORKFLOW' },
  WORKFLOW_DELETED: { role: 'BUILDER', resource: 'WORKFLOW' },
  EXECUTIONS_EXPORTED: { role: 'OPERATOR', resource: 'EXECUTION' },
  VARIABLE_CREATED: { role: 'BUILDER', resource: 'VARIABLE' },
  VARIABLE_UPDATED: { role: 'BUILDER', resource: 'VARIABLE' },
  VARIABLE_DELETED: { role: 'BUILDER', resource: 'VARIABLE' },
  EXECUTION_CANCELLED: { role: 'OPERATOR', resource: 'EXECUTION' },
  APPROVAL_DECIDED: { role: 'OPERATOR', resource: 'APPROVAL' },
  EXECUTIONS_CANCELLED: { role: 'OPERATOR', resource: 'EXECUTION' },
  EXECUTIONS_RETRIED: { role: 'OPERATOR', resource: 'EXECUTION' },
  /** These are about the instance, not a team. */
  MASKING_UPDATED: { role: 'ADMIN', resource: 'MASKING' },
  EMAIL_CONFIRMED: { role: 'ADMIN', resource: 'USER' },
} as const satisfies Record<string, { role: Role; resource: string }>

export type Act = keyof typeof ACTS
