// Deeper values overflow the stack of whoever serialises them next.
const MAX_DEPTH = 500

/**
 * An answer's body as a value. responseType json: JSON or a fault; text: a text; absent: JSON where the content
 * type says so and it parses, else a text. No bytes are null. `fault` goes on as "a body that ...".
 */
export function readAnswer(
  body: Uint8Array,
  contentType: string | undefined,
  responseType: unknown,
): { value: unknown } | { fault: string } {
  if (body.length === 0) return { value: null }
  const text = readText(body, contentType)
  const isJson = /^\s*(?:application|text)\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType ?? '')
  if (responseType === 'text' || (responseType !== 'json' && !isJson)) return { value: text }
  const fault = findDepthFault(text)
  if (!fault) {
    try {
      return { value: JSON.parse(text) }
    } catch {
      // Falls through: what is no JSON is a text, unless JSON was promised.
    }
  }
  return responseType === 'json' ? { fault: fault ?? 'is no valid JSON' } : { value: text }
}

/** Decodes by the content type's charset (UTF-8 unless a known one is named); what is invalid becomes U+FFFD. */
export function readText(body: Uint8Array, contentType: string | undefined): string {
  const charset = /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(contentType ?? '')?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    return new TextDecoder().decode(body)
  }
}

function findDepthFault(text: string): string | null {
  let depth = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (quoted) {
      if (code === 0x5c) i++
      else if (code === 0x22) quoted = false
    } else if (code === 0x22) quoted = true
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH}`
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  return null
}
