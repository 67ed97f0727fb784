import type { Rule } from '../http/accept.ts'
import { ANY_HOST } from '../http/host.ts'
import { isInTeam } from './roles.ts'

/** The meaning of each error response, by status. */
export const FAULTS: Record<number, string> = {
  400: 'The input is invalid. The response names every invalid field',
  401: 'The credentials are missing, wrong or expired',
  403: 'The caller does not have the right to do this',
  404: 'The resource does not exist',
  405: 'The address does not take requests with this method',
  409: 'The resource exists already, or its state does not allow this',
  412: 'The resource has changed since the caller read it',
  413: 'The body is too large',
  415: 'The body is not of a type, or not in an encoding, that is taken here',
  421: 'The service is not served under this host name',
  422: 'The workflow is inactive, or no AI agent workflow',
  429: 'The rate limit is exceeded',
  500: 'The service failed unexpectedly',
  503: 'A system that the service depends on is unreachable at the moment, or the audit chain that the act belongs into has been tampered with (`code` is AUDIT_CHAIN_BROKEN)',
}

/**
 * The statuses of a route's error responses: the rule's `faults` and those that follow from it, ascending.
 */
export function findFaultStatuses(rule: Rule, method: string, path: string): number[] {
  const { role, params, query, json, headers, anyBody, ownBody, faults = [] } = rule
  const inTeam = isInTeam(role)
  const write = method !== 'GET' && path.startsWith('/api/')
  const found = new Set<number>(faults)
  if (params || query || json || headers) found.add(400)
  if (role !== 'public') found.add(401)
  // A write with the session cookie is refused if it comes from a page of another origin.
  if (inTeam || role === 'session' || role === 'instance' || write) found.add(403)
  if (params || inTeam) found.add(404)
  if (json || anyBody || ownBody) found.add(415)
  if (ownBody) found.add(400)
  if (json || anyBody || ownBody) found.add(413)
  if (!ANY_HOST.has(path)) found.add(421)
  if (path !== '/healthz') {
    for (const status of [429, 500, 503]) found.add(status)
  }
  return [...found].sort((a, b) => a - b)
}
