/** The tokens that luxon knows: all other runs of letters come out unchanged, unless they are in quotes. */
const TOKENS = new Set(
  `S SSS u uu uuu s ss m mm h hh H HH Z ZZ ZZZ ZZZZ ZZZZZ z a d dd c ccc cccc ccccc E EEE EEEE EEEEE L LL LLL LLLL LLLLL
  M MM MMM MMMM MMMMM y yy yyyy yyyyy yyyyyy G GG GGGGG kk kkkk W WW n nn ii iiii o ooo q qq x X D DD DDD DDDD t tt ttt tttt
  T TT TTT TTTT f ff fff ffff F FF FFF FFFF`.split(/\s+/),
)

/** Whole dates and times: beside other parts of a date they are not what was meant, as in DD.MM.yyyy. */
const WHOLE = /^[DtTfF]+$/

/** The words of other libraries, moment and strftime among them, for tokens that luxon calls otherwise. */
const MEANT: Record<string, string> = {
  YYYY: 'yyyy',
  YY: 'yy',
  YYY: 'yyyy',
  Y: 'y',
  yyy: 'yyyy',
  DD: 'dd',
  D: 'd',
  DDD: 'o',
  DDDD: 'ooo',
  dddd: 'cccc',
  ddd: 'ccc',
  A: 'a',
  AM: 'a',
  aa: 'a',
  SS: 'SSS',
  T: "'T'",
  eeee: 'cccc',
  eee: 'ccc',
}

type Piece = { text: string; isToken: boolean }

/**
 * The fault of a format of luxon's: a part that would be written literally, or as something else than was meant.
 * Undefined if it has none.
 */
export function findFormatFault(format: string): string | undefined {
  const pieces = splitFormat(format)
  const tokens = pieces.filter(({ isToken }) => isToken)
  const wrong = new Map<Piece, string | undefined>()
  const has = (pattern: RegExp) => tokens.some(({ text }) => pattern.test(text))
  const isDate = has(/^[yYMLd]/)
  for (const piece of tokens) {
    const { text } = piece
    const isStrange = !TOKENS.has(text)
    const isMixed =
      WHOLE.test(text) && tokens.length > 1 && (/^[DtT]/.test(text) ? isDate || has(/^[Hhms]/) : isDate)
    if (isStrange || isMixed) wrong.set(piece, Object.hasOwn(MEANT, text) ? MEANT[text] : undefined)
    const isMonth = /^mm?$/.test(text) && has(/^[yY]/) && has(/^[dD]/) && !has(/^[MLHhtTfF]/)
    if (isMonth) wrong.set(piece, text.toUpperCase())
  }
  const [[first] = []] = wrong
  if (!first) return undefined
  const better = pieces.map((piece) =>
    wrong.has(piece) ? (wrong.get(piece) ?? `'${piece.text}'`) : piece.text,
  )
  const said = /^mm?$/.test(first.text)
    ? 'means minutes'
    : WHOLE.test(first.text)
      ? 'is a whole date or time'
      : 'is no part of a date'
  return `is no format: ${JSON.stringify(first.text)} ${said} there; did you mean ${better.join('')}?`
}

/** A format as runs of one letter, and what is between them: other characters, and what is in quotes. */
function splitFormat(format: string): Piece[] {
  return [...format.matchAll(/'[^']*'?|([A-Za-z])\1*|[^A-Za-z']+/g)].map(([text, letter]) => ({
    text,
    isToken: letter !== undefined,
  }))
}
