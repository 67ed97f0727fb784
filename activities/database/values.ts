/** A number if it is exactly the one that the digits say, else the digits. */
export function readNumber(digits: string): number | string {
  const value = Number(digits)
  return Number.isFinite(value) && plain(digits) === plain(String(value)) ? value : digits
}

/** Digits in one form, without zeros that say nothing; undefined if it is no number, or has an exponent. */
function plain(text: string): string | undefined {
  const found = /^([+-]?)0*(\d+?)(?:\.(\d*?)0*)?$/.exec(text)
  if (!found) return text.toLowerCase()
  const [, sign, whole, fraction = ''] = found
  const number = fraction === '' ? whole! : `${whole}.${fraction}`
  return sign === '-' && number !== '0' ? `-${number}` : number
}

const LONG_DIGITS = /\d{16}|\d\.\d*[eE]|\d[eE]/

/** The value of a column of JSON. Numbers in it that a number cannot hold exactly become texts. */
export function readJsonColumn(text: string): unknown {
  if (!LONG_DIGITS.test(text)) return JSON.parse(text)
  return JSON.parse(text, ((_key: string, value: unknown, { source }: { source?: string } = {}) =>
    typeof value === 'number' && source !== undefined && /^-?\d{16,}$/.test(source)
      ? readNumber(source)
      : value) as (key: string, value: unknown) => unknown)
}

/** A time as ISO 8601. `zone` is added if it is known that the time is in UTC. */
export function readTime(text: string, zone: '' | 'Z'): string {
  const found = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(?:\+00(?::?00)?)?$/.exec(text)
  return found ? `${found[1]}T${found[2]}${zone}` : text
}
