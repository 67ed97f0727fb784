import { eachMatch } from '../matches.ts'
import type { Finding } from '../spans.ts'
import { isRandom, isStandIn, isUuid } from './randomness.ts'
import { REDACTED } from './structures.ts'

// The name is taken whole, without trying its beginnings, by looking ahead for it.
// `password=x`, `"apiKey": "x"`, `Cookie: a=b; c=d`. The quotes around the separator may be escaped.
const ASSIGNMENT = /(?<![\w.-])(?=([\w.-]{3,100}))\1((?:\\{0,3}["'])?\s{0,3}[=:]\s{0,3}(\\{0,3}["'])?)/g
const TO_LINE_END = /cookie|authorization/i
const PROSE =
  /^(?:is|are|was|must|should|may|can|cannot|has|have|had|not|no|a|an|the|it|its|this|for|to|of|in|on|or|and|wrong|bad|missing|required|invalid|expired|unknown|empty|null|undefined|true|false|none)(?=[\s.,;)]|$)/i

/** Values that are assigned to a name of which `isSecretName` says that it is a secret's, whatever they look like. */
export function findAssigned(text: string, isSecretName: (name: string) => boolean): Finding<'api_key'>[] {
  const found: Finding<'api_key'>[] = []
  for (const match of eachMatch(ASSIGNMENT, text)) {
    const [whole, name = '', separator = '', quote] = match
    if (match.index < (found.at(-1)?.end ?? 0) || !isSecretName(name)) continue
    const start = match.index + whole.length
    const end = findValueEnd(text, start, quote, TO_LINE_END.test(name))
    const value = text.slice(start, end)
    if (value === '' || value === REDACTED) continue
    if (!quote && /\s/.test(separator) && PROSE.test(value)) continue
    // A name of a password has to have a password; one of a key, something that a machine has drawn.
    const isSure = !TO_LINE_END.test(name) && (isRandom(value) || isUuid(value)) && !isStandIn(value)
    found.push({ kind: 'api_key', start, end, confidence: isSure ? 0.7 : 0.3, rule: 'assigned' })
  }
  return found
}

const STOPS = /[\s"'&;,\\<>]/g
const LINE_STOPS = /[\r\n"'\\]/g

function findValueEnd(text: string, start: number, quote: string | undefined, toLineEnd: boolean): number {
  if (quote) {
    const escapes = quote.length - 1
    for (let at = start; ; at++) {
      at = text.indexOf(quote.at(-1) ?? '"', at)
      if (at < 0) return text.length
      let slashes = 0
      while (slashes < at - start && text[at - 1 - slashes] === '\\') slashes++
      if (escapes === 0 && slashes % 2 === 0) return at
      if (slashes <= escapes) return at - slashes
    }
  }
  const stops = toLineEnd ? LINE_STOPS : STOPS
  stops.lastIndex = start
  return stops.exec(text)?.index ?? text.length
}
