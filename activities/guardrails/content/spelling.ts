import { CONCEPTS, type Concept, readLexicon } from './lexicon.ts'

/** The concepts whose words people write with stars in place of letters. */
const CENSORED: ReadonlySet<Concept> = new Set([
  'slur',
  'insult',
  'swear',
  'harm',
  'rough',
  'die',
  'suicide',
  'explicit',
  'bodily',
  'porn',
])
const RUN = /(\p{L})\1{2,}/gu
const LONGEST = 20

let censored: Map<string, string[]> | undefined

/**
 * The word of the lexicon that a word means if it is written with stars (`f*ck`, `b***h`) or with letters drawn
 * out (`killlll`); any other word as it is.
 */
export function spellOut(word: string): string {
  if (word.length > LONGEST * 3) return word
  if (word.includes('*')) return findCensored(word) ?? word
  if (word.search(RUN) < 0) return word
  const { concepts } = readLexicon()
  const single = word.replace(RUN, '$1')
  if (concepts.has(single)) return single
  const double = word.replace(RUN, '$1$1')
  return concepts.has(double) ? double : word
}

/** The first term that has the letters that are shown in their places, each star being one letter. */
function findCensored(word: string): string | undefined {
  censored ??= listCensored()
  return censored.get(`${word[0]}${word.length}`)?.find((term) => {
    for (let place = 0; place < word.length; place++) {
      if (word[place] !== '*' && word[place] !== term[place]) return false
    }
    return true
  })
}

function listCensored(): Map<string, string[]> {
  const wanted = new Set(CONCEPTS.flatMap((concept, index) => (CENSORED.has(concept) ? [index] : [])))
  const words = [...readLexicon().concepts]
    .filter(
      ([term, concepts]) => /^[a-z]{3,20}$/.test(term) && concepts.some((concept) => wanted.has(concept)),
    )
    .map(([term]) => term)
  return Map.groupBy(words, (word) => `${word[0]}${word.length}`)
}
