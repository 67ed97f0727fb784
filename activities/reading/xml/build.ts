import { isObject } from '../../../workflows/json.ts'
import { escapeAttribute, escapeCharacter, escapeXmlText } from './characters.ts'
import { isXmlName } from './names.ts'

/** A child as it is written: a text or an element (or an instruction) without the line that it may stand on. */
type Part = { text: string } | { write: (depth: number) => string }

/**
 * Writes XML from an object in the shape that parseXml reads, with or without `order`, so that it reads back the same.
 * With `document` it must have one root. The encoding in its declaration is always UTF-8. Throws an Error for names and
 * texts that XML cannot have.
 */
export function buildXml(value: Record<string, unknown>, { document = false } = {}): string {
  const { '?xml': declaration, ...rest } = value
  if (Object.keys(rest).some((key) => key.startsWith('@')))
    throw new Error('an attribute needs an element around it')
  const parts = listParts(rest)
  const roots = parts.filter((part) => 'write' in part).length
  const instructions = Object.keys(rest)
    .filter((key) => key.startsWith('?'))
    .reduce((count, key) => count + [rest[key]].flat().length, 0)
  if (
    document &&
    (roots - instructions !== 1 || parts.some((part) => 'text' in part && part.text.trim() !== ''))
  )
    throw new Error('a document has one root element, and no text beside it')
  const head = declaration === undefined ? '' : `${writeInstruction('xml', nameEncoding(declaration))}\n`
  return head + writeParts(parts, 0)
}

/** Elements on lines of their own; nothing is added around texts, where it would be text itself. */
function writeParts(parts: Part[], depth: number): string {
  const isMixed = parts.some((part) => 'text' in part)
  if (isMixed) return joinMixed(parts)
  return parts.map((part) => ('write' in part ? `${'  '.repeat(depth)}${part.write(depth)}\n` : '')).join('')
}

/** Space that would be left out when it is read is written as references. */
function joinMixed(parts: Part[]): string {
  const keepsSpace = parts.length > 1 && parts.some((part) => 'text' in part && /[^ \t\n]/.test(part.text))
  return parts
    .map((part) => {
      if ('write' in part) return part.write(-1)
      const text = escapeXmlText(part.text)
      return keepsSpace
        ? text
        : text.replace(/^[ \t\n]+|[ \t\n]+$/g, (space) => space.replace(/[\s\S]/g, escapeCharacter))
    })
    .join('')
}

function listParts(value: Record<string, unknown>): Part[] {
  const texts = [value['#text'] ?? []].flat(50).map(writeScalar)
  const elements: Part[] = []
  for (const [key, child] of Object.entries(value)) {
    if (key.startsWith('@') || key === '#text' || child === undefined) continue
    if (key === '#children') {
      for (const each of [child].flat(50)) elements.push(...listOrdered(each))
      continue
    }
    for (const each of Array.isArray(child) ? child.flat(50) : [child]) elements.push(writeElement(key, each))
  }
  // Pieces of a text stay pieces only if elements come between them.
  const parts: Part[] = []
  const last = Math.max(texts.length, elements.length)
  for (let at = 0; at < last; at++) {
    if (texts[at]) parts.push({ text: texts[at]! })
    if (elements[at]) parts.push(elements[at]!)
  }
  return parts
}

/** A child of a list in order: a text, or an object of elements. */
function listOrdered(child: unknown): Part[] {
  if (isObject(child)) return listParts(child)
  const text = writeScalar(child)
  return text === '' ? [] : [{ text }]
}

function writeElement(key: string, value: unknown): Part {
  const name = key.replace(/^\?/, '')
  demandName(key, name)
  if (key !== name) return { write: () => writeInstruction(name, value) }
  if (!isObject(value)) {
    const text = writeScalar(value)
    const parts: Part[] = text === '' ? [] : [{ text }]
    return { write: () => (value === null ? `<${name}/>` : `<${name}>${joinMixed(parts)}</${name}>`) }
  }
  const start = `<${name}${writeAttributes(value)}>`
  const parts = listParts(value)
  return {
    write(depth) {
      const isMixed = parts.some((part) => 'text' in part)
      if (parts.length === 0 || isMixed) return `${start}${joinMixed(parts)}</${name}>`
      // Within a text no line may be added.
      if (depth < 0)
        return `${start}${parts.map((part) => ('write' in part ? part.write(-1) : '')).join('')}</${name}>`
      return `${start}\n${writeParts(parts, depth + 1)}${'  '.repeat(depth)}</${name}>`
    },
  }
}

function writeAttributes(value: Record<string, unknown>): string {
  return Object.entries(value)
    .filter(([key, each]) => key.startsWith('@') && each !== undefined)
    .map(([key, each]) => {
      demandName(key, key.slice(1))
      return ` ${key.slice(1)}="${escapeAttribute(writeScalar(each))}"`
    })
    .join('')
}

function writeInstruction(target: string, value: unknown): string {
  const data = isObject(value) ? writeAttributes(value).trim() : escapeNothing(writeScalar(value))
  if (data.includes('?>')) throw new Error(`the instruction ${target} has ?>, which ends it`)
  return data === '' ? `<?${target}?>` : `<?${target} ${data}?>`
}

/** An instruction has no references: what cannot be written is refused. */
function escapeNothing(text: string): string {
  escapeXmlText(text)
  return text
}

function nameEncoding(declaration: unknown): unknown {
  return isObject(declaration) && declaration['@encoding'] !== undefined
    ? { ...declaration, '@encoding': 'UTF-8' }
    : declaration
}

function demandName(key: string, name: string): void {
  if (!isXmlName(name))
    throw new Error(`${JSON.stringify(key.slice(0, 100))} is not a valid name for an element or attribute`)
}

function writeScalar(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
