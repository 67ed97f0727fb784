/**
 * Whether a text is what the readers of JSON make of a number that is too large to be held exactly: its digits. Such a
 * text fits a schema that wants a number, and with `whole` one that wants an integer. Schemas of texts take it too.
 */
export function isLargeNumber(value: unknown, { whole = false } = {}): value is string {
  if (typeof value !== 'string' || value.length < 16 || !(whole ? WHOLE : ANY).test(value)) return false
  return Math.abs(Number(value)) >= 2 ** 53
}

const WHOLE = /^-?[1-9]\d{15,}$/
const ANY = /^-?[1-9]\d{15,}(?:\.\d+)?$/

/** Whether a text's number fits a type of a schema. */
export const isLargeOf = (type: unknown, value: unknown): boolean =>
  (type === 'number' && isLargeNumber(value)) || (type === 'integer' && isLargeNumber(value, { whole: true }))
