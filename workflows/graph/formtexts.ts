import * as v from 'valibot'
import { findOffset } from '../cron/zones.ts'
import { getOwn } from '../json.ts'
import { describeIssue } from '../problem.ts'
import { type Form, type FormField, listFields, readForm } from './form.ts'

/** What the fields of a page hold, by their names: a text for each value. */
export type Texts = Record<string, string[]>

const EMPTY: string[] = []

/** The texts that fields hold; the names are those of users. */
export function textsOf(texts: Texts, name: string): string[] {
  return getOwn(texts, name) ?? EMPTY
}

/** What the fields hold at first: what the address says, else their defaults. Files and passwords hold nothing. */
export function startTexts(form: Form, given: Texts): Texts {
  const entries = listFields(form).flatMap(
    ([name, { type, format, default: first }]): [string, string[]][] => {
      if (type === 'file' || format === 'password') return []
      const asked = textsOf(given, name)
      if (asked.length > 0) return [[name, asked]]
      return first === undefined || first === null ? [] : [[name, [first].flat().map(String)]]
    },
  )
  return Object.fromEntries(entries)
}

/**
 * The values that were filled in, and what is wrong, by field. A field that was emptied has no value, also where it began
 * with one. A time without a zone is one of `zone`.
 */
export function readFilled(
  form: Form,
  texts: Texts,
  files: ReadonlyMap<string, unknown[]>,
  zone: string,
): { values: Record<string, unknown>; faults: Map<string, string[]> } {
  const fields = listFields(form)
  const given = fields.map(([name, field]) => {
    const value =
      field.type === 'file'
        ? readFiles(field, files.get(name) ?? [])
        : readValue(field, textsOf(texts, name), zone)
    return [name, value] as const
  })
  const filled = Object.fromEntries(given.filter(([, value]) => value !== undefined))
  // Defaults are for fields that are not shown at all: the page has filled in the others.
  const shown = fields.map(([name, field]): [string, FormField] => {
    const { default: _, ...rest } = field
    return [name, field.show === 'hidden' ? field : rest]
  })
  const parsed = v.safeParse(readForm({ ...form, properties: Object.fromEntries(shown) }), filled)
  const faults = new Map<string, string[]>()
  for (const issue of parsed.issues ?? []) {
    const name = String(issue.path?.[0]?.key)
    const field = getOwn(form.properties, name)
    // A fault of a password must not show the password.
    const message = field?.format === 'password' && issue.input !== undefined ? issue.message : say(issue)
    const known = faults.get(name) ?? []
    if (!known.includes(message)) faults.set(name, [...known, message])
  }
  for (const [name, field] of fields) {
    const value = getOwn(filled, name)
    if (form.required.includes(name) && Array.isArray(value) && value.length === 0)
      faults.set(name, ['is required'])
    if (isConsent(field) && value === false && faults.has(name)) faults.set(name, ['must be ticked'])
  }
  return { values: parsed.success ? (parsed.output as Record<string, unknown>) : {}, faults }
}

/** A box that must be ticked. */
export function isConsent({ type, enum: choices }: FormField): boolean {
  return type === 'boolean' && choices?.length === 1 && choices[0] === true
}

/** Whether a field is a box of its own, which is ticked or not. */
export function isBox(field: FormField): boolean {
  return field.type === 'boolean' && (!field.enum || isConsent(field))
}

function say(issue: v.BaseIssue<unknown>): string {
  return describeIssue(issue).replace(/, not an? \w+$/, '')
}

function readFiles({ multiple }: FormField, files: unknown[]): unknown {
  if (files.length === 0) return undefined
  return multiple || files.length > 1 ? files : files[0]
}

/** Undefined for a field that is empty; a text that means no value of the field, so that the form names it. */
function readValue(field: FormField, texts: string[], zone: string): unknown {
  const { type, enum: choices } = field
  if (isBox(field)) return ['true', 'on', '1', 'yes'].includes(texts.at(-1)?.toLowerCase() ?? '')
  const choose = (text: string) => choices!.find((one) => String(one) === text) ?? text
  if (type === 'array') {
    const lines = choices ? texts.filter(Boolean) : texts.flatMap((text) => text.split(/\r?\n/))
    const entries = lines.filter((line) => line.trim() !== '')
    return choices ? entries.map(choose) : entries
  }
  const text = (texts[0] ?? '').replaceAll('\r\n', '\n')
  if (text.trim() === '') return undefined
  if (texts.length > 1) return texts
  if (choices) return choose(text)
  if (type === 'number' || type === 'integer') return readNumber(text.trim())
  if (field.format === 'date-time') return readLocal(text.trim(), zone)
  return field.format === 'email' || field.format === 'uri' ? text.trim() : text
}

function readNumber(text: string): unknown {
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i.test(text) ? Number(text) : Number.NaN
  return Number.isFinite(value) ? value : text
}

/** The instant that clocks of a zone show, as browsers send it: `2026-11-28T10:00`. */
function readLocal(text: string, zone: string): string {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(text)) return text
  const shown = Date.parse(`${text}Z`)
  if (Number.isNaN(shown)) return text
  const at = shown - findOffset(zone, shown - findOffset(zone, shown))
  return new Date(at).toISOString()
}
