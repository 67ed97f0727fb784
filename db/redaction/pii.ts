import ipaddr from 'ipaddr.js'

/** The kinds of personal data that are found in texts. The names are those that guardrails use. */
export const PII_KINDS = ['email', 'phone', 'ssn', 'credit_card', 'iban', 'ip_address'] as const
export type PiiKind = (typeof PII_KINDS)[number]

/** Returns the replacement for what was found. It must not look like personal data of any kind itself. */
export type MaskPii = (kind: PiiKind, found: string) => string

/** Masks the given kinds of personal data in a text, in linear time (see findSecrets in detect.ts). */
export function maskPii(text: string, kinds: ReadonlySet<PiiKind>, mask: MaskPii): string {
  let clean = text
  const digits = /\d/.test(text)
  if (digits && kinds.has('credit_card')) clean = maskCards(clean, (found) => mask('credit_card', found))
  if (digits && kinds.has('iban')) clean = maskIbans(clean, (found) => mask('iban', found))
  if (kinds.has('email') && clean.includes('@')) clean = clean.replace(EMAIL, (found) => mask('email', found))
  if (digits && kinds.has('ssn')) clean = clean.replace(SSN, (found) => mask('ssn', found))
  if (digits && kinds.has('phone')) {
    for (const pattern of PHONES) clean = clean.replace(pattern, (found) => mask('phone', found))
  }
  if (kinds.has('ip_address')) {
    for (const pattern of ADDRESSES)
      clean = clean.replace(pattern, (found) => (isSomebodys(found) ? mask('ip_address', found) : found))
  }
  return clean
}

/** Keeps enough for somebody who knows the value to recognise it: `b***@a.example`, `DE***3000`. */
export function maskPartly(kind: PiiKind, found: string): string {
  if (kind === 'email') return `${[...found][0]}***${found.slice(found.lastIndexOf('@'))}`
  if (kind === 'ip_address') {
    return found.includes(':') ? `${found.split(':')[0]}:***` : `${found.split('.', 2).join('.')}.***`
  }
  const last = found.replace(/[^A-Za-z0-9]/g, '').slice(-4)
  if (kind === 'ssn') return `***-**-${last}`
  if (kind === 'iban') return `${found.slice(0, 2)}***${last}`
  return `***${kind === 'phone' ? last.slice(-2) : last}`
}

const EMAIL = /(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}/g
const SSN = /(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-])/g
// International numbers with +, North American ones with separators.
const PHONES = [
  /(?<![\w+])\+[1-9](?:[ ().-]{0,2}\d){7,14}(?!\d)/g,
  /(?<![\w.+-])(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4}(?![\w-]|\.\d)/g,
]
const ADDRESSES = [
  /(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)/g,
  /(?<![\w:.])[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])/g,
]

// Addresses that every machine has, such as 127.0.0.1, are not personal data.
function isSomebodys(text: string): boolean {
  return ipaddr.isValid(text) && !['loopback', 'unspecified'].includes(ipaddr.process(text).range())
}

// 14 to 19 digits, together or in the groups of a card, but not within a UUID, a decimal or a longer number.
const DIGITS =
  /(?<![0-9A-Za-z_]|[0-9a-fA-F]{4}-|\d\.)(?:\d{14,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{4}([ -])\d{6}\2\d{4,5})(?![\w-]|\.\d)/g
const ISSUERS =
  /^(?:4(?:\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}|6(?:011|4[4-9]\d|5\d\d)\d{12}|62\d{14,17})$/

/** Masks card numbers that have the prefix and length of a known issuer and the right check digit. */
export function maskCards(text: string, mask: (found: string) => string): string {
  return text.replace(DIGITS, (found) => (isCard(found) ? mask(found) : found))
}

function isCard(text: string): boolean {
  const digits = text.replace(/[ -]/g, '')
  if (!ISSUERS.test(digits)) return false
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i])
    sum += i % 2 === 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2
  }
  return sum % 10 === 0
}

// The length of an IBAN by country: with any length allowed, the checksum would be right by chance too often.
const IBANS = new Map(
  'AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28EE20EG29ES24FI18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25QA29RO24RS22SA24SC31SE24SI19SK24SM27ST25TL23TN24TR26UA29VA22VG24XK20'
    .match(/.{4}/g)
    ?.map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
)

function maskIbans(text: string, mask: (found: string) => string): string {
  return text.replace(/(?<!\w)[A-Z]{2}\d\d(?:[ -]?[A-Z0-9]){11,28}/g, (found) => {
    const length = IBANS.get(found.slice(0, 2)) ?? 99
    let at = 0
    for (let taken = 0; at < found.length && taken < length; at++) {
      if (found[at] !== ' ' && found[at] !== '-') taken++
    }
    const compact = found.slice(0, at).replace(/[ -]/g, '')
    if (compact.length !== length) return found
    let rest = 0
    for (const char of compact.slice(4) + compact.slice(0, 4)) {
      for (const digit of String(Number.parseInt(char, 36))) rest = (rest * 10 + Number(digit)) % 97
    }
    return rest === 1 ? mask(found.slice(0, at)) + found.slice(at) : found
  })
}
