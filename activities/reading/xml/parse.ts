import { setOwn } from '../../../workflows/json.ts'
import { scanXml } from './scan.ts'

/** Deeper documents are refused. */
const MAX_DEPTH = 1_000

/** A text of an element, and how much literal white space it has at both ends. */
type Piece = { text: string; lead: number; trail: number }

type Child = { name: string; value: unknown } | { piece: Piece }

type Level = { name: string; attributes: ReadonlyMap<string, string>; keepsSpace: boolean; children: Child[] }

/**
 * Reads an XML document as an object with its root's name as key. An element is its text, or an object of its
 * attributes (`@name`), its elements by their names (a list if one comes more than once) and its text (`#text`, a list
 * of its pieces if elements separate them). All values are strings. With `order` every element is an object of its
 * attributes and `#children`, a list of texts and of objects with one element each. Throws a SyntaxError, with the
 * line, for text that is not well-formed.
 *
 * White space around the text of an element that has no others is left out, as is white space between elements, unless
 * `order`, `xml:space`, a CDATA section or a reference such as `&#32;` keeps it. Text among elements keeps all of it.
 */
export function parseXml(text: string, { order = false }: { order?: boolean } = {}): Record<string, unknown> {
  const document: Level = { name: '', attributes: new Map(), keepsSpace: false, children: [] }
  const open: Level[] = [document]
  const add = (child: Child) => open.at(-1)!.children.push(child)
  scanXml(text, {
    open(name, attributes) {
      if (open.length > MAX_DEPTH) throw new SyntaxError(`is nested more than ${MAX_DEPTH} levels deep`)
      const space = attributes.get('xml:space')
      const keepsSpace = space === undefined ? open.at(-1)!.keepsSpace : space === 'preserve'
      open.push({ name, attributes, keepsSpace, children: [] })
    },
    close() {
      const level = open.pop()!
      add({ name: level.name, value: order ? listChildren(level) : describeElement(level) })
    },
    text(piece, raw) {
      const last = open.at(-1)!.children.at(-1)
      const read = { text: piece, ...measureSpace(raw) }
      if (last && 'piece' in last) last.piece = joinPieces(last.piece, read)
      else if (piece !== '') add({ piece: read })
    },
    instruction(target, data) {
      add({ name: `?${target}`, value: describeInstruction(data) })
    },
  })
  return nameChildren(document.children)
}

/** How much white space a text has at its ends as it was written; a CDATA section has none. */
function measureSpace(raw: string | undefined): { lead: number; trail: number } {
  if (raw === undefined) return { lead: 0, trail: 0 }
  let [lead, trail] = [0, 0]
  while (lead < raw.length && isSpace(raw[lead]!)) lead++
  while (trail < raw.length - lead && isSpace(raw[raw.length - 1 - trail]!)) trail++
  return lead === raw.length ? { lead, trail: lead } : { lead, trail }
}

function joinPieces(a: Piece, b: Piece): Piece {
  return {
    text: a.text + b.text,
    lead: a.lead === a.text.length ? a.lead + b.lead : a.lead,
    trail: b.trail === b.text.length ? a.trail + b.trail : b.trail,
  }
}

function isSpace(character: string): boolean {
  return character === ' ' || character === '\n' || character === '\t'
}

function isBlank({ text, lead }: Piece): boolean {
  return lead === text.length
}

/** Whether the white space between an element's children says something. */
function isMixed({ keepsSpace, children }: Level): boolean {
  return keepsSpace || children.some((child) => 'piece' in child && !isBlank(child.piece))
}

function describeElement(level: Level): unknown {
  const { children, attributes, keepsSpace } = level
  const pieces = children.flatMap((child) => ('piece' in child ? [child.piece] : []))
  const isLeaf = pieces.length === children.length
  const texts = isLeaf
    ? pieces.map(({ text, lead, trail }) =>
        keepsSpace ? text : lead === text.length ? '' : text.slice(lead, text.length - trail),
      )
    : isMixed(level)
      ? pieces.map(({ text }) => text)
      : []
  if (isLeaf && attributes.size === 0) return texts[0] ?? ''
  const value = nameAttributes(attributes)
  for (const [name, child] of Object.entries(nameChildren(children))) setOwn(value, name, child)
  if (texts.length > 1) setOwn(value, '#text', texts)
  else if (texts[0]) setOwn(value, '#text', texts[0])
  return value
}

function listChildren(level: Level): Record<string, unknown> {
  const isLeaf = level.children.every((child) => 'piece' in child)
  const keeps = isLeaf || isMixed(level)
  const children = level.children.flatMap((child): unknown[] => {
    if ('piece' in child) return keeps ? [child.piece.text] : []
    return [nameChildren([child])]
  })
  return { ...nameAttributes(level.attributes), '#children': children }
}

function nameAttributes(attributes: ReadonlyMap<string, string>): Record<string, unknown> {
  const value: Record<string, unknown> = {}
  for (const [name, text] of attributes) value[`@${name}`] = text
  return value
}

/** The elements by their names, a list where one comes more than once. */
function nameChildren(children: Child[]): Record<string, unknown> {
  const byName = new Map<string, unknown[]>()
  for (const child of children) {
    if ('piece' in child) continue
    const known = byName.get(child.name)
    if (known) known.push(child.value)
    else byName.set(child.name, [child.value])
  }
  const value: Record<string, unknown> = {}
  for (const [name, values] of byName) setOwn(value, name, values.length > 1 ? values : values[0])
  return value
}

/** Each begins where the one before ends, so that data without any is given up at once, however long it is. */
const PAIR = /([^\s="']+)\s*=\s*(?:"([^"]*)"|'([^']*)')\s*/y

/** The data of an instruction: by names if all of it looks like attributes, else as it is. */
function describeInstruction(data: string): unknown {
  const value: Record<string, unknown> = {}
  let at = 0
  while (at < data.length) {
    PAIR.lastIndex = at
    const pair = PAIR.exec(data)
    if (!pair) return data
    at = PAIR.lastIndex
    value[`@${pair[1]}`] = pair[2] ?? pair[3]
  }
  return at === 0 ? data : value
}
