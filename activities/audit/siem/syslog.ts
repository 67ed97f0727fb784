import type { AuditEntryView } from '../../../db/audit/list.ts'
import { printable, rateEntry, writeAsciiJson } from './describe.ts'

/** 13: log audit. */
const FACILITY = 13

/** The number that RFC 5612 keeps for those who have none of their own. */
const ELEMENT = 'perdure@32473'

/**
 * An entry as a message of RFC 5424, without a frame: its fields are structured data, and the text is its details, as
 * JSON in ASCII. Fields that are null are left out. `lines`: what becomes of line breaks in the fields. In a frame that
 * says its length they can be kept; where each line is a message, each is one space.
 */
export function writeSyslog(entry: AuditEntryView, host: string, lines: 'kept' | 'space'): string {
  const priority = FACILITY * 8 + rateEntry(entry).syslog
  const head = `<${priority}>1 ${entry.createdAt.toISOString()} ${host} perdure - ${printable(entry.action, 32)}`
  const fields = listParams(entry).flatMap(([name, value]) => {
    if (value === null) return []
    const text = lines === 'space' ? value.replace(/\r\n?|\n/g, ' ') : value
    return [` ${name}="${text.replace(/["\\\]]/g, '\\$&')}"`]
  })
  return `${head} [${ELEMENT}${fields.join('')}] ${writeAsciiJson(entry.details)}`
}

/** A message with its length in bytes before it (RFC 6587, and RFC 5425 over TLS). */
export function frameSyslog(message: string): Buffer {
  const bytes = Buffer.from(message)
  return Buffer.concat([Buffer.from(`${bytes.length} `), bytes])
}

function listParams(entry: AuditEntryView): [name: string, value: string | null][] {
  const { actor } = entry
  return [
    ['id', entry.id],
    ['seq', String(entry.seq)],
    ['team', entry.teamId],
    ['action', entry.action],
    ['outcome', entry.outcome],
    ['resourceType', entry.resourceType],
    ['resourceId', entry.resourceId],
    ['userId', entry.userId],
    ['userName', entry.userName],
    ['actorKind', actor.kind],
    ['actorId', actor.id],
    ['actorRole', actor.role],
    ['ip', entry.ip],
    ['userAgent', entry.userAgent],
    ['requestId', entry.requestId],
    ['hash', entry.hash],
    ['prevHash', entry.prevHash],
  ]
}
