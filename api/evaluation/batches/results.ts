import type { Context } from 'hono'
import { type CaseFilter, type CaseRow, readCases } from '../../../db/evaluation/batches/results.ts'
import { redact } from '../../../db/redaction/redact.ts'
import { readRules } from '../../../db/redaction/rules.ts'
import type { Store } from '../../../db/scope.ts'
import type { AppEnv } from '../../env.ts'
import { type CsvCell, writeCsvRecord } from '../../http/csv.ts'
import { streamParts, type WriteNext } from '../../http/download.ts'

/** The number of cases that are read at once: each may have 300 kB. */
const AT_ONCE = 50

/** A case as the API shows it. */
export function showCase(row: CaseRow) {
  const { place, input, judgements, ...rest } = row
  const scoreOf = (name: string) => judgements.find(({ dimension }) => dimension === name)?.score ?? null
  return {
    id: rest.id,
    testCaseIndex: place,
    testInput: input,
    actualOutput: rest.actualOutput,
    expectedOutput: rest.expectedOutput,
    groundednessScore: scoreOf('groundedness'),
    relevanceScore: scoreOf('relevance'),
    safetyScore: scoreOf('safety'),
    scores: Object.fromEntries(judgements.map(({ dimension, score }) => [dimension, score])),
    compositeScore: rest.compositeScore,
    reasoning: Object.fromEntries(judgements.map(({ dimension, explanation }) => [dimension, explanation])),
    flagged: judgements.some(({ flagged }) => flagged),
    goldStandardMatch: rest.goldStandardMatch,
    goldStandardReasoning: rest.goldStandardReasoning,
    goldStandardRung: rest.goldStandardRung,
    passed: rest.passed,
    status: rest.status,
    reason: rest.reason,
    executionId: rest.executionId,
    startedAt: rest.startedAt,
    completedAt: rest.completedAt,
  }
}

/** The cases of a batch one after the other, some at once. */
async function* readEach(store: Store, runId: string, filter: CaseFilter): AsyncGenerator<CaseRow[], void> {
  let after = -1
  for (;;) {
    const rows = await readCases(store.db, runId, { after, limit: AT_ONCE }, filter)
    if (rows.length > 0) yield rows
    if (rows.length < AT_ONCE) return
    after = rows.at(-1)!.place
  }
}

/** Streams all results as a JSON array. */
export function streamResults(c: Context<AppEnv>, store: Store, runId: string, filter: CaseFilter) {
  return stream(c, readEach(store, runId, filter), writeJson(showCase))
}

const COLUMNS =
  'test_case_index status passed composite_score groundedness_score relevance_score safety_score scores gold_standard_match ' +
  'gold_standard_rung gold_standard_reasoning test_input actual_output expected_output reasoning flagged reason execution_id'

/** Streams all results as a file, without personal data and secrets. */
export async function streamExport(c: Context<AppEnv>, store: Store, runId: string, format: 'csv' | 'json') {
  const rules = await readRules(store.db)
  const show = (row: CaseRow) => redact(showCase(row), { pii: true, rules })
  return stream(c, readEach(store, runId, {}), format === 'json' ? writeJson(show) : writeCsv(show))
}

type Write = { begin: string; row: (row: CaseRow, first: boolean) => string; end: string }

function stream(c: Context<AppEnv>, parts: AsyncGenerator<CaseRow[], void>, write: Write) {
  let before = write.begin
  let first = true
  const next: WriteNext = async (put) => {
    put(before)
    before = ''
    const { done, value } = await parts.next()
    if (done) {
      put(write.end)
      return false
    }
    for (const row of value) {
      put(write.row(row, first))
      first = false
    }
    return true
  }
  return streamParts(c, next, async () => void (await parts.return()))
}

const writeJson = (show: (row: CaseRow) => unknown): Write => ({
  begin: '[',
  row: (row, first) => `${first ? '' : ','}\n${JSON.stringify(show(row))}`,
  end: ']',
})

const writeCsv = (show: (row: CaseRow) => ReturnType<typeof showCase>): Write => ({
  begin: writeCsvRecord(COLUMNS.split(' ')),
  row: (row) => writeCsvRecord(listCells(show(row))),
  end: '',
})

function listCells(one: ReturnType<typeof showCase>): CsvCell[] {
  const yesNo = (value: boolean | null) => (value === null ? null : String(value))
  const { testCaseIndex, status, compositeScore, groundednessScore, relevanceScore, safetyScore } = one
  return [
    ...[
      testCaseIndex,
      status,
      yesNo(one.passed),
      compositeScore,
      groundednessScore,
      relevanceScore,
      safetyScore,
    ],
    ...[
      JSON.stringify(one.scores),
      yesNo(one.goldStandardMatch),
      one.goldStandardRung,
      one.goldStandardReasoning,
    ],
    ...[JSON.stringify(one.testInput), one.actualOutput, one.expectedOutput, JSON.stringify(one.reasoning)],
    ...[yesNo(one.flagged), one.reason, one.executionId],
  ]
}
