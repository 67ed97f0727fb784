import { escapePlain, escapeText } from '../../audit/reports/html.ts'
import { COLORS } from './colors.ts'
import type { Chart, Figure, MailSection, ReportItem } from './sections.ts'

/** The head above the sections. */
export type MailHead = {
  name: string
  teamName: string
  period: string
  publicUrl: string
  /** The page where the recipient stops the mails; null: an ADMIN does. */
  stopUrl: string | null
}

const FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
const { ink, muted, line, paper, first } = COLORS

/**
 * A report as the HTML of a mail: tables and styles of their own, because mail programs know little else, and pictures by
 * the ids of its parts. Whatever users have written is text.
 */
export function writeMailPage(
  { name, teamName, period, publicUrl, stopUrl }: MailHead,
  sections: MailSection[],
): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<title>${escapePlain(name)}</title>
</head>
<body style="margin:0;padding:0;background:${paper};color:${ink};${FONT};-webkit-text-size-adjust:100%">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="background:${paper}"><tr><td align="center" style="padding:16px 8px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:600px">
<tr><td style="padding:8px 12px 16px">
<p style="margin:0 0 6px;font-size:13px;font-weight:600;color:${first}">Perdure report</p>
<h1 style="margin:0 0 6px;font-size:24px;line-height:1.25;overflow-wrap:anywhere">${isolateName(name)}</h1>
<p style="margin:0;font-size:14px;line-height:1.5;color:${muted};overflow-wrap:anywhere">${isolateName(teamName)}<br>${escapeText(period)}</p>
</td></tr>
${sections.map(writeSection).join('\n')}
<tr><td style="padding:8px 12px 16px;font-size:12px;line-height:1.5;color:${muted}">
Paler bars are days before this report's time. All figures are in the attached CSV.<br>
You get this mail because an ADMIN of the team has named your address in a scheduled report of ${writeLink(publicUrl, publicUrl)}; ${stopUrl === null ? 'ask them to end it.' : `${writeLink(stopUrl, 'get no more of these mails')}.`}
</td></tr>
</table>
</td></tr></table>
</body>
</html>
`
}

function writeSection({ title, figures, charts, items, notes }: MailSection): string {
  return `<tr><td style="padding:0 0 14px"><table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="background:#ffffff;border:1px solid ${line};border-radius:10px">
<tr><td style="padding:16px 14px 4px"><h2 style="margin:0;font-size:18px;line-height:1.3">${escapeText(title)}</h2></td></tr>
<tr><td style="padding:0 8px">${writeFigures(figures)}</td></tr>
${charts.map(writeChart).join('')}${writeItems(items)}${notes.map(writeNote).join('')}<tr><td style="height:12px;line-height:12px;font-size:0">&nbsp;</td></tr>
</table></td></tr>`
}

/** Two in a line, so that they have room on a phone. */
function writeFigures(figures: Figure[]): string {
  const cells = figures.map(
    ({ label, value, note }) => `<td width="50%" valign="top" style="padding:8px 6px">
<div style="font-size:12px;color:${muted}">${escapeText(label)}</div>
<div style="font-size:22px;line-height:1.3;font-weight:700">${escapeText(value)}</div>
${note ? `<div style="font-size:12px;color:${muted}">${escapeText(note)}</div>` : ''}</td>`,
  )
  const lines: string[] = []
  for (let at = 0; at < cells.length; at += 2) lines.push(`<tr>${cells.slice(at, at + 2).join('')}</tr>`)
  return `<table role="presentation" width="100%" cellpadding="0" cellspacing="0">${lines.join('')}</table>`
}

function writeChart({ cid, title, alt }: Chart): string {
  return `<tr><td style="padding:12px 6px 0"><div style="font-size:13px;font-weight:600;padding:0 8px 4px">${escapeText(title)}</div>
<img src="cid:${cid}" alt="${escapePlain(alt)}" width="584" style="display:block;width:100%;max-width:584px;height:auto;border:0;font-size:12px;line-height:1.5;color:${muted}"></td></tr>
`
}

function writeItems(items: ReportItem[]): string {
  return items
    .map(({ tag, color, text, details, link }) => {
      const said = `<span style="overflow-wrap:anywhere">${isolateName(text)}</span>`
      const mark = tag
        ? `<span style="color:${color}">&#9679;</span> <strong>${escapeText(tag)}</strong> &nbsp;`
        : ''
      const shown = link
        ? `<a href="${escapePlain(link)}" style="color:${muted}">${escapeText(details)}</a>`
        : escapeText(details)
      return `<tr><td style="padding:10px 14px 0;font-size:14px;line-height:1.45">${mark}${said}
<div style="font-size:12px;color:${muted};overflow-wrap:anywhere">${shown}</div></td></tr>
`
    })
    .join('')
}

function writeNote(note: string): string {
  return `<tr><td style="padding:10px 14px 0;font-size:13px;line-height:1.5;color:${muted}">${escapeText(note)}</td></tr>
`
}

function writeLink(url: string, text: string): string {
  return `<a href="${escapePlain(url)}" style="color:${muted}">${escapeText(text)}</a>`
}

function isolateName(text: string): string {
  return `<bdi>${escapeText(text)}</bdi>`
}
