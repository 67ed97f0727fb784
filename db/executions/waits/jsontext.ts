const TEXT: unique symbol = Symbol('JSON')

/**
 * JSON that another thread has written, in the place of its value. A large value is never parsed on the thread that
 * serves all requests: it is stored as text.
 */
export type JsonText = { readonly [TEXT]: string }

export function makeJsonText(text: string): JsonText {
  return { [TEXT]: text }
}

/** The text of a JsonText; undefined for any other value. */
export function readJsonText(value: unknown): string | undefined {
  return typeof value === 'object' && value !== null ? (value as Partial<JsonText>)[TEXT] : undefined
}

/** Writes a value as JSON, which may be a JsonText, or an object that has some in its own fields. */
export function writeData(value: unknown): string {
  const own = readJsonText(value)
  if (own !== undefined) return own
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value)
  const entries = Object.entries(value)
  if (!entries.some(([, field]) => readJsonText(field) !== undefined)) return JSON.stringify(value)
  const fields = entries.flatMap(([key, field]) => {
    const text = readJsonText(field) ?? JSON.stringify(field)
    return text === undefined ? [] : [`${JSON.stringify(key)}:${text}`]
  })
  return `{${fields.join(',')}}`
}

/** An object with the values of the JsonTexts in its own fields. */
export function openData(object: Record<string, unknown>): Record<string, unknown> {
  const opened = Object.entries(object).map(([key, field]) => {
    const text = readJsonText(field)
    return [key, text === undefined ? field : JSON.parse(text)] as const
  })
  return Object.fromEntries(opened)
}
