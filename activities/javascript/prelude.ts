import type { PreludePart } from './job.ts'
import type { PreludeFunction } from './kit.ts'

/**
 * A piece of the library: a function whose text is evaluated in the sandbox, or a file of a package, which puts
 * what it has on the global object by itself.
 */
type PreludePiece = PreludeFunction | { file: string; text: string }

/**
 * The parts of the library, in the order in which they are evaluated. Each is loaded when it is first needed.
 * `names` finds the names that it defines; a part without is always there.
 */
const PARTS: { part: PreludePart; names?: RegExp; load: () => Promise<PreludePiece[]> }[] = [
  {
    part: 'base',
    load: async () => [
      (await import('./prelude/base.ts')).defineBase,
      (await import('./prelude/text.ts')).defineText,
      (await import('./prelude/url.ts')).defineUrl,
      (await import('./prelude/crypto.ts')).defineCrypto,
    ],
  },
]

/**
 * The parts that sources may need, by their texts: those whose names they have. A name in a text that is no
 * variable costs only time.
 */
export function choosePrelude(texts: string[]): PreludePart[] {
  return PARTS.flatMap(({ part, names }) => (!names || texts.some((text) => names.test(text)) ? [part] : []))
}

/** A piece as a sandbox evaluates it. `isFunction`: its value is a function that is called with the kit. */
export type LoadedPiece = { name: string; text: string; isFunction: boolean }

/** The pieces of the parts, in the order of the table. */
export async function loadPrelude(parts: PreludePart[]): Promise<LoadedPiece[]> {
  const found: LoadedPiece[] = []
  for (const { part, load } of PARTS) {
    if (!parts.includes(part)) continue
    for (const piece of await load()) {
      if (typeof piece === 'function') found.push({ name: part, text: `(${piece})`, isFunction: true })
      else found.push({ name: piece.file, text: piece.text, isFunction: false })
    }
  }
  return found
}
