import { StreamLanguage, type StreamParser, type StringStream } from '@codemirror/language'

type State = { inside: boolean; depth: number; script: boolean }

const WORDS = /^(and|or|in|true|false|null|function)\b/
const SQL =
  /^(select|from|where|and|or|not|in|is|null|insert|into|values|update|set|delete|join|left|right|inner|outer|on|as|order|by|group|having|limit|offset|returning|distinct|case|when|then|else|end|with|union|all|exists|like|between|asc|desc|conflict|do|nothing|count|sum|avg|min|max|true|false)\b/i

/** What one token of JSONata is; of JavaScript, in a text that begins with `=`, enough of it is the same. */
function readExpression(stream: StringStream): string | null {
  if (stream.eatSpace()) return null
  if (stream.match(/^\/\*.*?(\*\/|$)/)) return 'comment'
  if (stream.match(/^"(?:[^"\\]|\\.)*("|$)/) || stream.match(/^'(?:[^'\\]|\\.)*('|$)/)) return 'string'
  if (stream.match(/^`[^`]*(`|$)/)) return 'propertyName'
  if (stream.match(/^\d+(\.\d+)?([eE][+-]?\d+)?/)) return 'number'
  if (stream.match(/^\$\$?(?=[A-Za-z_])\w+\s*(?=\()/)) return 'keyword'
  if (stream.match(/^\$\w*/)) return 'variableName'
  if (stream.match(WORDS)) return 'atom'
  if (stream.match(/^[A-Za-z_]\w*/)) return 'propertyName'
  if (stream.match(/^(:=|!=|<=|>=|\?\?|\?:|~>|\*\*|\.\.|[-+*/%&=<>?:|^@#])/)) return 'operator'
  stream.next()
  return null
}

function readText(stream: StringStream, language: 'text' | 'sql'): string | null {
  if (language === 'sql') {
    if (stream.eatSpace()) return null
    if (stream.match(/^--.*/)) return 'comment'
    if (stream.match(/^'(?:[^']|'')*('|$)/)) return 'string'
    if (stream.match(/^(\$\d+|\d+(\.\d+)?)/)) return 'number'
    if (stream.match(SQL)) return 'keyword'
    if (stream.match(/^[A-Za-z_]\w*/)) return null
    stream.next()
    return null
  }
  if (!stream.skipTo('{{')) stream.skipToEnd()
  return null
}

/** The parser of texts with expressions in braces, or of one expression. */
export function speakExpressions(mode: 'template' | 'whole', language: 'text' | 'sql') {
  const parser: StreamParser<State> = {
    startState: () => ({ inside: false, depth: 0, script: false }),
    token(stream, state) {
      // A whole expression may have braces around it all the same.
      if (!state.inside) {
        if (stream.match('{{')) {
          Object.assign(state, { inside: true, depth: 0 })
          return 'brace'
        }
        return mode === 'whole' ? readExpression(stream) : readText(stream, language)
      }
      if (state.depth === 0 && stream.match('}}')) {
        state.inside = false
        return 'brace'
      }
      // The braces of an object in it are no end of it.
      if (stream.peek() === '{') state.depth += 1
      if (stream.peek() === '}') state.depth = Math.max(0, state.depth - 1)
      return readExpression(stream)
    },
    blankLine: () => {},
    languageData: { closeBrackets: { brackets: ['(', '[', '{', '"', "'", '`'] } },
  }
  return StreamLanguage.define(parser)
}

/** Whether a place is inside a string of an expression: no name is typed there. Strings end with their line here. */
export function isQuoted(text: string, at: number): boolean {
  const start = Math.max(text.lastIndexOf('\n', at - 1) + 1, text.lastIndexOf('{{', at - 1) + 1)
  let quote = ''
  for (let here = start; here < at; here += 1) {
    const char = text[here]!
    if (quote && char === '\\') here += 1
    else if (quote) quote = char === quote ? '' : quote
    else if (char === '"' || char === "'") quote = char
    else if (text.startsWith('//', here)) return false
  }
  return quote !== ''
}

/** Whether a place of the text is inside an expression: for what is completed and inserted there. */
export function isInside(text: string, at: number, mode: 'template' | 'whole'): boolean {
  if (mode === 'whole') return true
  const before = text.slice(0, at)
  return before.lastIndexOf('{{') > before.lastIndexOf('}}')
}
