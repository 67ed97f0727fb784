import { createHash } from 'node:crypto'
import { DateTime } from 'luxon'
import type { ClaimedReportRun } from '../../../db/monitoring/reports/claims.ts'
import { readReportFigures } from '../../../db/monitoring/reports/content.ts'
import type { Store } from '../../../db/scope.ts'
import { writeCsvItems } from '../../files/formats/csv.ts'
import type { RichLetter } from '../../mail/letters.ts'
import { drawPng } from './draw.ts'
import { writeMailPage } from './page.ts'
import { writeReportText } from './plain.ts'
import { writeSections } from './sections.ts'

const CSV_COLUMNS = ['section', 'date', 'name', 'measure', 'value']

/** Writes the mail of a run for one recipient. `stopUrl` is where they can stop it; null by the team's own server. */
export type WriteReport = (to: string, stopUrl: string | null) => RichLetter

/** Reads what a run tells, and draws its pictures. Throws NOT_FOUND if the team is deleted. */
export async function writeReport(
  store: Store,
  run: ClaimedReportRun,
  publicUrl: string,
): Promise<WriteReport> {
  const figures = await readReportFigures(store, run)
  const sections = writeSections(figures, run, publicUrl)
  const { id, name, slot, periodFrom, timezone } = run
  const period = `${showTime(periodFrom, timezone)} to ${showTime(slot, timezone)} (${timezone})`
  const head = { name, teamName: figures.teamName, period, publicUrl }
  const pictures: NonNullable<RichLetter['attachments']> = []
  // One after the other: many at once would fill the pool of threads.
  for (const { cid, svg } of sections.flatMap(({ charts }) => charts)) {
    const content = await drawPng(svg)
    pictures.push({ filename: `${cid}.png`, cid, contentType: 'image/png', content })
  }
  const rows = sections.flatMap((section) => section.rows)
  const csv = await writeCsvItems(rows, { columns: CSV_COLUMNS, escapeFormulas: true })
  const date = DateTime.fromJSDate(slot, { zone: timezone }).toISODate()
  const table = {
    filename: `report-${date}.csv`,
    contentType: 'text/csv; charset=utf-8',
    // Excel reads UTF-8 only with a mark.
    content: Buffer.from(`\ufeff${csv}`),
  }
  return (to, stopUrl) => ({
    id: `report.${id}.${createHash('sha256').update(to).digest('hex').slice(0, 12)}`,
    to,
    // Nothing that a user has written is in the subject of a mail that the service's own server sends.
    subject: stopUrl === null ? name : SUBJECT,
    text: writeReportText({ ...head, stopUrl }, sections),
    html: writeMailPage({ ...head, stopUrl }, sections),
    attachments: [...pictures, table],
  })
}

const SUBJECT = 'A scheduled report of your team'

function showTime(at: Date, zone: string): string {
  return DateTime.fromJSDate(at, { zone }).setLocale('en').toFormat('d LLL yyyy, HH:mm')
}
