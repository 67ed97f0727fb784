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

/** A document that is being read. */
type Scan = {
  text: string
  handlers: XmlHandlers
  /** The next character. */
  at: number
  /** The names of the elements that are open. */
  open: string[]
  hasRoot: boolean
  hasDoctype: boolean
}

/**
 * Reads an XML document (XML 1.0, fifth edition) that has no entities of its own: tells the handlers what it has, and
 * throws a SyntaxError with the line for what is not well-formed, entities that a document type declares, and default
 * values of attributes. Namespaces are not looked at: names keep their prefixes.
 */
export function scanXml(given: string, handlers: XmlHandlers): void {
  const text = normalizeLines(given)
  try {
    demandCharacters(text)
    scanDocument({ text, handlers, at: 0, open: [], hasRoot: false, hasDoctype: false })
  } catch (error) {
    throw error instanceof SyntaxError && 'at' in error ? placeFault(error as XmlFault, text) : error
  }
}

function scanDocument(scan: Scan): void {
  const { text, open } = scan
  takeDeclaration(scan)
  while (scan.at < text.length) {
    if (text[scan.at] !== '<') takeText(scan)
    else if (text[scan.at + 1] === '/') takeClosing(scan)
    else if (text[scan.at + 1] === '?') takeInstruction(scan)
    else if (text.startsWith('<!--', scan.at)) takeComment(scan)
    else if (text.startsWith('<![CDATA[', scan.at)) takeCdata(scan)
    else if (text.startsWith('<!DOCTYPE', scan.at)) takeDoctype(scan)
    else takeOpening(scan)
  }
  if (open.length > 0) throw makeFault(`ends before ${open.at(-1)} is closed`, scan.at)
  if (!scan.hasRoot) throw makeFault('has no root element', scan.at)
}

/** What the pattern finds here, and goes over it; null if that is nothing. */
function take(scan: Scan, pattern: RegExp): RegExpExecArray | null {
  pattern.lastIndex = scan.at
  const found = pattern.exec(scan.text)
  if (found) scan.at = pattern.lastIndex
  return found
}

/** What comes before `end`, and goes over both. `what` is for the fault if there is no end. */
function takeUntil(scan: Scan, end: string, what: string): string {
  const to = scan.text.indexOf(end, scan.at)
  if (to < 0) throw makeFault(`${what} has no end`, scan.at)
  const inside = scan.text.slice(scan.at, to)
  scan.at = to + end.length
  return inside
}

function takeDeclaration(scan: Scan): void {
  const declaration = take(scan, DECLARATION)
  if (declaration) scan.handlers.instruction?.('xml', declaration[1]!.trim())
  else if (/^<\?xml[\t\n ]/.test(scan.text)) throw makeFault('has an invalid XML declaration', 0)
}

function takeInstruction(scan: Scan): void {
  const found = take(scan, INSTRUCTION)
  if (!found) throw makeFault('a processing instruction has no valid name', scan.at)
  const target = found[1]!
  if (/^xml$/i.test(target))
    throw makeFault('an XML declaration may only come first', scan.at - found[0].length)
  const data = found[0].endsWith('?>') ? '' : takeUntil(scan, '?>', 'a processing instruction')
  scan.handlers.instruction?.(target, data)
}

function takeComment(scan: Scan): void {
  scan.at += 4
  takeUntil(scan, '--', 'a comment')
  if (scan.text[scan.at] !== '>') throw makeFault('a comment has --', scan.at - 2)
  scan.at += 1
}

function takeCdata(scan: Scan): void {
  if (scan.open.length === 0) throw makeFault('has a CDATA section outside of its root element', scan.at)
  scan.at += 9
  scan.handlers.text(takeUntil(scan, ']]>', 'a CDATA section'), undefined)
}

function takeDoctype(scan: Scan): void {
  if (scan.hasRoot || scan.hasDoctype) throw makeFault('a document type is not at its place', scan.at)
  scan.hasDoctype = true
  scan.at = skipDoctype(scan.text, scan.at)
}

function takeOpening(scan: Scan): void {
  const { open, handlers, at: from } = scan
  const found = take(scan, OPEN)
  if (!found) throw makeFault('a < begins no tag: as text it is &lt;', from)
  const name = found[1]!
  if (open.length === 0 && scan.hasRoot) throw makeFault(`has a second root element, ${name}`, from)
  const attributes = takeAttributes(scan)
  const end = take(scan, OPEN_END)
  if (!end) throw makeFault(`the tag of ${name} is not complete, or has an invalid attribute`, scan.at)
  scan.hasRoot = true
  handlers.open(name, attributes)
  if (end[1] === '/') handlers.close(name)
  else open.push(name)
}

function takeAttributes(scan: Scan): Map<string, string> {
  const attributes = new Map<string, string>()
  for (let attribute = take(scan, ATTRIBUTE); attribute; attribute = take(scan, ATTRIBUTE)) {
    const [whole, space, key, double, single] = attribute
    const start = scan.at - whole.length
    if (space === '') throw makeFault(`the attribute ${key} has no space before it`, start)
    if (attributes.has(key!)) throw makeFault(`the attribute ${key} comes twice`, start)
    const raw = (double ?? single)!.replace(/[\t\n]/g, ' ')
    attributes.set(key!, decodeReferences(raw, start))
  }
  return attributes
}

function takeClosing(scan: Scan): void {
  const from = scan.at
  const name = take(scan, CLOSE)?.[1]
  if (name === undefined) throw makeFault('a closing tag is not valid', from)
  const wanted = scan.open.pop()
  if (wanted === undefined) throw makeFault(`closes ${name}, which is not open`, from)
  if (wanted !== name) throw makeFault(`closes ${name} where ${wanted} is open`, from)
  scan.handlers.close(name)
}

function takeText(scan: Scan): void {
  const { text, at } = scan
  const next = text.indexOf('<', at)
  const raw = text.slice(at, next < 0 ? text.length : next)
  if (scan.open.length === 0) {
    if (!ONLY_SPACE.test(raw)) throw makeFault('has text outside of its root element', at)
  } else {
    const end = raw.indexOf(']]>')
    if (end >= 0) throw makeFault('a text has ]]>: it is written ]]&gt;', at + end)
    scan.handlers.text(decodeReferences(raw, at), raw)
  }
  scan.at += raw.length
}

/** Line ends are those of Unix, and a byte order mark is no text. */
function normalizeLines(text: string): string {
  const plain = text.startsWith('\ufeff') ? text.slice(1) : text
  return plain.includes('\r') ? plain.replace(/\r\n?/g, '\n') : plain
}
