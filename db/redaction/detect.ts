import { escapeMarkup } from '../../workflows/texts.ts'
import { joinOverlaps } from '../detection/overlaps.ts'
import { findCards } from '../detection/pii/cards.ts'
import type { PersonalKind } from '../detection/pii/kinds.ts'
import { findPii } from '../detection/pii/pii.ts'
import { findSecretSpans } from '../detection/secrets/secrets.ts'
import { REDACTED } from '../detection/secrets/structures.ts'
import { replaceSpans } from '../detection/spans.ts'

/** Returns the replacement for what was found. It must not look like personal data of any kind itself. */
export type MaskPii = (kind: PersonalKind, found: string) => string

/** Which personal data to mask, and how. */
export type Pii = { kinds: ReadonlySet<PersonalKind>; mask: MaskPii }

type IsSecretName = (name: string) => boolean

/**
 * Masks everything in a text that is or may be a secret, also what a guardrail check would not tell because it is
 * doubtful, and the personal data that `pii` names; without `pii` only card numbers. Linear time.
 */
export function findSecrets(text: string, pii: Pii | undefined, isSecretName: IsSecretName): string {
  const secrets = findSecretSpans(text, isSecretName)
  const clean = secrets.length === 0 ? text : replaceSpans(text, joinOverlaps(secrets), () => REDACTED)
  if (!pii) return /\d/.test(clean) ? replaceSpans(clean, findCards(clean), () => REDACTED) : clean
  return replaceSpans(clean, findPii(clean, pii.kinds), ({ kind, start, end }) =>
    pii.mask(kind as PersonalKind, clean.slice(start, end)),
  )
}

/** Shorter secrets are masked only where they are a whole value. */
export const LEAST_PARTIAL = 6

/** All forms of the given values in which they are masked within texts, the longest first. */
export function listForms(secrets: Iterable<string>): string[] {
  const forms = new Set<string>()
  for (const secret of secrets)
    if (secret.length >= LEAST_PARTIAL && !REDACTED.includes(secret))
      for (const form of encode(secret)) forms.add(form)
  // The longest first: otherwise a short form could match inside a longer one and leave the rest of it.
  return [...forms].filter((form) => !REDACTED.includes(form)).sort((a, b) => b.length - a.length)
}

/**
 * Returns a function that masks the given values in a text, also in their URL, JSON, hex and base64 forms.
 */
export function compileSecrets(secrets: Iterable<string>): (text: string) => string {
  const given = [...secrets]
  const whole = new Set(given.filter((secret) => secret !== '' && !REDACTED.includes(secret)))
  if (whole.size === 0) return (text) => text
  const ordered = listForms(whole)
  return (text) => {
    if (whole.has(text)) return REDACTED
    let clean = text
    for (const form of ordered) if (clean.includes(form)) clean = clean.replaceAll(form, REDACTED)
    return clean
  }
}

function encode(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const url = encodeURIComponent(secret.toWellFormed())
  const strict = url.replace(/[!'()*~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const forms = [url, strict, strict.replaceAll('%20', '+')]
  forms.push(...forms.map((form) => form.replace(/%../g, (code) => code.toLowerCase())))
  const json = JSON.stringify(secret).slice(1, -1)
  forms.push(secret, json, JSON.stringify(json).slice(1, -1), encodeURI(secret.toWellFormed()))
  // As PHP and Python write JSON, and as templates write HTML.
  const ascii = json.replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
  forms.push(json.replaceAll('/', '\\/'), ascii, ascii.replaceAll('/', '\\/'))
  const html = escapeMarkup(secret)
  forms.push(html, html.replaceAll('&#39;', '&#x27;').replaceAll('&quot;', '&#34;'))
  forms.push(bytes.toString('hex'), bytes.toString('hex').toUpperCase())
  // Within a longer base64 text a secret begins at one of three offsets. The characters at its edges also
  // hold bits of its neighbours, so only the inner ones are compared.
  for (const offset of [0, 1, 2]) {
    const text = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    const inner = text.slice(
      offset === 0 ? 0 : offset + 1,
      (bytes.length + offset) % 3 === 0 ? undefined : -1,
    )
    if (inner.length >= 7) forms.push(inner, inner.replaceAll('+', '-').replaceAll('/', '_'))
  }
  return forms
}
