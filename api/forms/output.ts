import { isFileValue } from '../../activities/files/files.ts'
import type { FormUser } from '../../db/forms/triggers.ts'
import { findOffset } from '../../workflows/cron/zones.ts'
import { type Form, type FormField, listFields } from '../../workflows/graph/form.ts'
import { FILES_KEY, type ItemFiles } from '../../workflows/itemfiles.ts'
import { getOwn, setOwn } from '../../workflows/json.ts'

type Sent = {
  form: Form
  values: Record<string, unknown>
  /** The query of the form's address; undefined for a page in the middle. */
  query?: Record<string, string | string[]>
  user?: FormUser | undefined
  test: boolean
  timezone: string | null
}

/** What a FORM_TRIGGER or a FORM outputs: `{form, submittedAt}`, or what one of n8n does. */
export function shapeAnswers(shape: unknown, sent: Sent): Record<string, unknown> {
  const { values, query, user } = sent
  if (shape === 'n8n') return shapeForN8n(sent)
  return {
    form: values,
    ...(query ? { query } : {}),
    ...(user ? { user } : {}),
    submittedAt: new Date().toISOString(),
  }
}

function shapeForN8n({ form, values, query, user, test, timezone }: Sent): Record<string, unknown> {
  const item: Record<string, unknown> = {}
  const files: ItemFiles = {}
  for (const [name, field] of listFields(form)) {
    const value = getOwn(values, name)
    if (field.type === 'file') setOwn(item, name, takeFiles(name, value, files))
    else if (shapeValue(field, value) !== undefined) setOwn(item, name, shapeValue(field, value))
  }
  return {
    ...item,
    submittedAt: writeTime(Date.now(), timezone ?? 'UTC'),
    formMode: test ? 'test' : 'production',
    ...(query && Object.keys(query).length > 0 ? { formQueryParameters: query } : {}),
    ...(user ? { user } : {}),
    ...(Object.keys(files).length > 0 ? { [FILES_KEY]: files } : {}),
  }
}

/** The value that n8n's page makes of an answer: it trims texts, and an empty number is 0. */
function shapeValue({ type, format, enum: choices, show }: FormField, value: unknown): unknown {
  if (typeof value === 'string' && !choices && (!format || format === 'email')) return value.trim()
  if (value !== undefined) return value
  if (type === 'array') return []
  if (type === 'number' || type === 'integer') return 0
  return show === 'radio' || type === 'boolean' ? undefined : ''
}

/** Puts the files of a field among those of the item, under n8n's names for them, and returns what n8n says of them. */
function takeFiles(name: string, value: unknown, files: ItemFiles): unknown {
  const given = [value].flat().filter(isFileValue)
  const plain = name.replace(/\W/g, '_')
  for (const [at, file] of given.entries()) setOwn(files, given.length > 1 ? `${plain}_${at}` : plain, file)
  const said = given.map(({ file }) => ({ filename: file.name, mimetype: file.mimeType, size: file.bytes }))
  if (said.length === 0) return null
  return Array.isArray(value) ? said : said[0]
}

/** An instant as the clocks of a zone show it, with its offset. */
function writeTime(at: number, zone: string): string {
  const offset = findOffset(zone, at)
  const shown = new Date(at + offset).toISOString()
  if (offset === 0) return shown
  const minutes = Math.abs(offset) / 60_000
  const pad = (n: number) => String(Math.floor(n)).padStart(2, '0')
  return `${shown.slice(0, -1)}${offset < 0 ? '-' : '+'}${pad(minutes / 60)}:${pad(minutes % 60)}`
}
