import type { Context } from 'hono'
import { cleanText } from '../db/text.ts'
import { type Problem, quoteShort } from '../workflows/problem.ts'
import { askForSimilar } from '../workflows/suggest.ts'
import type { AppEnv } from './env.ts'

/** The number of unknown keys of a body that are named. */
const MAX_NAMED = 20

/**
 * A warning for each key of the body that the route does not know, and so has not read. `meant` has the keys that
 * are meant by words of other tools; `also` may be there without being read.
 */
export function warnUnknownKeys(
  c: Context<AppEnv>,
  meant: Record<string, string> = {},
  also: string[] = [],
): Problem[] {
  const { unknown, known } = c.get('unknownKeys') ?? { unknown: [], known: [] }
  const strange = unknown.filter((key) => !also.includes(key))
  return strange.slice(0, MAX_NAMED).map((key) => {
    const word = Object.hasOwn(meant, key) ? meant[key]! : ''
    const question = !known.includes(word) ? askForSimilar(key, known) : `; did you mean "${word}"?`
    const advice = question || `; known are ${known.join(', ')}`
    return {
      path: cleanText(key, 100),
      message: `${quoteShort(key)} is unknown here and was not read${advice}`,
    }
  })
}

/** A warning if numbers of the body are too large to be kept as numbers. */
export function warnLargeNumbers(c: Context<AppEnv>, path = 'body'): Problem[] {
  const message = c.get('largeNumbers')
  return message === undefined ? [] : [{ path, message }]
}

/** The entry of a response for warnings: none if there are none. */
export function listWarnings(warnings: Problem[]): { warnings?: Problem[] } {
  return warnings.length > 0 ? { warnings } : {}
}
