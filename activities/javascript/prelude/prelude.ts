import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { PreludePart } from '../job.ts'
import type { PreludeFunction } from '../kit.ts'

/** A piece of the library: a function whose text is evaluated in the sandbox, or the text of one. */
type PreludePiece = PreludeFunction | { file: string; text: string }

const NEVER = /(?!)/

/**
 * The parts of the library, in the order in which they are evaluated. Each is loaded when it is first needed.
 * `names` finds the names that it defines; a part without is always there.
 */
const PARTS: { part: PreludePart; names?: RegExp; load: () => Promise<PreludePiece[]> }[] = [
  {
    part: 'base',
    load: async () => [
      ...(await import('./base.ts')).BASE,
      (await import('./text.ts')).defineText,
      (await import('./url.ts')).defineSearchParams,
      (await import('./url.ts')).defineUrl,
      (await import('./crypto.ts')).defineCrypto,
    ],
  },
  {
    part: 'intl',
    names: /\b(?:Intl|Date|DateTime|Duration|Interval|luxon|localeCompare)\b|\btoLocale|\$(?:now|today)\b/,
    load: () => readPieces('intl'),
  },
  {
    part: 'luxon',
    names: /\b(?:DateTime|Duration|Interval|luxon)\b|\$(?:now|today)\b/,
    load: async () => [
      await readPackage('luxon', 'luxon', '../global/luxon.min.js'),
      ...(await readPieces('luxon')),
    ],
  },
  {
    part: 'buffer',
    names: /\bBuffer\b/,
    load: async () => [
      await readPackage('base64-js', 'base64-js'),
      await readPackage('ieee754', 'ieee754'),
      await readPackage('buffer/', 'buffer'),
      ...(await readPieces('buffer')),
    ],
  },
  {
    part: 'jmespath',
    names: /\$jmes[pP]ath\b/,
    load: async () => [await readPackage('jmespath', 'jmespath')],
  },
  // Only what begins with `=` has n8n's methods: see texts.ts.
  { part: 'titlecase', names: NEVER, load: async () => [await readPackage('title-case', 'titleCase')] },
  { part: 'n8n', names: NEVER, load: () => readPieces('files', 'n8n') },
  { part: 'methods', names: NEVER, load: () => readPieces('extend', 'lists', 'texts', 'dates') },
]

/** Files of this folder, each the text of a function that is called with the kit. */
async function readPieces(...names: string[]): Promise<PreludePiece[]> {
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(`./${name}.js`, import.meta.url), 'utf8')
      // The comment and the semicolon before the function are no part of its expression.
      return { file: name, text: text.slice(text.indexOf('(kit) =>')) }
    }),
  )
}

/**
 * The main file of a package, or another one beside it, which gives `name`: as its variable, as a property of its
 * exports, or as all of these. What it requires must have been read before.
 */
async function readPackage(path: string, name: string, file = ''): Promise<PreludePiece> {
  const main = pathToFileURL(createRequire(import.meta.url).resolve(path))
  const text = await readFile(new URL(file, main), 'utf8')
  const own = /^\w+$/.test(name) ? `typeof ${name} === 'undefined' ? exports : ${name}` : 'exports'
  const key = JSON.stringify(name)
  const call = `(kit) => { const exports = {}; const require = (name) => kit.libraries[name]
    ;(function () { ${text}\n
    exports[${key}] ??= ${own} }).call(exports)
    kit.libraries ??= {}; kit.libraries[${key}] = exports[${key}] }`
  return { file: name, text: call }
}

/**
 * The parts that sources may need, by their texts: those whose names they have. A name in a text that is no
 * variable costs only time.
 */
export function choosePrelude(texts: string[]): PreludePart[] {
  return PARTS.flatMap(({ part, names }) => (!names || texts.some((text) => names.test(text)) ? [part] : []))
}

/** A piece as a sandbox evaluates it: its value is a function that is called with the kit. */
export type LoadedPiece = { name: string; text: string }

/** The pieces of the parts, in the order of the table. */
export async function loadPrelude(parts: PreludePart[]): Promise<LoadedPiece[]> {
  const found: LoadedPiece[] = []
  for (const { part, load } of PARTS) {
    if (!parts.includes(part)) continue
    for (const piece of await load()) {
      if (typeof piece === 'function') found.push({ name: part, text: `(${piece})` })
      else found.push({ name: piece.file, text: `(${piece.text}\n)` })
    }
  }
  return found
}
