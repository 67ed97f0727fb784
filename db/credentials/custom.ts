import { HEADER_LINE, QUERY_LINE } from './fields.ts'
import type { CredentialData } from './seal.ts'

/** The names and values that a credential of the type HTTP_CUSTOM adds to a request. */
export function readCustomPairs({ headers, query }: CredentialData): {
  headers: Record<string, string>
  query: Record<string, string>
} {
  return { headers: readPairs(headers, HEADER_LINE), query: readPairs(query, QUERY_LINE) }
}

function readPairs(lines: unknown, line: RegExp): Record<string, string> {
  const list = Array.isArray(lines) ? lines.map(String) : []
  return Object.fromEntries(list.map((one) => line.exec(one)?.slice(1, 3) ?? [one, '']))
}
