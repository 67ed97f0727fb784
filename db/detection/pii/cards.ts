import { eachMatch } from '../matches.ts'
import type { Finding } from '../spans.ts'
import { hasContext, wordSet } from './context.ts'

const GAP = '[ .\\u00a0\\u2007\\u202f\\u2010-\\u2015-]'

// 12 to 19 digits, together or in the groups of a card, but not within a UUID, a decimal or a longer number.
const NUMBER = new RegExp(
  `(?<![0-9A-Za-z_]|[0-9a-fA-F]{4}-|\\d[.,])(?:\\d{12,19}|\\d{4}(${GAP})\\d{4}\\1\\d{4}\\1\\d{4}(?:\\1\\d{1,3})?|\\d{4}(${GAP})\\d{6}\\2\\d{4,5}|\\d{4}(${GAP})\\d{5}\\3\\d{6})(?![\\w-]|\\.\\d)`,
  'g',
)
/** Groups of another form, which only a word nearby makes a card's. */
const LOOSE = new RegExp(`(?<![\\w.,-])\\d{2,8}(?:${GAP}\\d{2,8}){1,5}(?![\\w-]|\\.\\d)`, 'g')

const ISSUERS =
  /^(?:4(?:\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|220[0-4]\d{12,15}|3[47]\d{13}|3(?:0[0-5]\d|095|[689]\d\d)\d{10}|35(?:2[89]|[3-8]\d)\d{12}|(?:2131|1800)\d{11}|6(?:011|4[4-9]\d|5\d\d)\d{12}(?:\d{3})?|62\d{14,17}|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{12,15})$/
/** What else cards begin with, and the length that some have; too usual in other numbers to be told without context. */
const MAYBE = /^[02-9]\d{11,18}$/

const CARD_WORDS = wordSet(
  'card|cards|credit|debit|visa|mastercard|master card|amex|american express|discover|jcb|diners|maestro|unionpay|mir|rupay|cc|ccn|paid|pan|cvv|cvc|payment|billing|karte|kreditkarte|carte|tarjeta|cartão|carta|kort|creditcard|cardno|cardnumber|kaart|карта|карты|κάρτα',
)
const OTHER_WORDS = wordSet(
  'imei|iccid|isbn|gtin|ean|upc|tracking|imsi|order|invoice|id|ids|row|rows|time|timestamp|ms|offset|phone|tel|account|serial|ref|reference|item|product|sku|article|barcode|ticket|parcel|shipment|build',
)

/**
 * Card numbers that have the prefix and length of a known issuer and the right check digit. Other prefixes, lengths
 * and groups are told only beside a word such as "card", and never without the right check digit.
 */
export function findCards(text: string): Finding<'credit_card'>[] {
  const found: Finding<'credit_card'>[] = []
  for (const { 0: number, index } of eachMatch(NUMBER, text)) {
    const end = index + number.length
    const digits = number.replace(/\D/g, '')
    if (!isLuhn(digits)) continue
    const isIssued = ISSUERS.test(digits)
    if (!isIssued && !MAYBE.test(digits)) continue
    const isNamed = hasContext(text, index, end, CARD_WORDS)
    if (!isIssued && !isNamed && !isOldVisa(text, index, end, digits)) continue
    const isOther = !isNamed && digits.length === 15 && hasContext(text, index, end, OTHER_WORDS)
    const confidence = isOther ? 0.3 : isIssued ? (isNamed ? 0.99 : 0.93) : isNamed ? 0.85 : 0.6
    found.push({ kind: 'credit_card', start: index, end, confidence, rule: isIssued ? 'card' : 'named_card' })
  }
  if (found.length === 0) findLoose(text, found)
  return found
}

// Numbers of 13 digits were given to some; alone they are told where no other word says what the number is.
function isOldVisa(text: string, start: number, end: number, digits: string): boolean {
  return /^4\d{12}$/.test(digits) && !hasContext(text, start, end, OTHER_WORDS)
}

function findLoose(text: string, found: Finding<'credit_card'>[]): void {
  for (const { 0: number, index } of eachMatch(LOOSE, text)) {
    const digits = number.replace(/\D/g, '')
    const end = index + number.length
    if (digits.length < 13 || digits.length > 19 || !ISSUERS.test(digits) || !isLuhn(digits)) continue
    if (hasContext(text, index, end, CARD_WORDS))
      found.push({ kind: 'credit_card', start: index, end, confidence: 0.85, rule: 'named_card' })
  }
}

function isLuhn(digits: string): boolean {
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i])
    sum += i % 2 === 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2
  }
  return sum % 10 === 0 && !/^(\d)\1*$/.test(digits)
}
