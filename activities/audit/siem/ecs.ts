import { isIP } from 'node:net'
import type { AuditEntryView } from '../../../db/audit/list.ts'
import { nameAct, rateEntry, SIEM_SOURCE } from './describe.ts'

const ECS_VERSION = '8.17.0'

/** An entry with the field names of the Elastic Common Schema; what it has no field for is in `perdure`. */
export function toEcs(entry: AuditEntryView, host: string) {
  const { actor, ip, outcome } = entry
  const { vendor, product, version } = SIEM_SOURCE
  const address = ip === null ? {} : { address: ip, ...(isIP(ip) && !ip.includes('%') ? { ip } : {}) }
  return {
    '@timestamp': entry.createdAt.toISOString(),
    ecs: { version: ECS_VERSION },
    message: nameAct(entry.action),
    event: {
      id: entry.id,
      sequence: entry.seq,
      kind: 'event',
      module: 'perdure',
      dataset: 'perdure.audit',
      provider: 'perdure',
      action: entry.action,
      ...classify(entry.action),
      outcome: outcome === 'SUCCESS' ? 'success' : 'failure',
      severity: rateEntry(entry).cef,
    },
    user: {
      ...(entry.userId === null ? {} : { id: entry.userId }),
      ...(entry.userName === null ? {} : { name: entry.userName }),
      ...(actor.role === null ? {} : { roles: [actor.role] }),
    },
    ...(ip === null ? {} : { source: address }),
    ...(entry.userAgent === null ? {} : { user_agent: { original: entry.userAgent } }),
    ...(entry.requestId === null ? {} : { http: { request: { id: entry.requestId } } }),
    organization: { id: entry.teamId },
    observer: { vendor, product, version, hostname: host },
    perdure: {
      outcome,
      actor,
      resource: { type: entry.resourceType, id: entry.resourceId },
      details: entry.details,
      hash: entry.hash,
      prev_hash: entry.prevHash,
    },
  }
}

const SIGNING = /^(SIGNED_|SIGN_IN|ACCOUNT_LOCKED|REVOKED_TOKEN)/
const PEOPLE = /^(TEAM|MEMBER|SDK_TOKEN|PASSWORD|EMAIL|ACCESS)_/

const TYPES: [RegExp, string][] = [
  [/_(CREATED|ADDED)$/, 'creation'],
  [/_(DELETED|REMOVED|REVOKED|PURGED|ERASED|CLEARED)$/, 'deletion'],
  [/_(EXPORTED|READ|DOWNLOADED|TESTED|USED|DENIED)$/, 'access'],
]

/** Categories and types are words that the schema lists. */
function classify(action: string): { category: string[]; type: string[] } {
  if (SIGNING.test(action)) {
    const type = action === 'SIGNED_IN' ? 'start' : action === 'SIGNED_OUT' ? 'end' : 'info'
    return { category: ['authentication'], type: [type] }
  }
  const type = TYPES.find(([ending]) => ending.test(action))?.[1] ?? 'change'
  if (!PEOPLE.test(action)) return { category: ['configuration'], type: [type] }
  return { category: ['iam'], type: [type === 'access' ? 'info' : type] }
}
