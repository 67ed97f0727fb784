import { isIP } from 'node:net'
import type { AuditEntryView } from '../../../db/audit/list.ts'
import { cutText, nameAct, rateEntry, SIEM_SOURCE } from './describe.ts'

/** How many characters the fields may have by the format's dictionary; all others may have 1,023. */
const MAX_LENGTHS: Record<string, number> = { act: 63, outcome: 63, externalId: 40 }
const MAX_LENGTH = 1_023
const MAX_CUSTOM_LENGTH = 4_000

/**
 * An entry as one line of CEF:0, without a line break at its end. Fields that are null or empty are left out, values have
 * no spaces around them, and are cut to the lengths of the format's dictionary; a line break in a value is `\n`.
 */
export function writeCef(entry: AuditEntryView, host: string): string {
  const { vendor, product, version } = SIEM_SOURCE
  const head = [vendor, product, version, entry.action, nameAct(entry.action), String(rateEntry(entry).cef)]
  const fields = listFields(entry, host).flatMap(([key, given]) => {
    const value = cutValue(key, given)
    return value === '' ? [] : [`${key}=${escapeExtension(value)}`]
  })
  return `CEF:0|${head.map(escapeHeader).join('|')}|${fields.join(' ')}`
}

/** `\` and `|` are escaped, and a line break becomes a space. */
function escapeHeader(text: string): string {
  return text.replace(/\r\n?|\n/g, ' ').replace(/[\\|]/g, '\\$&')
}

/** `\` and `=` are escaped, and a line break is written as `\n`; `|` is not special here. */
function escapeExtension(text: string): string {
  return text.replace(/[\\=]/g, '\\$&').replace(/\r\n?|\n/g, '\\n')
}

/** Before it is escaped, so that no escape is cut in two. Spaces at the ends could be those between fields. */
function cutValue(key: string, given: string): string {
  const max = MAX_LENGTHS[key] ?? (/^cs\d$/.test(key) ? MAX_CUSTOM_LENGTH : MAX_LENGTH)
  return cutText(given.replace(/^ +| +$/g, ''), max).replace(/ +$/, '')
}

function listFields(entry: AuditEntryView, host: string): [key: string, value: string][] {
  const { actor, ip } = entry
  const found: [string, string | null][] = [
    ['rt', String(entry.createdAt.getTime())],
    ['externalId', entry.id],
    ['act', entry.action],
    ['outcome', entry.outcome.toLowerCase()],
    ['cat', entry.resourceType],
    ['suid', entry.userId],
    ['suser', entry.userName],
    ['spriv', actor.role],
    ...listSource(ip),
    ['requestClientApplication', entry.userAgent],
    ['dvchost', host],
    ...label('cn1', 'Sequence', String(entry.seq)),
    ...label('cs1', 'Team', entry.teamId),
    ...label('cs2', 'Entry hash', entry.hash),
    ...label('cs3', 'Previous hash', entry.prevHash),
    ...label('cs4', 'Resource type', entry.resourceType),
    ...label('cs5', 'Resource id', entry.resourceId),
    ...label('cs6', 'Request id', entry.requestId),
    ...label('flexString1', 'Actor kind', actor.kind),
    ...label('flexString2', 'Actor id', actor.id),
    ['msg', JSON.stringify(entry.details ?? {})],
  ]
  return found.flatMap(([key, value]) => (value === null ? [] : [[key, value] as [string, string]]))
}

function label(key: string, name: string, value: string | null): [string, string | null][] {
  if (value === null || /^ *$/.test(value)) return []
  return [
    [key, value],
    [`${key}Label`, name],
  ]
}

/** `src` takes IPv4 only. */
function listSource(ip: string | null): [string, string | null][] {
  if (ip === null) return []
  if (isIP(ip) === 4) return [['src', ip]]
  return isIP(ip) === 6 && !ip.includes('%') ? label('c6a2', 'Source IPv6 address', ip) : [['shost', ip]]
}
