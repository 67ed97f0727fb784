import { sql } from 'kysely'
import type { Db } from '../../connection.ts'

/** Numbers of entries, both inclusive. */
export type SeqSpan = [from: number, to: number]

/** Entries that are always kept whole: the chain is verified with what they say. */
export const LASTING_ACTIONS: readonly string[] = ['AUDIT_DETAILS_ERASED', 'AUDIT_PURGED', 'AUDIT_REOPENED']

/** Whether an entry says that what is personal about entry `seq` was erased. */
export type IsErased = (seq: number) => boolean

/** Reads what the entries of a chain behind `base` say of erasures. */
export async function readErasures(db: Db, teamId: string, base: number): Promise<IsErased> {
  const { rows } = await sql<{ seq: number; details: string | null }>`
    select seq, details::text as details from audit_entries
    where team_id = ${teamId} and action = 'AUDIT_DETAILS_ERASED' and seq > ${base} order by seq`.execute(db)
  const spans = rows.flatMap(({ seq, details }) => readSpans(readJson(details), seq))
  const sorted = joinSpans(spans)
  return (seq) => {
    let low = 0
    let high = sorted.length - 1
    while (low <= high) {
      const middle = (low + high) >> 1
      const [from, to] = sorted[middle]!
      if (seq < from) high = middle - 1
      else if (seq > to) low = middle + 1
      else return true
    }
    return false
  }
}

/**
 * The entries that an entry `by` names as erased, by its details; none if they are not what the service writes. An
 * entry cannot name those behind it.
 */
export function readSpans(details: unknown, by: number): SeqSpan[] {
  const { seqs } = (details ?? {}) as { seqs?: unknown }
  if (!Array.isArray(seqs)) return []
  return seqs.filter(
    (span): span is SeqSpan =>
      Array.isArray(span) &&
      span.length === 2 &&
      span.every(Number.isSafeInteger) &&
      span[0] <= span[1] &&
      span[1] < by,
  )
}

function readJson(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null')
  } catch {
    return undefined
  }
}

/** Adds a number that is greater than all of the spans, which stay in order. */
export function addSeq(spans: SeqSpan[], seq: number): void {
  const last = spans.at(-1)
  if (last && last[1] === seq - 1) last[1] = seq
  else spans.push([seq, seq])
}

/** The same numbers in order, none of them twice. */
function joinSpans(spans: SeqSpan[]): SeqSpan[] {
  const joined: SeqSpan[] = []
  for (const [from, to] of spans.toSorted((a, b) => a[0] - b[0])) {
    const last = joined.at(-1)
    if (last && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else joined.push([from, to])
  }
  return joined
}
