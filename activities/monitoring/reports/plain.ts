import type { MailHead } from './page.ts'
import type { MailSection } from './sections.ts'

/** A report as the text of a mail: what the pictures show is said. */
export function writeReportText(
  { name, teamName, period, publicUrl, stopUrl }: MailHead,
  sections: MailSection[],
): string {
  const parts = sections.map(({ title, figures, charts, items, notes }) => {
    const lines = figures.map(({ label, value, note }) => `${label}: ${value}${note ? ` (${note})` : ''}`)
    const shown = charts.map(({ alt }) => oneLine(alt))
    const listed = items.map(({ tag, text, details, link }) => {
      const head = `- ${tag ? `[${tag}] ` : ''}${oneLine(text)}`
      return [head, `  ${oneLine(details)}`, ...(link ? [`  ${link}`] : [])].join('\n')
    })
    const blocks = [lines.join('\n'), ...shown, listed.join('\n'), ...notes].filter((block) => block !== '')
    return `${title}\n${'='.repeat(title.length)}\n${blocks.join('\n\n')}`
  })
  const head = `${oneLine(name)}\n${oneLine(teamName)}\n${period}`
  const foot = `You get this mail because an ADMIN of the team has named your address in a scheduled report of\n${publicUrl}${stopUrl === null ? '; ask them to end it.' : `\nTo get no more of these mails:\n${stopUrl}`}`
  return `${[head, ...parts, `--\n${foot}`].join('\n\n')}\n`
}

/** Nothing that users have written can look like a line of its own. */
function oneLine(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
}
