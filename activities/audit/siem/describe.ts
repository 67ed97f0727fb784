import { readFileSync } from 'node:fs'
import type { AuditEntryView } from '../../../db/audit/list.ts'

const PACKAGE = new URL('../../../package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string }

/** Who sends the events, as SIEMs know them. */
export const SIEM_SOURCE = { vendor: 'Perdure', product: 'Perdure', version }

/** How much an entry matters: `syslog` as in RFC 5424 (6 informational, 4 warning, 3 error), `cef` from 0 to 10. */
export function rateEntry({ action, outcome }: Pick<AuditEntryView, 'action' | 'outcome'>): {
  syslog: 3 | 4 | 6
  cef: number
} {
  // The chain was tampered with.
  if (action === 'AUDIT_REOPENED') return { syslog: 3, cef: 9 }
  if (outcome === 'DENIED') return { syslog: 4, cef: 6 }
  if (outcome === 'FAILURE') return { syslog: 4, cef: 5 }
  return { syslog: 6, cef: 3 }
}

/** An act in plain words, such as `Workflow created` or `SDK token revoked`. */
export function nameAct(action: string): string {
  const words = action
    .toLowerCase()
    .replaceAll('_', ' ')
    .replace(/\b(sdk|siem)\b/, (word) => word.toUpperCase())
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}

/** The name under which the service is reached, for the receivers of its events: printable ASCII, or `-`. */
export function nameSender(publicUrl: string): string {
  const host = URL.parse(publicUrl)?.hostname.replace(/^\[|\]$/g, '') ?? ''
  return printable(host, 255)
}

/** A word of at most `max` printable ASCII characters without spaces; `-` if nothing is left. */
export function printable(text: string, max: number): string {
  return text.replace(/[^\x21-\x7e]/g, '_').slice(0, max) || '-'
}

/** JSON in ASCII on one line. */
export function writeAsciiJson(value: unknown): string {
  return JSON.stringify(value ?? {}).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** The first `max` UTF-16 units of a text, without half a character at the end. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text
  const cut = text.slice(0, max)
  return /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut
}
