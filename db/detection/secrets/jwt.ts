import { eachMatch } from '../matches.ts'
import type { Finding } from '../spans.ts'

/** Beginnings of a JSON Web Token: `{"` in base64. The third part may be empty or cut off; encrypted ones have five. */
const TOKEN = /(?<![\w-])(?:eyJ|ewo)[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*){0,3}/g

/**
 * JSON Web Tokens. Those whose first part decodes to a header with an algorithm are sure; what only looks like one, or
 * is the beginning of one, has a low confidence.
 */
export function findJwts(text: string): Finding<'jwt'>[] {
  if (!text.includes('eyJ') && !text.includes('ewo')) return []
  const found: Finding<'jwt'>[] = []
  for (const { 0: token, index } of eachMatch(TOKEN, text)) {
    const parts = token.split('.')
    const isWhole = parts.length === 3 || parts.length === 5
    const hasHeader = isWhole && isHeader(parts[0] ?? '')
    // A token without a header that can be read is only masked where what is not sure is masked, too.
    if (!hasHeader && token.startsWith('ewo')) continue
    // The full stop of the sentence after an unsigned or cut token stays.
    const end = index + token.length - (token.endsWith('.') && parts.length !== 3 ? 1 : 0)
    found.push({ kind: 'jwt', start: index, end, confidence: hasHeader ? 0.99 : 0.3, rule: 'jwt' })
  }
  return found
}

function isHeader(part: string): boolean {
  if (part.length > 8_192) return false
  try {
    const header: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof header === 'object' && header !== null && ('alg' in header || 'typ' in header)
  } catch {
    return false
  }
}
