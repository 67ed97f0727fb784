/** Characters of a word, in bits: how many questions of yes or no it takes on the average to guess one of them. */
export function measureEntropy(text: string): number {
  const counts = new Map<string, number>()
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length)
  return bits
}

const STAND_IN =
  /example|sample|placeholder|changeme|change[_-]me|dummy|redacted|insert|replace|your[_-]|your(?:api|key|token|secret)|my[_-](?:api|key|token|secret)|(?:api|secret|access)[_-]?key[_-]?here|goes[_-]?here|not[_-]?a[_-]?real|fake|todo|lorem|foobar|x{6}|\*{3}|\.{3}|0{8}|#{4}|_{4}|process\.env|os\.environ|getenv|secrets\./i

/** Whether a value is only a placeholder for a secret: `your-api-key`, `xxxxxxxx`, AWS's AKIAIOSFODNN7EXAMPLE. */
export function isStandIn(value: string): boolean {
  return STAND_IN.test(value) || new Set(value.slice(-16).toLowerCase()).size < 5
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isUuid(value: string): boolean {
  return UUID.test(value)
}

/** Whether a machine has drawn the value at random: many different characters, letters and digits mixed, no words. */
export function isRandom(value: string): boolean {
  const digits = value.replace(/\D/g, '').length
  if (value.length < 16 || digits > value.length * 0.85) return false
  if (digits < 2 && countTurns(value) < value.length / 3) return false
  if (/^[0-9a-f]+$/i.test(value)) return measureEntropy(value) >= 2.9
  if (measureEntropy(value) < 3.3) return false
  const mixed = value.split(/[^A-Za-z0-9]+/).filter((part) => isMixed(part) && !isWordy(part))
  return mixed.reduce((sum, { length }) => sum + length, 0) >= Math.min(12, value.length * 0.6)
}

/** How often capitals follow small letters, or the other way round: once a word at most where people write them. */
function countTurns(text: string): number {
  return text.match(/(?<=[a-z])[A-Z]|(?<=[A-Z])[a-z]/g)?.length ?? 0
}

function isMixed(part: string): boolean {
  return /[A-Za-z]/.test(part) && (/\d/.test(part) || countTurns(part) >= part.length / 3)
}

// getUserById2, release20261123, v2beta1: words with a number at their end or between them.
function isWordy(part: string): boolean {
  const pieces = part.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+/g) ?? []
  const words = pieces.filter(
    (piece) => /^[A-Za-z]/.test(piece) && piece.length >= 4 && /[aeiouy]/i.test(piece),
  )
  return words.reduce((sum, { length }) => sum + length, 0) >= part.length * 0.7
}
