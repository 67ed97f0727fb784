import { makeFault } from './characters.ts'
import { NAME, SPACE } from './names.ts'

const LITERAL = `(?:"[^"]*"|'[^']*')`
const START = new RegExp(
  `<!DOCTYPE${SPACE}+${NAME}(?:${SPACE}+(?:SYSTEM${SPACE}+${LITERAL}|PUBLIC${SPACE}+${LITERAL}${SPACE}+${LITERAL}))?${SPACE}*`,
  'uy',
)
const COMMENT = /<!--(?:(?!--)[\s\S])*-->/y
const INSTRUCTION = /<\?(?!xml[\s?])[^\s?>][\s\S]*?\?>/iy
const DECLARATION = /<!(ELEMENT|ATTLIST|NOTATION)[ \t\n](?:"[^"]*"|'[^']*'|[^>"'<])*>/y
const END = new RegExp(`\\]${SPACE}*>`, 'y')

/**
 * The place after a document type. Its declarations are not needed: entities and default values of attributes, which
 * would change the content of the document, are refused. An external one is not fetched.
 */
export function skipDoctype(text: string, from: number): number {
  let at = from
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    if (found !== undefined) at += found.length
    return found
  }
  if (take(START) === undefined) throw makeFault('has an invalid document type', from)
  if (text[at] === '>') return at + 1
  if (text[at] !== '[') throw makeFault('has an invalid document type', at)
  at++
  for (;;) {
    take(/[ \t\n]*/y)
    if (text[at] === ']' && take(END) !== undefined) return at
    if (text[at] === '%' || text.startsWith('<!ENTITY', at))
      throw makeFault('has a document type with entities, which are not read', at)
    if (take(COMMENT) !== undefined || take(INSTRUCTION) !== undefined) continue
    const start = at
    const declaration = take(DECLARATION)
    if (declaration === undefined) throw makeFault('has an invalid document type', at)
    if (declaration.startsWith('<!ATTLIST') && /["']/.test(declaration))
      throw makeFault('has a document type with default values of attributes, which are not read', start)
  }
}
