import type { ReportContent } from '../../../db/audit/reports/gather.ts'

/** The name of the shape in which a report is written as JSON. */
const REPORT_FORMAT = 'perdure-audit-report-v1'

/** A report as JSON, in pieces: one for each row of a table. */
export function* writeReportJson({ sections, ...rest }: ReportContent): Generator<string> {
  yield `${JSON.stringify({ format: REPORT_FORMAT, ...rest }).slice(0, -1)},\n"sections":[`
  for (const [place, { rows, ...section }] of sections.entries()) {
    yield `${place > 0 ? ',' : ''}\n${JSON.stringify(section).slice(0, -1)},"rows":[`
    for (const [n, row] of rows.entries()) yield `${n > 0 ? ',' : ''}\n${JSON.stringify(row)}`
    yield ']}'
  }
  yield '\n]}\n'
}
