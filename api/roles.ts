import type { Rule } from './accept.ts'
import type { Operation } from './openapi.ts'

/** What a member may be; an SDK token may also be a VIEWER. */
export const MEMBER_ROLES = ['ADMIN', 'BUILDER', 'OPERATOR'] as const

const SCALE = ['VIEWER', 'OPERATOR', 'BUILDER', 'ADMIN']

/** Whether a rule's role is one in the team that the request is about. */
export function isInTeam(role: Rule['role']): boolean {
  return role === 'member' || SCALE.includes(role)
}

/** Which credentials a route takes, as the document says it. */
export function findSecurity(role: Rule['role']): Operation['security'] {
  if (role === 'public') return []
  return role === 'session' || role === 'instance' ? [{ session: [] }] : [{ session: [] }, { sdkToken: [] }]
}

/** The roles in the team that may call a route; none where it is not about a team. */
export function findRoles(role: Rule['role']): string[] {
  if (role === 'member') return SCALE
  return SCALE.includes(role) ? SCALE.slice(SCALE.indexOf(role)) : []
}

/** The same in a sentence. */
export function describeRole(role: Rule['role']): string {
  if (role === 'public') return 'Needs no credentials.'
  if (role === 'user') return 'For anybody signed in, and any SDK token.'
  if (role === 'session') return 'For anybody signed in; not with an SDK token.'
  if (role === 'instance') return "For the instance's admin, signed in."
  if (role === 'member') return 'For any member of the team, and SDK tokens of any role.'
  return role === 'ADMIN' ? 'Needs the role ADMIN.' : `Needs the role ${role} or higher.`
}
