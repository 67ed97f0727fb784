import { ROLES, type Role } from '../../db/acts.ts'
import type { Rule } from '../http/accept.ts'

/** OpenAPI security requirements: one entry for each kind of credentials that an operation takes. */
export type Security = Record<string, never[]>[]

/** True if a rule's role is a role in the team that the request is about. */
export function isInTeam(role: Rule['role']): boolean {
  return role === 'member' || isTeamRole(role)
}

/** The security requirements of a route. Empty if it is public. */
export function findSecurity({ role, person, visitor }: Pick<Rule, 'role' | 'person' | 'visitor'>): Security {
  if (visitor) return visitor === 'needed' ? [{ visitor: [] }] : [{}, { visitor: [] }]
  if (role === 'public') return []
  return person || role === 'session' || role === 'instance'
    ? [{ session: [] }]
    : [{ session: [] }, { sdkToken: [] }]
}

/** The team roles that may call a route. Empty if the route is not about a team. */
export function findRoles(role: Rule['role']): string[] {
  if (role === 'member') return [...ROLES]
  return isTeamRole(role) ? ROLES.slice(ROLES.indexOf(role)) : []
}

/** A sentence on who may call a route. */
export function describeRole({ role, person }: Pick<Rule, 'role' | 'person'>): string {
  const needed = describeLeast(role)
  return person ? `${needed} SDK tokens are not accepted.` : needed
}

function describeLeast(role: Rule['role']): string {
  if (role === 'public') return 'Needs no credentials.'
  if (role === 'user') return 'For any signed-in user or SDK token.'
  if (role === 'session') return 'For any signed-in user. SDK tokens are not accepted.'
  if (role === 'instance') return "For the instance's admin only, signed in."
  if (role === 'member') return 'For any member of the team, and its SDK tokens of any role.'
  return role === 'ADMIN' ? 'Needs the role ADMIN.' : `Needs the role ${role} or higher.`
}

function isTeamRole(role: Rule['role']): role is Role {
  return (ROLES as readonly string[]).includes(role)
}
