import { ENTITIES } from '../../../workflows/texts.ts'

/** A fault of a document, and its place. */
export type XmlFault = SyntaxError & { at: number }

/** What XML cannot have, however it is written: most control characters, halves of surrogate pairs, U+FFFE and U+FFFF. */
const NO_CHARACTER = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u

const REFERENCE = /&(?:#x([0-9a-fA-F]+)|#([0-9]+)|([^;&<\s]{0,50}));|&/g

const NAMED: Record<string, string> = { amp: '&', apos: "'", gt: '>', lt: '<', quot: '"' }

export function makeFault(problem: string, at: number): XmlFault {
  return Object.assign(new SyntaxError(problem), { at })
}

/** The fault with the line and the column of its place in front. */
export function placeFault({ message, at }: XmlFault, text: string): SyntaxError {
  const lines = text.slice(0, at).split('\n')
  return new SyntaxError(`line ${lines.length}, column ${lines.at(-1)!.length + 1}: ${message}`)
}

/** Throws an XmlFault for the first character that XML cannot have. */
export function demandCharacters(text: string): void {
  const at = text.search(NO_CHARACTER)
  if (at >= 0) throw makeFault(`has ${nameCharacter(text.codePointAt(at)!)}, which XML cannot have`, at)
}

/**
 * A text as it is meant. The references that XML has are decoded; others, and a lone &, are refused. `from` is its
 * place.
 */
export function decodeReferences(raw: string, from: number): string {
  if (!raw.includes('&')) return raw
  return raw.replace(REFERENCE, (whole, hex?: string, decimal?: string, name?: string, offset?: number) => {
    const at = from + offset!
    if (hex !== undefined || decimal !== undefined) {
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
      const character = code <= 0x10ffff ? String.fromCodePoint(code) : '\uffff'
      if (NO_CHARACTER.test(character)) throw makeFault(`has ${whole}, which is no character of XML`, at)
      return character
    }
    if (name === undefined || name === '') throw makeFault('a & begins no reference: as text it is &amp;', at)
    const known = Object.hasOwn(NAMED, name) ? NAMED[name] : undefined
    if (known === undefined)
      throw makeFault(
        `has the entity ${whole}: only those of XML itself are read, and numbers such as &#160;`,
        at,
      )
    return known
  })
}

/** Text as it is written between tags. Throws an Error for what XML cannot have. */
export function escapeXmlText(text: string): string {
  demandWritable(text)
  return text.replace(/[&<>\r]/g, escapeCharacter)
}

/** Text as it is written in an attribute, with its line ends and tabs. */
export function escapeAttribute(text: string): string {
  demandWritable(text)
  return text.replace(/[&<>"\t\n\r]/g, escapeCharacter)
}

/** A character as a reference. */
export function escapeCharacter(character: string): string {
  return ENTITIES[character] ?? `&#${character.codePointAt(0)};`
}

function demandWritable(text: string): void {
  const at = text.search(NO_CHARACTER)
  if (at >= 0) throw new Error(`a text has ${nameCharacter(text.codePointAt(at)!)}, which XML cannot have`)
}

function nameCharacter(code: number): string {
  return `the character U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}
