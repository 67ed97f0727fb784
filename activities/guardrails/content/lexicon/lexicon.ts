import { CONTEXT_TERMS } from './around.ts'
import { FOREIGN_TERMS } from './foreign.ts'
import { HARASSMENT_TERMS } from './harassment.ts'
import { HATE_TERMS } from './hate.ts'
import { SELF_HARM_TERMS } from './selfharm.ts'
import { SEXUAL_TERMS } from './sexual.ts'
import { VIOLENCE_TERMS } from './violence.ts'

const TERMS = {
  ...HATE_TERMS,
  ...HARASSMENT_TERMS,
  ...VIOLENCE_TERMS,
  ...SELF_HARM_TERMS,
  ...SEXUAL_TERMS,
  ...CONTEXT_TERMS,
}

/** What a word or phrase of the lexicon speaks of. */
export type Concept = keyof typeof TERMS

const foreignTerms: Partial<Record<Concept, string>> = FOREIGN_TERMS

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
    const foreign = foreignTerms[concept]
    for (const term of `${TERMS[concept]}${foreign ? `, ${foreign}` : ''}`.split(',')) {
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
