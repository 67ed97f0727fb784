import { isSecretName } from '../../../workflows/secrets/secretnames.ts'
import { findSecretSpans } from '../secrets/secrets.ts'
import { type Finding, resolveOverlaps } from '../spans.ts'
import type { TextView, ViewKind } from '../views.ts'
import { findAddresses } from './addresses.ts'
import { findCards } from './cards.ts'
import { findEmails } from './emails.ts'
import { findHidden } from './hidden.ts'
import { findIbans } from './ibans.ts'
import { KIND_ORDER, LEAST_CONFIDENCE, type PiiKind } from './kinds.ts'
import { findPhones } from './phones.ts'
import { findSsns } from './ssns.ts'

/**
 * Finds personal data and secrets of the given kinds in a text, also what invisible and lookalike characters hide. A
 * value of one kind is never told as another: a card number is no telephone number, even if only telephone numbers are
 * asked for. With the `views` of the text, e-mail addresses, cards and social security numbers are found that were
 * encoded in it; their place is that of what encodes them. The findings do not overlap, are sorted, and their places
 * are those in the text. Linear time.
 */
export function findPii(
  text: string,
  kinds: ReadonlySet<PiiKind>,
  views: readonly TextView[] = [],
): Finding<PiiKind>[] {
  const found = [
    ...search(text, kinds),
    ...findHidden(text, (read) => search(read, kinds)),
    ...views.filter((view) => ENCODED.has(view.kind)).flatMap((view) => searchView(view, kinds)),
  ]
  const likely = found.filter(({ confidence }) => confidence >= LEAST_CONFIDENCE)
  return resolveOverlaps(likely, KIND_ORDER).filter(({ kind }) => kinds.has(kind))
}

const ENCODED: ReadonlySet<ViewKind> = new Set(['base64', 'hex', 'url', 'html', 'escape'])
/** Kinds that are the same in lower case, and so seldom by chance that they may be looked for in what was decoded. */
const DECODABLE: ReadonlySet<PiiKind> = new Set(['email', 'credit_card', 'ssn'])
const LEAST_DECODED = 0.9

function searchView(view: TextView, kinds: ReadonlySet<PiiKind>): Finding<PiiKind>[] {
  const wanted = new Set([...kinds].filter((kind) => DECODABLE.has(kind)))
  const found = search(view.text, wanted).filter(
    (one) => wanted.has(one.kind) && one.confidence >= LEAST_DECODED,
  )
  return found.map((one) => ({
    ...one,
    ...view.origin(one),
    confidence: one.confidence * 0.9,
    rule: view.kind,
  }))
}

function search(text: string, kinds: ReadonlySet<PiiKind>): Finding<PiiKind>[] {
  const has = (...some: PiiKind[]) => some.some((kind) => kinds.has(kind))
  const digits = /\d/.test(text)
  return [
    ...(has('api_key', 'jwt') ? findSecretSpans(text, isSecretName) : []),
    ...(has('email') ? findEmails(text) : []),
    ...(has('ip_address', 'phone') ? findAddresses(text) : []),
    ...(digits && has('credit_card', 'phone', 'ssn') ? findCards(text) : []),
    ...(digits && has('iban', 'phone', 'credit_card', 'ssn') ? findIbans(text) : []),
    ...(digits && has('ssn', 'phone') ? findSsns(text) : []),
    ...(digits && has('phone') ? findPhones(text) : []),
  ]
}
