import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max'
import type { Finding } from '../spans.ts'
import { findLastWord, readAfter, readBefore, readWords, wordSet } from './context.ts'
import { findRegions, type NamedRegions } from './regions.ts'

const GAP = '[ \\u00a0\\u202f.()/\\u2010-\\u2015\\u2212-]'
/** Digits in groups, with the marks between them in telephone numbers, and an extension. */
const NUMBER = new RegExp(
  `(?<![\\p{L}\\w+$€£¥#/]|[0-9a-f]{4}-|\\d[.,:/]|[\\p{L}_]-|\\d[-./\\u2010-\\u2015])(?:\\+|\\(\\+?)?\\d(?:${GAP}{0,3}\\d){5,17}(?!(?!x\\d)[\\p{L}\\d_]|[.,:]\\d)`,
  'gu',
)
const EXTENSION = /\s{0,2}(?:,\s?)?(?:extension|ext\.?|x|#)\s{0,2}\d{1,6}(?!\w)/iy

const PHONE_WORDS = wordSet(
  'phone|phones|telephone|telephones|tel|tele|tlf|tlfn|tfno|tfn|telf|telefon|telefono|telefone|telefoon|telefonnummer|teléfono|téléphone|tél|telefax|fone|puhelin|puh|mobile|mobiles|mobil|mobilnummer|mobilní|móvil|movil|mobiel|komórka|cellulare|celular|cell|cellphone|gsm|fax|whatsapp|whats app|sms|hotline|helpline|voicemail|pager|landline|viber|ph|mob|hubungi|numéro|appelez|joindre|llamar|llame|llámame|chiamare|chiamami|anrufen|rufnummer|тел|телефон|телефону|телефона|моб|мобильный|факс|τηλέφωνο|τηλ|zadzwoń|dzwoń|zavolejte|volejte|telefonszám|hívjon|sunați|arayın|soita|soittakaa|my number|your number|new number|phoneno|phonenumber',
)
/** Words with other meanings, too: they count on the same line, for a number in groups or of at least nine digits. */
const MAYBE_WORDS = wordSet(
  'call|calls|called|calling|text|texts|texting|ring|desk|office|reach|reached|answer|answering|message to|messages to|signal|contact|contacts|contacting|registered|extension|cells|portable|handy|appel|appeler|nummer|dial|dialing|dialling',
)
const SIGNS = /[☎☏📞📱📲]|电话|手机|電話|携帯|휴대폰|전화|फ़ोन|هاتف|جوال|تلفن|טלפון/u
/** Letters that stand for words on business cards: `T: 020 7946 0958`. */
const LETTERS = /(?<![\w])[MTPF][.:]\s{0,2}$/
/** Words that mark a number as another kind. If words of both kinds precede the number, the last one decides. */
const OTHER_WORDS = wordSet(
  'order|orders|invoice|invoices|rechnung|serial|sku|ticket|tickets|case|cases|tracking|model|models|ref|reference|isbn|issn|item|items|product|products|lot|lots|batch|policy|docket|version|versions|v|account|accounts|acct|konto|iban|bic|routing|swift|card|cards|ssn|social security|passport|licence|license|vat|ein|tax|id|ids|uid|pid|zip|postal|postcode|population|total|amount|price|cost|costs|sum|usd|eur|gbp|bytes|kb|mb|gb|line|lines|row|rows|port|page|pages|year|years|date|dates|born|time|timestamp|epoch|coordinates|lat|lon|latitude|longitude|build|commit|checksum|doi|patent|rfc|imei|vin|part|parts|room|flight|code|pin|otp|score|transaction|payment|step|chapter|section|mg|km|kg|percent|created|updated|size|length|offset|duration|ms|seconds',
)

/** Regions whose national form is looked for without a word that says so; each look takes about 0.1 ms. */
const REGIONS: CountryCode[] = [
  'GB',
  'DE',
  'FR',
  'IT',
  'ES',
  'NL',
  'BE',
  'CH',
  'AT',
  'SE',
  'AU',
  'IN',
  'JP',
  'BR',
]
/** Facts about a whole text. Its regions are only looked for if a number depends on them. */
type Looks = { left: number; regions: () => NamedRegions }

const CALLING_CODES: ReadonlySet<string> = new Set(
  getCountries().map((country) => getCountryCallingCode(country)),
)

/**
 * The most looks at a text. Later numbers count by their form alone: if they were left out, masking the earlier ones
 * would free looks for them, and masking twice would change the text.
 */
const MAX_LOOKS = 120

const US = /^(?:\+?1[ .-]?|001-)?(?:\([2-9]\d\d\) ?|[1-9]\d\d([ .-]))\d{3}[ .-]\d{4}$/

/** An area code in brackets, and two groups or more. */
const BRACKETED = /^\(0?[1-9]\d{1,3}\)\s?\d{2,5}[ .-]?\d{2,5}(?:[ .-]?\d{2,4})?$/

/** Telephone numbers: international ones, and national ones by their form, their region's rules, and words nearby. */
export function findPhones(text: string): Finding<'phone'>[] {
  const found: Finding<'phone'>[] = []
  let regions: NamedRegions | undefined
  const looks: Looks = {
    left: MAX_LOOKS,
    regions() {
      regions ??= findRegions(text)
      return regions
    },
  }
  NUMBER.lastIndex = 0
  for (let next = NUMBER.exec(text); next; next = NUMBER.exec(text)) {
    const { index } = next
    let number = balance(next[0])
    const start = index + next[0].indexOf(number)
    const before = readNameBefore(text, start)
    for (let tries = 0; tries < 6; tries++) {
      const named = before ?? readNameAfter(text, start + number.length)
      const confidence = judge(number, named, looks, tries === 0)
      if (confidence > 0) {
        EXTENSION.lastIndex = start + number.length
        const end = start + number.length + (EXTENSION.exec(text)?.[0].length ?? 0)
        found.push({ kind: 'phone', start, end, confidence, rule: 'phone' })
        NUMBER.lastIndex = end
        break
      }
      // Digits that follow a number may have been taken for its last group.
      const shorter = number.replace(/[^\d]+\d+$/, '')
      if (shorter === number || shorter.replace(/\D/g, '').length < 7) break
      number = shorter
    }
  }
  return found
}

/** Without a bracket that is not closed. */
function balance(number: string): string {
  const open = number.split('(').length
  const closed = number.split(')').length
  if (open === closed) return number
  return open > closed && number.startsWith('(') ? number.slice(1) : number
}

/** `isWhole` is false for the beginning of a row of digits: of those only their form counts, not what the text names. */
function judge(number: string, told: Name, looks: Looks, isWhole: boolean): number {
  const digits = number.replace(/\D/g, '')
  const isSure = /\d\D+\d/.test(number) || digits.length >= 9
  const named = told !== 'maybe' ? told : isSure ? 'phone' : undefined
  if (digits.length < 7 || digits.length > 15 || /^(\d)\1*$/.test(digits)) return 0
  const isGlobal = number.startsWith('+') || number.startsWith('(+')
  if (isOtherForm(number, digits)) return 0
  if (isGlobal) return judgeGlobal(number, digits, named, looks)
  if (named === 'phone') return 0.9
  if (named === 'other') return 0
  if (US.test(number) || BRACKETED.test(number)) return 0.85
  if (/^00[ .-]?[1-9]/.test(number) && /\D/.test(number) && digits.length >= 11)
    return judgeGlobal(number, digits.slice(2), named, looks)
  if (isNational(number, digits, looks)) return 0.65
  return isWhole && isOfNamed(number, digits, looks) ? 0.6 : 0
}

function judgeGlobal(number: string, digits: string, named: Name, looks: Looks): number {
  const isGrouped = /\D/.test(number.slice(1))
  const isCode = [1, 2, 3].some((length) => CALLING_CODES.has(digits.slice(0, length)))
  if (!isCode) return isGrouped && digits.length >= 9 && named !== 'other' ? 0.6 : 0
  if (digits.length < 9 || !(isGrouped || digits.length >= 11)) {
    const isPossible = looks.left-- <= 0 || parsePhoneNumberFromString(number)?.isPossible() === true
    if (!isPossible && named !== 'phone') return 0
  }
  return named === 'phone' ? 0.97 : named === 'other' ? 0.55 : 0.9
}

// A national form without a word nearby must have the prefix 0, and groups by the rules of a region.
function isNational(number: string, digits: string, looks: Looks): boolean {
  if (!/^\(?0[1-9]/.test(number) || digits.length < 9 || digits.length > 12 || !/\d\D+\d/.test(number))
    return false
  if (!/^\(?0\d{1,5}\)?[ /.\u00a0\u2010-\u2015-]{1,3}\d{2,}/.test(number)) return false
  if (/^\d+(?:\.\d+){3}$/.test(number)) return false
  return REGIONS.some(
    (region) => looks.left-- <= 0 || parsePhoneNumberFromString(number, region)?.isValid() === true,
  )
}

/** Large amounts are written in groups of three, too: `512 345 678`. */
const THOUSANDS = /^[1-9]\d{0,2}(?:([ .,\u00a0\u202f])\d{3})(?:\1\d{3})*$/

/**
 * A number in groups by the rules of a country of which the text has another number, with its code, or that it names. In
 * groups of three it may be an amount: there a name is not enough.
 */
function isOfNamed(number: string, digits: string, looks: Looks): boolean {
  if (digits.length < 8 || digits.length > 12 || !/\d\D+\d/.test(number)) return false
  const { numbered, named } = looks.regions()
  const regions = THOUSANDS.test(number) ? numbered : new Set([...numbered, ...named])
  return [...regions].some(
    (region) => looks.left-- <= 0 || parsePhoneNumberFromString(number, region)?.isValid() === true,
  )
}

/** Dates, times, cards, and what else has digits in groups. */
function isOtherForm(number: string, digits: string): boolean {
  return (
    // Dates: 2026-11-23, 23.11.2026, 11/23/2026, also with the time.
    /^(?:19|20)\d\d([-./ ])(?:0?[1-9]|1[0-2])\1(?:[0-2]?\d|3[01])(?:\D|$)/.test(number) ||
    /^(?:[0-2]?\d|3[01])([-./])(?:[0-2]?\d|3[01])\1(?:19|20)\d\d(?:\D|$)/.test(number) ||
    // A date after a number of a version.
    /\D(?:(?:19|20)\d\d-(?:0[1-9]|1[0-2])-[0-3]\d|[0-3]\d\.[01]\d\.(?:19|20)\d\d)$/.test(number) ||
    // Two years, or a range of numbers of one length.
    /^(?:19|20)\d\d\s?[-\u2010-\u2015/]\s?(?:19|20)\d\d$/.test(number) ||
    // The form of a social security number, and of a ZIP code.
    /^\d{3}[-\u2010-\u2015]\d\d[-\u2010-\u2015]\d{4}$/.test(number) ||
    /^\d{5}-\d{4}$/.test(number) ||
    // An IP address, and an ISBN.
    /^\d{1,3}(?:\.\d{1,3}){3}$/.test(number) ||
    (/^97[89]/.test(digits) && digits.length === 13)
  )
}

type Name = 'phone' | 'maybe' | 'other' | undefined

/** What the words before a number say of it; the last one counts. */
function readNameBefore(text: string, start: number): Name {
  const before = readBefore(text, start, 40)
  const words = readWords(before)
  const other = findLastWord(words, OTHER_WORDS)
  const phone = findLastWord(words, PHONE_WORDS)
  const line = before.slice(before.lastIndexOf('\n') + 1)
  const maybe = line === before ? findLastWord(words, MAYBE_WORDS) : findMaybe(line, words.length)
  const last = Math.max(other, phone, maybe)
  if (last < 0) return SIGNS.test(before) || LETTERS.test(before) ? 'phone' : undefined
  return last === phone ? 'phone' : last === other ? 'other' : 'maybe'
}

/** The index of the last such word of the line, counted in the words of all that was read. */
function findMaybe(line: string, all: number): number {
  const words = readWords(line)
  const at = findLastWord(words, MAYBE_WORDS)
  return at < 0 ? -1 : all - words.length + at
}

function readNameAfter(text: string, end: number): Name {
  const after = readAfter(text, end)
  const words = readWords(after)
  if (findLastWord(words, PHONE_WORDS) >= 0) return 'phone'
  if (findLastWord(words, MAYBE_WORDS) >= 0) return 'maybe'
  return UNIT.test(after) ? 'other' : undefined
}

const UNIT = /^\s{0,2}(?:usd|eur|gbp|dollars|euros?|bytes|kb|mb|gb|ms|%|km|kg|€|\$|£)/i
