import type { ReportContent } from '../../../db/audit/reports/gather.ts'
import type { ReportCell, ReportSection } from '../../../db/audit/reports/sections.ts'
import { escapeMarkup } from '../../../workflows/texts.ts'
import { writeReportStyle } from './style.ts'

const TITLES: Record<string, string> = {
  COMPLIANCE: 'Compliance report',
  ACTIVITY: 'Activity report',
  SECURITY: 'Security report',
}

/**
 * A report as a page without scripts, that needs nothing from elsewhere and prints well; in pieces: one for each row of
 * a table. Whatever users have written is text, and characters that are not seen are shown.
 */
export function* writeReportHtml(content: ReportContent): Generator<string> {
  const { report, sections } = content
  const title = TITLES[report.type] ?? report.type
  yield `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>${escapePlain(`${title}: ${report.name}`)}</title>
<style>${writeReportStyle(report)}</style>
</head>
<body>
<header>
<p class="kind">Perdure audit</p>
<h1>${escapeText(title)}</h1>
<p class="name">${isolate(report.name)}</p>
</header>
${writeVerdict(content)}
${writeFacts(listFacts(content))}
<nav><h2>Contents</h2><ol>
`
  for (const { id, title, total } of sections)
    yield `<li><a href="#${escapeText(id)}">${escapeText(title)}</a> <span class="count">${total}</span></li>\n`
  yield '<li><a href="#proof">How to check this report</a></li>\n</ol></nav>\n<main>\n'
  for (const section of sections) yield* writeSection(section)
  yield `${writeProof(content)}</main>\n</body>\n</html>\n`
}

function writeVerdict({ proof }: ReportContent): string {
  const { valid, problem, breaks, entriesVerified, intactFrom, erased } = proof
  if (!valid) {
    const where = problem?.seq === null || problem?.seq === undefined ? '' : `, at entry ${problem.seq}`
    return `<section class="verdict bad" role="alert"><h2>The audit chain does not verify</h2>
<p>Found first: ${isolate(problem?.kind ?? '')}${where}. ${isolate(problem?.message ?? '')}. What this report says may have been altered.</p></section>`
  }
  const from = intactFrom > 1 ? ` from entry ${intactFrom} on; earlier ones were purged` : ''
  const reopened =
    breaks.length > 0
      ? ` It was broken before, and reopened by the operator: ${breaks.length === 1 ? 'entry' : 'entries'} ${breaks.map(({ seq }) => seq).join(', ')}.`
      : ''
  const gone =
    erased > 0
      ? ` Of ${erased} the operator has erased names, addresses and details, as entries AUDIT_DETAILS_ERASED say.`
      : ''
  return `<section class="verdict ${breaks.length > 0 ? 'fair' : 'good'}"><h2>The audit chain verifies</h2>
<p>All ${entriesVerified} entries are intact${from}.${escapeText(reopened)}${gone}</p></section>`
}

function listFacts({ report, entries, proof }: ReportContent): [string, string][] {
  const { first, last, count } = entries
  return [
    ['Team', `${report.teamName} (${report.teamId})`],
    ['Period (UTC)', `from ${report.from}, to before ${report.to}`],
    ['Entries in the period', first === null ? 'none' : `${count}: ${first} to ${last}`],
    ['Asked for by', `${report.createdBy.name}, ${report.createdAt}`],
    ['As of', report.madeAt],
    ['Chain verified', proof.verifiedAt],
    ['Report', report.id],
  ]
}

function writeFacts(facts: [string, string][]): string {
  const rows = facts.map(
    ([name, value]) => `<tr><th scope="row">${escapeText(name)}</th><td>${isolate(value)}</td></tr>`,
  )
  return `<table class="facts"><tbody>\n${rows.join('\n')}\n</tbody></table>`
}

