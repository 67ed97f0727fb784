/** A number if it is exactly the one that the digits say, else the digits. */
export function readNumber(digits: string): number | string {
  const value = Number(digits)
  return Number.isFinite(value) && plain(digits) === plain(String(value)) ? value : digits
}

/** Digits in one form, without zeros that say nothing, if that is what the text has. Looks at each character once. */
function plain(text: string): string {
  const sign = /^[+-]/.test(text) ? 1 : 0
  const dot = text.indexOf('.')
  const whole = text.slice(sign, dot < 0 ? undefined : dot)
  const fraction = dot < 0 ? '' : text.slice(dot + 1)
  if (!/^\d+$/.test(whole) || !/^\d*$/.test(fraction)) return text.toLowerCase()
  let from = 0
  while (from < whole.length - 1 && whole[from] === '0') from++
  let to = fraction.length
  while (to > 0 && fraction[to - 1] === '0') to--
  const number = to === 0 ? whole.slice(from) : `${whole.slice(from)}.${fraction.slice(0, to)}`
  return text[0] === '-' && number !== '0' ? `-${number}` : number
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
