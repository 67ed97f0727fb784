import { decodeReferences, demandCharacters, makeFault, placeFault, type XmlFault } from './characters.ts'
import { skipDoctype } from './doctype.ts'
import { NAME, SPACE } from './names.ts'

/** The calls that tell the parts of a document, in its order. */
export type XmlHandlers = {
  open(name: string, attributes: ReadonlyMap<string, string>): void
  close(name: string): void
  /** Text, as it is meant. `raw` is as it was written; undefined for a CDATA section. */
  text(text: string, raw: string | undefined): void
  instruction?(target: string, data: string): void
}

const OPEN = new RegExp(`<(${NAME})`, 'uy')
const CLOSE = new RegExp(`</(${NAME})${SPACE}*>`, 'uy')
const ATTRIBUTE = new RegExp(`(${SPACE}*)(${NAME})${SPACE}*=${SPACE}*(?:"([^<"]*)"|'([^<']*)')`, 'uy')
const OPEN_END = new RegExp(`${SPACE}*(/?)>`, 'uy')
const INSTRUCTION = new RegExp(`<\\?(${NAME})(?:\\?>|${SPACE}+)`, 'uy')
const VERSION = `${SPACE}+version${SPACE}*=${SPACE}*(?:"1\\.[0-9]+"|'1\\.[0-9]+')`
const ENCODING = `${SPACE}+encoding${SPACE}*=${SPACE}*(?:"[A-Za-z][A-Za-z0-9._-]*"|'[A-Za-z][A-Za-z0-9._-]*')`
const STANDALONE = `${SPACE}+standalone${SPACE}*=${SPACE}*(?:"(?:yes|no)"|'(?:yes|no)')`
const DECLARATION = new RegExp(`<\\?xml(${VERSION}(?:${ENCODING})?(?:${STANDALONE})?)${SPACE}*\\?>`, 'y')
const ONLY_SPACE = new RegExp(`^${SPACE}*$`)

/**
 * Reads an XML document (XML 1.0, fifth edition) that has no entities of its own: tells the handlers what it has, and
 * throws an SyntaxError with the line for what is not well-formed, entities that a document type declares, and default
 * values of attributes. Namespaces are not looked at: names keep their prefixes.
 */
export function scanXml(given: string, handlers: XmlHandlers): void {
  const text = normalizeLines(given)
  let at = 0
  try {
    demandCharacters(text)
    const open: string[] = []
    let hasRoot = false
    let hasDoctype = false
    const take = (pattern: RegExp): RegExpExecArray | null => {
      pattern.lastIndex = at
      const found = pattern.exec(text)
      if (found) at = pattern.lastIndex
      return found
    }
    const takeUntil = (end: string, what: string): string => {
      const to = text.indexOf(end, at)
      if (to < 0) throw makeFault(`${what} has no end`, at)
      const inside = text.slice(at, to)
      at = to + end.length
      return inside
    }
    const takeInstruction = (): void => {
      const found = take(INSTRUCTION)
      if (!found) throw makeFault('a processing instruction has no valid name', at)
      const target = found[1]!
      if (/^xml$/i.test(target))
        throw makeFault('an XML declaration may only come first', at - found[0].length)
      const data = found[0].endsWith('?>') ? '' : takeUntil('?>', 'a processing instruction')
      handlers.instruction?.(target, data)
    }
    const takeComment = (): void => {
      at += 4
      takeUntil('--', 'a comment')
      if (text[at] !== '>') throw makeFault('a comment has --', at - 2)
      at += 1
    }
    const takeOpening = (): void => {
      const from = at
      const found = take(OPEN)
      if (!found) throw makeFault('a < begins no tag: as text it is &lt;', from)
      const name = found[1]!
      if (open.length === 0 && hasRoot) throw makeFault(`has a second root element, ${name}`, from)
      const attributes = new Map<string, string>()
      for (let attribute = take(ATTRIBUTE); attribute; attribute = take(ATTRIBUTE)) {
        const [whole, space, key, double, single] = attribute
        const start = at - whole.length
        if (space === '') throw makeFault(`the attribute ${key} has no space before it`, start)
        if (attributes.has(key!)) throw makeFault(`the attribute ${key} comes twice`, start)
        const raw = (double ?? single)!.replace(/[\t\n]/g, ' ')
        attributes.set(key!, decodeReferences(raw, start))
      }
      const end = take(OPEN_END)
      if (!end) throw makeFault(`the tag of ${name} is not complete, or has an invalid attribute`, at)
      hasRoot = true
      handlers.open(name, attributes)
      if (end[1] === '/') handlers.close(name)
      else open.push(name)
    }
    const takeClosing = (): void => {
      const from = at
      const name = take(CLOSE)?.[1]
      if (name === undefined) throw makeFault('a closing tag is not valid', from)
      const wanted = open.pop()
      if (wanted === undefined) throw makeFault(`closes ${name}, which is not open`, from)
      if (wanted !== name) throw makeFault(`closes ${name} where ${wanted} is open`, from)
      handlers.close(name)
    }
    const takeText = (): void => {
      const next = text.indexOf('<', at)
      const raw = text.slice(at, next < 0 ? text.length : next)
      if (open.length === 0) {
        if (!ONLY_SPACE.test(raw)) throw makeFault('has text outside of its root element', at)
      } else {
        const end = raw.indexOf(']]>')
        if (end >= 0) throw makeFault('a text has ]]>: it is written ]]&gt;', at + end)
        handlers.text(decodeReferences(raw, at), raw)
      }
      at += raw.length
    }
    const declaration = take(DECLARATION)
    if (declaration) handlers.instruction?.('xml', declaration[1]!.trim())
    else if (/^<\?xml[\t\n ]/.test(text)) throw makeFault('has an invalid XML declaration', 0)
    while (at < text.length) {
      if (text[at] !== '<') takeText()
      else if (text[at + 1] === '/') takeClosing()
      else if (text[at + 1] === '?') takeInstruction()
      else if (text.startsWith('<!--', at)) takeComment()
      else if (text.startsWith('<![CDATA[', at)) {
        if (open.length === 0) throw makeFault('has a CDATA section outside of its root element', at)
        at += 9
        handlers.text(takeUntil(']]>', 'a CDATA section'), undefined)
      } else if (text.startsWith('<!DOCTYPE', at)) {
        if (hasRoot || hasDoctype) throw makeFault('a document type is not at its place', at)
        hasDoctype = true
        at = skipDoctype(text, at)
      } else takeOpening()
    }
    if (open.length > 0) throw makeFault(`ends before ${open.at(-1)} is closed`, at)
    if (!hasRoot) throw makeFault('has no root element', at)
  } catch (error) {
    throw error instanceof SyntaxError && 'at' in error ? placeFault(error as XmlFault, text) : error
  }
}

/** Line ends are those of Unix, and a byte order mark is no text. */
function normalizeLines(text: string): string {
  const plain = text.startsWith('\ufeff') ? text.slice(1) : text
  return plain.includes('\r') ? plain.replace(/\r\n?/g, '\n') : plain
}
