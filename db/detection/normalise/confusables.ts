/**
 * Letters that look like a Latin one and that Unicode's compatibility forms do not lead back to it: Cyrillic, Greek,
 * Armenian, Cherokee, Coptic, Lisu, Hebrew, small capitals, letters with strokes or hooks, turned ones. By Latin
 * letter; lookalikes of a capital are listed with the small letter, because readings are compared in lower case.
 */
const LOOKALIKES: Record<string, string> = {
  a: 'аАαΑᎪꓮɑⱭᴀɐⱥȺⲁⲀᗅᐱΔѦæ',
  b: 'ЬьВвβΒᏴꓐʙƄɓƀⲂᗷЪъᏏϐɃ',
  c: 'сСϲϹᏟꓚᴄɔↄƈȼȻⲤⲥᑕҫҪ',
  d: 'ԁԀᎠꓓᴅɗđĐƌɖᗞժᏧð',
  e: 'еЕεΕҽᎬꓰᴇєЄэɛɘǝəⲉⲈҿɇɆⱸξΣ',
  f: 'ƒꓝϝϜғҒᴟꜰẝᖴքʄ',
  g: 'ƃԍԌɡɢǥǤᏀꓖցɠᶃᏻⳊᎶ',
  h: 'һНнΗհᎻꓧʜɦħĦҺⲎᕼɥԦԋ',
  i: 'іІιΙɪıӏᎥꓲɩΪїЇⲒⲓɨƗɿ',
  j: 'јЈᎫꓙᴊʝϳյɉɈᒍȷ',
  k: 'кКκΚᏦꓗᴋƙқҚҟⲔⲕᛕĸҝⱪ',
  l: 'ʟᏞꓡłŁɭƚȽլᒪⳐⳑǀןӀ',
  m: 'мМΜϺᎷꓟᴍɱⲘⲙᗰɯ',
  n: 'пηПոռΝꓠɴɲŋŊƞⲚⲛᑎиИйЙήͶͷ',
  o: 'оОοΟօՕᏫꓳᴏøØσɵΘθⲞⲟӨөہѲѳΦφ',
  p: 'рРρΡᏢꓑᴘƥþÞⲢⲣᑭҏק',
  q: 'ԛԚգզɋʠϙϘႳ',
  r: 'гГᎡꓣʀɾɼɹяЯⲄᖇʁՐґҐɍɌɽ',
  s: 'ѕЅʂꜱꓢᏚՏᎦƽȿʃ',
  t: 'тТτΤᎢꓔᴛƭŧŦⲦⲧʇեȾ',
  u: 'սՍυᴜꓴʊԱʋцЦμµᑌᏌʉɄ',
  v: 'ʌνѵѴᏙꓦᴠѷᐯטⲨ',
  w: 'ԝԜщωᎳꓪᴡшШЩⱲաʍᏔѡѠⲰⲱ',
  x: 'хХχΧꓫҳҲⲬⲭӽӿ',
  y: 'уУүҮγΥᎩꓬʏɣƴҰұყɏɎʎўЎ',
  z: 'ᏃꓜᴢƶƵȥʐⱬⲌⲍʒӠӡⱫ',
}

/** White letters on black circles and squares, a to z. */
const NEGATIVES: [number, number][] = [
  [0x1f150, 0x1f169],
  [0x1f170, 0x1f189],
]

const MAP = new Map<number, string>()
for (const [latin, others] of Object.entries(LOOKALIKES)) {
  for (const char of others) {
    const code = char.codePointAt(0)!
    if (code > 0x7f && !MAP.has(code)) MAP.set(code, latin)
  }
}
for (const [from, to] of NEGATIVES) {
  for (let code = from; code <= to; code++) MAP.set(code, String.fromCharCode(97 + code - from))
}

/** Dashes, quotes, slashes and blanks that stand for the one of ASCII. */
const MARKS: Record<string, string> = {
  '-': '\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b\u058a',
  "'": '\u2018\u2019\u201a\u201b\u2032\u2035\u02b9\u02bb\u02bc\u02c8\u055a\u05f3',
  '"': '\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\u02ba\u05f4\u3003',
  '/': '\u2044\u2215\u29f8\u2571',
  '\\': '\u2216\u29f5\u29f9\u2572',
  '.': '\u0589\u06d4\ua4f8\u0702\u3002',
  ':': '\u0589\u05c3\u0703\u2236\ua789\ua4fd',
  '|': '\u2223\u2758\u01c0\u2502\uffe8',
  '<': '\u2039\u276e\u1438\u02c2',
  '>': '\u203a\u276f\u1433\u02c3',
  '*': '\u2217\u066d\u204e\u2731',
  '~': '\u223c\u02dc\u1fc0',
  ' ': '\u2800\u3164\u2028\u2029\u1680\u115f\u1160\uffa0',
}
const MARK_MAP = new Map(
  Object.entries(MARKS).flatMap(([ascii, others]) => Array.from(others, (char) => [char, ascii] as const)),
)

/** The ASCII mark that a character resembles, or undefined. */
export const findPlainMark = (char: string): string | undefined => MARK_MAP.get(char)

/** The Latin letter that a code point looks like, or undefined. */
export function findLookalike(code: number): string | undefined {
  return MAP.get(code)
}
