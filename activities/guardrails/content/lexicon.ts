import LEXICON from './lexicon.json' with { type: 'json' }

/**
 * The words of lexicon.json, by concept. Each concept has lines of terms, which are separated by commas; `~` means
 * a word's endings. The weights of `weights.json` are in the order of the concepts: after a new one, fit them again.
 */
const TERMS = {
  ...LEXICON.hate,
  ...LEXICON.harassment,
  ...LEXICON.violence,
  ...LEXICON.self_harm,
  ...LEXICON.sexual,
  ...LEXICON.context,
}

/** The subject of a word or phrase of the lexicon. */
export type Concept = keyof typeof TERMS

const foreignTerms: Partial<Record<Concept, string[]>> = LEXICON.foreign

export const CONCEPTS = Object.keys(TERMS) as Concept[]

/** The most words that a term has. */
export const MAX_WORDS = 8

/** Concepts (places in `CONCEPTS`) by term; a term's words are parted by single spaces. */
type Lexicon = { concepts: Map<string, readonly number[]>; firstWords: Map<string, number> }

let lexicon: Lexicon | undefined

/**
 * The terms with their concepts, and for each first word the most words of a term that begins with it. Built once:
 * a term's `~` becomes the endings that English gives to verbs and nouns, also some that the word never has.
 */
export function readLexicon(): Lexicon {
  lexicon ??= buildLexicon()
  return lexicon
}

function buildLexicon(): Lexicon {
  const concepts = new Map<string, number[]>()
  const firstWords = new Map<string, number>()
  for (const [index, concept] of CONCEPTS.entries()) {
    const lines = [...TERMS[concept], ...(foreignTerms[concept] ?? [])]
    for (const term of lines.join(',').split(',')) {
      for (const form of listForms(term.trim().replace(/[\s-]+/g, ' '))) {
        const known = concepts.get(form)
        if (!known) concepts.set(form, [index])
        else if (!known.includes(index)) known.push(index)
        const words = form.split(' ')
        firstWords.set(words[0]!, Math.max(firstWords.get(words[0]!) ?? 0, words.length))
      }
    }
  }
  return { concepts, firstWords }
}

function listForms(term: string): string[] {
  const mark = term.indexOf('~')
  if (mark < 0) return [term]
  const before = term.slice(0, mark)
  const start = before.lastIndexOf(' ') + 1
  return inflect(before.slice(start)).map((word) => before.slice(0, start) + word + term.slice(mark + 1))
}

function inflect(word: string): string[] {
  const endings = ['', 's', 'es', 'ed', 'd', 'ing', 'er', 'ers', "'s", 'in']
  const forms = endings.map((ending) => word + ending)
  if (word.endsWith('e'))
    forms.push(...['ing', 'er', 'ers', 'or', 'ors'].map((ending) => word.slice(0, -1) + ending))
  if (word.endsWith('y')) forms.push(...['ies', 'ied', 'ier'].map((ending) => word.slice(0, -1) + ending))
  if (/[aeiou][bdgklmnprt]$/.test(word)) {
    forms.push(...['ed', 'ing', 'er', 'ers'].map((ending) => word + word.at(-1) + ending))
  }
  if (word.endsWith('man')) forms.push(`${word.slice(0, -2)}en`)
  return forms
}