function* writeSection({ id, title, about, columns, rows, total }: ReportSection): Generator<string> {
  yield `<section id="${escapeText(id)}">\n<h2>${escapeText(title)}</h2>\n<p class="about">${escapeText(about)}</p>\n`
  if (rows.length === 0) {
    yield '<p class="none">None.</p>\n</section>\n'
    return
  }
  const heads = columns.map(({ title }) => `<th scope="col">${escapeText(title)}</th>`).join('')
  yield `<table><thead><tr>${heads}</tr></thead>\n<tbody>\n`
  for (const row of rows) yield `<tr>${columns.map(({ key }) => writeCell(row[key] ?? null)).join('')}</tr>\n`
  yield '</tbody></table>\n'
  if (rows.length < total)
    yield `<p class="cut">These are the first ${rows.length} of ${total}. The audit itself has all of them; a shorter period makes a shorter table.</p>\n`
  yield '</section>\n'
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/** An act, a kind or a role; and a kind with an id. */
const NAME = /^[A-Z][A-Z_]{0,60}$/
const RESOURCE = /^([A-Z][A-Z_]{0,60}) ([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/

/** Words up to this length are not broken into lines. */
const SHORT = 28

/** Lets a name break after its underscores. */
function breakName(name: string): string {
  return name.replaceAll('_', '_<wbr>')
}

function writeCell(cell: ReportCell): string {
  if (cell === null || cell === '') return '<td class="empty">–</td>'
  if (typeof cell === 'number') return `<td class="number">${cell}</td>`
  if (typeof cell === 'boolean') return `<td>${cell ? 'yes' : 'no'}</td>`
  if (TIME.test(cell)) return `<td class="time">${cell.slice(0, 10)} ${cell.slice(11, 19)}</td>`
  if (ID.test(cell)) return `<td class="id">${cell}</td>`
  const [, kind, id] = RESOURCE.exec(cell) ?? []
  if (kind) return `<td class="word">${breakName(kind)} <span class="id">${id}</span></td>`
  if (NAME.test(cell)) return `<td class="word">${breakName(cell)}</td>`
  return `<td${cell.length <= SHORT && !/\s/.test(cell) ? ' class="word"' : ''}>${isolate(cell)}</td>`
}

function writeProof({ report, proof }: ReportContent): string {
  const { checkpoint, last, publicKeys } = proof
  const facts: [string, string][] = [
    ...(last ? ([['Last entry seen', `${last.seq}, hash ${last.hash}`]] as [string, string][]) : []),
    ...(checkpoint
      ? ([
          ['Checkpoint', `entry ${checkpoint.seq}, hash ${checkpoint.hash}, at ${checkpoint.at}`],
          ['Signature (Ed25519, base64)', checkpoint.signature],
          ['Signed with the key', checkpoint.keyId],
        ] as [string, string][])
      : [['Checkpoint', 'none, because the end of the chain does not verify'] as [string, string]]),
  ]
  const keys = publicKeys
    .filter(({ keyId }) => keyId === checkpoint?.keyId)
    .map(({ publicKey }) => `<pre>${publicKey.trim().split('\n').map(escapeText).join('\n')}</pre>`)
  return `<section id="proof"><h2>How to check this report</h2>
<p class="about">Noted here is where the chain stood when the report was made. Whoever keeps the report can find out later whether somebody has altered the entries that it is about:</p>
<ol class="about">
<li>The service compares the chain with the last entry: <code>GET /api/audit/team/${report.teamId}/verify?seq=…&amp;hash=…</code></li>
<li>Without trusting the service: export all entries with <code>GET /api/audit/team/${report.teamId}/export</code>, and check the file with <code>npx perdure audit verify --file … --key … --checkpoint seq:hash</code>, or with the script of the guide (<code>/api/docs/guide/audit-proof</code>). The key is the one below; <code>GET /api/audit/public-key</code> has all.</li>
<li>The hash of this file is in the entry AUDIT_REPORT_DOWNLOADED.</li>
</ol>
${writeFacts(facts)}
${keys.join('\n')}
</section>
`
}

/** Characters that are not seen, or change the order of those around them: they are shown by their numbers. */
const UNSEEN = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu

/** Makes a text of a text: nothing in it is markup. */
export function escapeText(text: string): string {
  return escapeMarkup(text.toWellFormed()).replace(
    UNSEEN,
    (sign) => `<span class="unseen">${nameCharacter(sign)}</span>`,
  )
}

/** The same where there can be no elements: in a title, or within quotes. */
export function escapePlain(text: string): string {
  const plain = text
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
    .replace(UNSEEN, (sign) => `[${nameCharacter(sign)}]`)
  return escapeMarkup(plain)
}

function nameCharacter(sign: string): string {
  return `U+${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}

/** Like `escapeText`, for what may be written in another direction. */
function isolate(text: string): string {
  return `<bdi>${escapeText(text)}</bdi>`
}
