/** What is known about a value before it exists. A `date` is kept in epoch milliseconds. */
export type ValueHint = 'string' | 'number' | 'boolean' | 'list' | 'object' | 'date' | 'null' | 'unknown'

/** A piece of JSONata, and what is known about its value. */
export type JsonataCode = { text: string; hint: ValueHint }

export const stringCode = (text: string): JsonataCode => ({ text, hint: 'string' })
export const numberCode = (text: string): JsonataCode => ({ text, hint: 'number' })
export const booleanCode = (text: string): JsonataCode => ({ text, hint: 'boolean' })
export const listCode = (text: string): JsonataCode => ({ text, hint: 'list' })
export const unknownCode = (text: string): JsonataCode => ({ text, hint: 'unknown' })

/** A string as a literal of JSONata. */
export const quoteString = (text: string) => JSON.stringify(text)

/** A date becomes the ISO string that it is outside of calculations. All other code stays as it is. */
export function toPlainValue(code: JsonataCode): JsonataCode {
  return code.hint === 'date' ? stringCode(`$fromMillis(${code.text})`) : code
}

/** The value as a string. `forNull` is the code for a value that is null. */
export function castToString(code: JsonataCode, forNull = 'null'): JsonataCode {
  if (code.hint === 'string') return code
  if (code.hint === 'number' || code.hint === 'boolean') return stringCode(`$string(${code.text})`)
  const isShort = code.text.length <= 60
  const [name, bind] = isShort ? [code.text, ''] : ['$given', `$given := ${code.text}; `]
  const isNull = forNull === 'null' ? `${name} = null` : `$not($exists(${name})) or ${name} = null`
  return stringCode(`(${bind}${isNull} ? ${forNull} : $string(${name}))`)
}

/** The field of an object. */
export function accessField(code: JsonataCode, key: string): JsonataCode {
  const base = /^[$\w.`)\]]+$/.test(code.text) ? code.text : `(${code.text})`
  const name = /^[A-Za-z_]\w*$/.test(key) && !KEYWORDS.has(key) ? key : `\`${key}\``
  if (key.includes('`')) return unknownCode(`$lookup(${code.text}, ${quoteString(key)})`)
  return unknownCode(`${base}.${name}`)
}

/** The field at a dotted path. Without `dots`, the path is the name of one field. */
export function accessPath(code: JsonataCode, path: string, dots = true): string {
  return (dots ? path.split('.') : [path]).reduce((at, key) => accessField(at, key), code).text
}

/** The output of one of our nodes, or what is at `path` in it. */
export function writeOutputPath(id: string, path = ''): string {
  return accessField({ text: '$nodes', hint: 'object' }, id).text + path
}

const KEYWORDS = new Set(['and', 'or', 'in', 'true', 'false', 'null', 'function', 'λ'])
