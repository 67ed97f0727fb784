/** Tokens of moment's formats, and luxon's for the same. */
const TOKENS: Record<string, string> = {
  YYYY: 'yyyy',
  YY: 'yy',
  MMMM: 'MMMM',
  MMM: 'MMM',
  MM: 'MM',
  M: 'M',
  DDDD: 'ooo',
  DD: 'dd',
  D: 'd',
  dddd: 'cccc',
  ddd: 'ccc',
  E: 'c',
  HH: 'HH',
  H: 'H',
  hh: 'hh',
  h: 'h',
  mm: 'mm',
  m: 'm',
  ss: 'ss',
  s: 's',
  SSS: 'SSS',
  A: 'a',
  ZZ: 'ZZZ',
  Z: 'ZZ',
  WW: 'WW',
  W: 'W',
  GGGG: 'kkkk',
  Q: 'q',
  X: 'X',
  x: 'x',
}

const PARTS = /\[([^\]]*)\]|([A-Za-z])\2*o?|[^A-Za-z[]+/g

/** A format of moment, which older nodes have, in luxon's tokens; undefined if luxon has none for one of them. */
export function translateMoment(format: string): string | undefined {
  let text = ''
  for (const [part, quoted, letter] of format.matchAll(PARTS)) {
    if (quoted !== undefined) text += quoted === '' ? '' : `'${quoted}'`
    else if (letter === undefined) text += part.includes("'") ? `"${part}"` : part
    else if (!Object.hasOwn(TOKENS, part)) {
      // T and other letters that are no token stand for themselves.
      if (part !== 'T') return undefined
      text += `'${part}'`
    } else text += TOKENS[part]
  }
  return text
}
