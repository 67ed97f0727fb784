export type Role = 'VIEWER' | 'OPERATOR' | 'BUILDER' | 'ADMIN'

const RANK: Record<Role, number> = { VIEWER: 0, OPERATOR: 1, BUILDER: 2, ADMIN: 3 }

/** Whether `role` may what `least` may. */
export function covers(role: Role, least: Role): boolean {
  return RANK[role] >= RANK[least]
}

export function lesser(a: Role, b: Role): Role {
  return RANK[a] <= RANK[b] ? a : b
}

/** Every act that changes a team's things: the least role for it, and what it acts on. The audit vocabulary. */
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
  /** Of the instance, by its admin. */
  MASKING_UPDATED: { role: 'ADMIN', resource: 'MASKING' },
} as const satisfies Record<string, { role: Role; resource: string }>

export type Act = keyof typeof ACTS
