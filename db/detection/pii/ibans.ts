import type { Finding } from '../spans.ts'

// The length of an IBAN by country: with any length allowed, the checksum would be right by chance too often.
const LENGTHS = new Map(
  'AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IR26IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20'
    .match(/.{4}/g)
    ?.map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
)
const MAX_LENGTH = 33
const IBAN = /(?<!\w)[A-Za-z]{2}\d\d(?:[ \u00a0\u202f-]?[A-Za-z0-9]){11,29}/g

/** International bank account numbers with the length of their country and the right check digits. */
export function findIbans(text: string): Finding<'iban'>[] {
  const found: Finding<'iban'>[] = []
  IBAN.lastIndex = 0
  for (let next = IBAN.exec(text); next; next = IBAN.exec(text)) {
    const { 0: candidate, index } = next
    // The next one may begin in what this one has taken for its groups.
    IBAN.lastIndex = index + 4
    const length = LENGTHS.get(candidate.slice(0, 2).toUpperCase()) ?? MAX_LENGTH + 1
    let at = 0
    for (let taken = 0; at < candidate.length && taken < length; at++) {
      if (/[A-Za-z0-9]/.test(candidate[at] ?? '')) taken++
    }
    const compact = candidate.slice(0, at).replace(/[^A-Za-z0-9]/g, '')
    if (compact.length !== length || !isChecked(compact)) continue
    if (/^[A-Za-z0-9]$/.test(text[index + at] ?? '')) continue
    IBAN.lastIndex = index + at
    found.push({ kind: 'iban', start: index, end: index + at, confidence: 0.98, rule: 'iban' })
  }
  return found
}

function isChecked(iban: string): boolean {
  let rest = 0
  for (const char of iban.slice(4) + iban.slice(0, 4)) {
    for (const digit of String(Number.parseInt(char, 36))) rest = (rest * 10 + Number(digit)) % 97
  }
  return rest === 1
}
