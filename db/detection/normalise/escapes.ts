import type { Edit } from './reading.ts'

/** `&name;` of what instructions and addresses are written with, without the letters with accents. */
const NAMED: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  ensp: ' ',
  emsp: ' ',
  thinsp: ' ',
  tab: '\t',
  newline: '\n',
  excl: '!',
  num: '#',
  dollar: '$',
  percnt: '%',
  lpar: '(',
  rpar: ')',
  ast: '*',
  plus: '+',
  comma: ',',
  period: '.',
  sol: '/',
  colon: ':',
  semi: ';',
  equals: '=',
  quest: '?',
  commat: '@',
  lsqb: '[',
  lbrack: '[',
  bsol: '\\',
  rsqb: ']',
  rbrack: ']',
  hat: '^',
  lowbar: '_',
  grave: '`',
  lcub: '{',
  lbrace: '{',
  verbar: '|',
  vert: '|',
  rcub: '}',
  rbrace: '}',
  hyphen: '-',
  dash: '-',
  ndash: '-',
  mdash: '-',
  lsquo: "'",
  rsquo: "'",
  ldquo: '"',
  rdquo: '"',
  hellip: '...',
  middot: '.',
  bull: '*',
  laquo: '"',
  raquo: '"',
  szlig: 'ss',
  aelig: 'ae',
  oelig: 'oe',
  oslash: 'o',
  shy: '',
  zwj: '',
  zwnj: '',
  lrm: '',
  rlm: '',
  zerowidthspace: '',
  nobreak: '',
}

