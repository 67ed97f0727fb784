import { ZxcvbnFactory } from '@zxcvbn-ts/core'
import { adjacencyGraphs, dictionary } from '@zxcvbn-ts/language-common'

const MIN_LENGTH = 12
export const MAX_PASSWORD_BYTES = 1024

/** A password that can be guessed with fewer attempts counts as common. */
const FEWEST_GUESSES = 1e6

/**
 * Only so many characters are estimated: the time is quadratic, and a common password shows at its beginning.
 */
const MAX_ESTIMATED = 32

let estimator: ZxcvbnFactory | undefined

/**
 * Says what is wrong with a new password; null if it is fine. It must be long enough, and not among those
 * that attackers try first: leaked passwords, keyboard rows, repetitions, and `personal` words such as the
 * e-mail. There are no rules for kinds of characters.
 */
export function findPasswordFault(password: string, personal: string[] = []): string | null {
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) return `must have at most ${MAX_PASSWORD_BYTES} bytes`
  if ([...password].length < MIN_LENGTH) return `must have at least ${MIN_LENGTH} characters`
  estimator ??= new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs, maxLength: MAX_ESTIMATED })
  const words = ['perdure', ...personal, ...personal.flatMap((word) => word.split(/[\s@.]+/))]
  const { guesses } = estimator.check(
    password.slice(0, MAX_ESTIMATED),
    words.filter((word) => word.length > 2),
  )
  return guesses < FEWEST_GUESSES ? 'is too easy to guess: it is common, or made of few repeated parts' : null
}
