import { eachMatch } from '../matches.ts'
import type { Finding } from '../spans.ts'

/** An at sign, also as URLs, HTML and JSON write it. */
const AT = /@|%40|&#0{0,4}64;|&#x0{0,4}40;|&commat;|\\u0040/gi
const LETTER = '\\p{Script=Latin}\\p{Script=Greek}\\p{Script=Cyrillic}\\p{M}'
const IN_LOCAL = new RegExp(`[\\w.%+${LETTER}-]`, 'u')
/** Letters of scripts that have domains of their own. Many of them are written without spaces between words. */
const WIDE =
  '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Arabic}\\p{Script=Hebrew}\\p{Script=Thai}\\p{Script=Devanagari}\\u30fc'
const IN_DOMAIN = new RegExp(`[A-Za-z0-9.${LETTER}${WIDE}-]`, 'u')
/** Text that follows a domain without a space is not a part of it. */
const TOP_BEFORE_WIDE = new RegExp(`^([A-Za-z]{2,24})(?=[${WIDE}])`, 'u')
const TOP = new RegExp(
  `^(?:[A-Za-z]{2,24}|xn--[A-Za-z0-9-]{2,59}|(?=.*[^\\0-\\x7f])[${LETTER}${WIDE}]{2,24})$`,
  'u',
)
const FILES =
  /^(?:png|jpe?g|gif|webp|svg|ico|bmp|tiff?|avif|js|mjs|cjs|ts|tsx|jsx|css|scss|json|html?|map|md|ya?ml|xml|lock|log|txt|tgz)$/i
const MAX_LOCAL = 64
const MAX_DOMAIN = 253

/** `bob (at) mail (dot) example`: what people write against harvesters. */
const SPELLED =
  /(?<![\w.+-])[\w.+-]{1,64}\s?[[({<]\s?at\s?[\])}>]\s?[a-z0-9-]{1,63}(?:\s?(?:\.|[[({<]\s?dot\s?[\])}>])\s?[a-z0-9-]{1,63}){0,4}?\s?(?:\.|[[({<]\s?dot\s?[\])}>])\s?[a-z]{2,24}(?![\w-])/gi

/** E-mail addresses, found from their at signs: in time linear in the text, as both sides are bounded. */
export function findEmails(text: string): Finding<'email'>[] {
  const found: Finding<'email'>[] = []
  let done = 0
  for (const { 0: sign, index } of eachMatch(AT, text)) {
    const start = findLocal(text, Math.max(done, index - MAX_LOCAL - 1), index)
    if (start === undefined) continue
    const end = findDomain(text, index + sign.length)
    if (end === undefined || isNoAddress(text, start, index, end)) continue
    found.push({ kind: 'email', start, end, confidence: 0.99, rule: 'email' })
    done = end
  }
  if (/[[({<]\s?at\s?[\])}>]/i.test(text)) {
    for (const { 0: spelled, index } of eachMatch(SPELLED, text))
      found.push({
        kind: 'email',
        start: index,
        end: index + spelled.length,
        confidence: 0.7,
        rule: 'spelled_email',
      })
  }
  return found
}

function findLocal(text: string, least: number, end: number): number | undefined {
  if (text[end - 1] === '"') return findQuoted(text, least, end)
  let start = end
  while (start > least && IN_LOCAL.test(text[start - 1] ?? '')) start--
  // More than 64 characters are no address, or one that something else was written to without a space.
  if (end - start > MAX_LOCAL) start = end - MAX_LOCAL
  if (text[start - 1] === "'" && /(?<![\p{L}\w])[od]$/iu.test(text.slice(Math.max(0, start - 3), start - 1)))
    start -= 2
  const escaped = /^(?:.*%[0-9a-f]{2})?[.%+-]*/is.exec(text.slice(start, end))?.[0].length ?? 0
  start += escaped
  // An escape of JSON before the address: \nbob@a.example.
  if (text[start - 1] === '\\' && /[nrt]/.test(text[start] ?? '') && end - start > 1) start++
  if (start >= end || text[end - 1] === '.') return undefined
  return start
}

function findQuoted(text: string, least: number, end: number): number | undefined {
  const quote = text.lastIndexOf('"', end - 2)
  return quote >= least && /^[^\r\n\\,:;{}]{1,62}$/.test(text.slice(quote + 1, end - 1)) ? quote : undefined
}

function findDomain(text: string, start: number): number | undefined {
  let end = start
  while (end < text.length && end - start < MAX_DOMAIN && IN_DOMAIN.test(text[end] ?? '')) end++
  const labels = text.slice(start, end).split('.')
  let length = labels.length
  // At the end of a sentence, and in `a@b.example.`, the last dots are not the domain's.
  const isHost = (label: string) =>
    label !== '' && label.length <= 63 && !label.startsWith('-') && !label.endsWith('-')
  const broken = labels.findIndex((label) => !isHost(label))
  if (broken >= 0) {
    const [whole = ''] = /^[^-]*(?:-+[^-]+)*/.exec(labels[broken] ?? '') ?? []
    labels[broken] = whole
    length = isHost(whole) ? broken + 1 : broken
  }
  const top = labels.findIndex((label, at) => at > 0 && at < length && TOP_BEFORE_WIDE.test(label))
  if (top > 0) {
    labels[top] = TOP_BEFORE_WIDE.exec(labels[top] ?? '')?.[1] ?? ''
    length = top + 1
  }
  while (length >= 2 && !TOP.test(labels[length - 1] ?? '')) length--
  if (length < 2) return undefined
  return start + labels.slice(0, length).join('.').length
}

function isNoAddress(text: string, start: number, at: number, end: number): boolean {
  const name = text.slice(start, at)
  const top = text.slice(text.lastIndexOf('.', end - 1) + 1, end)
  // icon@2x.png, pkg@1.2.0.tgz, self@other.shape(...)
  if (FILES.test(top) || text[end] === '(') return true
  // git@host:path/of/repository, and user:password@host of a URL
  if (/^(?:git|hg|svn)$/i.test(name) && /^:[\w~/]/.test(text.slice(end, end + 2))) return true
  return /:\/\/(?:[^\s/@:]{0,64}:)?$/.test(text.slice(Math.max(0, start - 68), start))
}