// A letter with an accent, or of another alphabet of mathematics: `&eacute;`, `&iscr;`.
const STYLED = /^([a-z])(?:acute|grave|circ|uml|tilde|ring|cedil|caron|breve|macr|dot|ogon|strok|scr|fr|opf)$/
const HTML = /&(?:#(\d{1,7});?|#x([\da-f]{1,6});?|([a-z]{2,15});)|<(?:!--|--!?>|\/?[a-z][^<>]{0,200}>)/gi

/** Character references, and tags, which are left out: what is written in `<b>I</b>gnore` is one word. */
export function findHtml(text: string): Edit[] {
  if (!text.includes('&') && !text.includes('<')) return []
  const edits: Edit[] = []
  for (const match of text.matchAll(HTML)) {
    const [found, decimal, hex, name] = match
    const read =
      decimal !== undefined
        ? readCode(Number.parseInt(decimal, 10))
        : hex !== undefined
          ? readCode(Number.parseInt(hex, 16))
          : name !== undefined
            ? readNamed(name.toLowerCase())
            : readTag(found)
    if (read !== undefined && read !== found)
      edits.push(createEdit(match.index, match.index + found.length, read))
  }
  return edits
}

function readNamed(name: string): string | undefined {
  return Object.hasOwn(NAMED, name) ? NAMED[name] : STYLED.exec(name)?.[1]
}

// What begins a paragraph, or a comment, ends a word.
const BLOCK = /^<(?:!--|--|\/?(?:p|br|div|li|ul|ol|tr|td|th|h\d|table|section|hr|pre)\b)/i
const readTag = (tag: string) => (BLOCK.test(tag) ? ' ' : '')

const readCode = (code: number): string | undefined =>
  code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : undefined

const createEdit = (start: number, end: number, text: string): Edit => ({
  start,
  end,
  text,
  from: new Array(text.length).fill(start),
  to: new Array(text.length).fill(end),
})

const ESCAPE =
  /(?<!\\)\\{1,8}(?:u\{([\da-f]{1,6})\}|u([\da-f]{4})|x([\da-f]{2})|([0-3][0-7]{2})|([nrt"'`/]))|U\+([\da-f]{4,6}) ?/gi

/** The escapes of JSON, JavaScript and C, and code points as `U+0041`. */
export function findEscapes(text: string): Edit[] {
  if (!text.includes('\\') && !text.includes('+')) return []
  const edits: Edit[] = []
  for (const match of text.matchAll(ESCAPE)) {
    const [found, braced, four, two, octal, letter, point] = match
    const code = braced ?? four ?? two ?? point
    const read = code
      ? readUnit(Number.parseInt(code, 16))
      : octal
        ? readUnit(Number.parseInt(octal, 8))
        : readLetter(letter!)
    if (read !== undefined) edits.push(createEdit(match.index, match.index + found.length, read))
  }
  // Only line ends and quotes are how JSON is written: it says the same with them.
  return edits.some(({ text }) => /[^\s"'`/]/.test(text)) ? edits : []
}

// Half of a surrogate pair comes together with the other half.
const readUnit = (code: number): string | undefined =>
  code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined

const readLetter = (letter: string): string => (/[nrt]/i.test(letter) ? ' ' : letter)

// In mails an equals sign takes the place of the percent sign.
const PERCENT = /(?:%[\da-f]{2})+|(?:=[\da-f]{2}){3,}/gi

/** Characters in percent encoding, which may be UTF-8 and may be encoded twice. */
export function findUrl(text: string): Edit[] {
  if (!text.includes('%') && !text.includes('=')) return []
  const edits: Edit[] = []
  for (const { 0: found, index } of text.matchAll(PERCENT)) edits.push(decodePercent(found, index))
  return addPluses(text, edits)
}

/** Near what is encoded so, as in a form, a plus is a space. */
function addPluses(text: string, edits: Edit[]): Edit[] {
  const all: Edit[] = []
  let done = 0
  for (const edit of edits) {
    for (let at = edit.start - 1, spaces: Edit[] = []; ; at--) {
      if (at < done || edit.start - at > 40 || /\s/.test(text[at]!)) {
        all.push(...spaces.reverse())
        break
      }
      if (text[at] === '+') spaces.push(createEdit(at, at + 1, ' '))
    }
    all.push(edit)
    done = edit.end
    for (let at = done; at < text.length && at - edit.end < 40 && !/[\s%]/.test(text[at]!); at++) {
      if (text[at] === '+') all.push(createEdit(at, at + 1, ' '))
      done = at + 1
    }
  }
  return all
}

function decodePercent(found: string, start: number): Edit {
  const bytes = new Uint8Array(found.length / 3)
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(found.slice(3 * i + 1, 3 * i + 3), 16)
  const { text, from, to } = readUtf8(bytes, 0, bytes.length)
  const place = (index: number) => start + 3 * index
  return { start, end: start + found.length, text, from: from.map(place), to: to.map(place) }
}

/**
 * A text in UTF-8, with the byte at which each of its units begins and the one after its last; invalid bytes are left
 * out.
 */
export function readUtf8(bytes: Uint8Array, begin: number, end: number) {
  const parts: string[] = []
  const from: number[] = []
  const to: number[] = []
  for (let at = begin; at < end; ) {
    const size = measureUtf8(bytes, at, end)
    if (size > 0) {
      const char = size === 1 ? String.fromCharCode(bytes[at]!) : decodeBytes(bytes, at, size)
      for (let i = 0; i < char.length; i++) {
        from.push(at)
        to.push(at + size)
      }
      parts.push(char)
    }
    at += Math.max(1, size)
  }
  return { text: parts.join(''), from, to }
}

/** How many bytes from `at` on are one character in UTF-8; 0 if they are none. */
export function measureUtf8(bytes: Uint8Array, at: number, end: number): number {
  const byte = bytes[at]!
  if (byte < 0x80) return 1
  const size =
    byte >= 0xc2 && byte < 0xe0 ? 2 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xf0 && byte < 0xf5 ? 4 : 0
  if (size === 0 || at + size > end) return 0
  for (let i = 1; i < size; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return 0
  return size
}

function decodeBytes(bytes: Uint8Array, at: number, size: number): string {
  let code = bytes[at]! & (0xff >> (size + 1))
  for (let i = 1; i < size; i++) code = (code << 6) | (bytes[at + i]! & 0x3f)
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : ''
}
