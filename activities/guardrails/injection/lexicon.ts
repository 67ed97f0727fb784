import CLASSES from './lexicon.json' with { type: 'json' }

/**
 * The classes of lexicon.json tell what words do in an attack, whatever its wording: an attack overrides orders, asks the
 * model for what it keeps, or poses as another speaker. Harmless texts use the same words, but seldom these together. The
 * weights are for the classes in their order: after a new one, fit them again.
 */
const classesOf = new Map<string, number[]>()
for (const [number, lines] of Object.values(CLASSES).entries()) {
  for (const word of new Set(lines.join(' ').split(' '))) {
    const classes = classesOf.get(word)
    if (classes) classes.push(number)
    else classesOf.set(word, [number])
  }
}
const NONE: readonly number[] = []

/** The numbers of the classes of a word in lower case; of most words there are none. */
export function listClasses(word: string): readonly number[] {
  return classesOf.get(word) ?? NONE
}
