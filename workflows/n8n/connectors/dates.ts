import { writeCode } from '../texts.ts'

/** JavaScript that gives a DateTime for a date as n8n reads it: in the time zone of the workflow, unless it has its own. */
const DATE_OF =
  '(given => DateTime.isDateTime(given) ? given : given instanceof Date ? DateTime.fromMillis(given.getTime()) : ' +
  "(text => ['fromISO', 'fromSQL', 'fromRFC2822'].map(how => DateTime[how](text)).find(one => one.isValid) ?? " +
  'DateTime.fromMillis(Date.parse(text)))(String(given).trim()))'

/** JavaScript for a parameter that is a date: `write` makes its text of `date`. Other values stay as they are. */
export function writeDate(value: unknown, write: string): string {
  const made = `(date => date.isValid ? ${write} : String(given))(${DATE_OF}(given))`
  return `(given => given === null || given === undefined || given === '' ? null : ${made})(${writeCode(value)}\n)`
}

/** The time in UTC. */
export const IN_UTC = `date.toUTC().toFormat("yyyy-MM-dd'T'HH:mm:ss'Z'")`
/** The day in the time zone of the workflow. */
export const AS_DAY = "date.setZone('default').toFormat('yyyy-MM-dd')"
