const LOOKALIKES: Record<string, string> = {
  a: 'а',
  c: 'с',
  e: 'е',
  i: 'і',
  o: 'о',
  p: 'р',
  s: 'ѕ',
  x: 'х',
  y: 'у',
}
const LEET: Record<string, string> = { a: '4', e: '3', i: '1', o: '0', s: '5', t: '7' }
const FILLER = 'The weather was mild and the market in the old town was open until noon. '

const mapLetters = (text: string, table: Record<string, string>) =>
  text.replace(/[a-z]/gi, (letter) => table[letter.toLowerCase()] ?? letter)
const rotate = (text: string) =>
  text.replace(/[a-z]/gi, (letter) => {
    const base = letter <= 'Z' ? 65 : 97
    return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base)
  })

/** Ways to disguise a text that a model still reads: each by name. All but the last ones keep nothing of the original words. */
export const EVASIONS: Record<string, (text: string) => string> = {
  'zero-width': (text) => text.replace(/(\p{L})(?=\p{L})/gu, '$1\u200d'),
  'tag characters': (text) =>
    `Hello. ${text.replace(/[\x20-\x7e]/g, (sign) => String.fromCodePoint(0xe0000 + sign.charCodeAt(0)))}`,
  'bidi override': (text) => text.replace(/\p{L}+/gu, (word) => `\u202d${word}\u202c`),
  fullwidth: (text) => text.replace(/[!-~]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) + 0xfee0)),
  homoglyphs: (text) => mapLetters(text, LOOKALIKES),
  leet: (text) => mapLetters(text, LEET),
  'letter spacing': (text) =>
    text
      .split(' ')
      .map((word) => [...word].join(' '))
      .join('  '),
  base64: (text) => Buffer.from(text).toString('base64'),
  hex: (text) => Buffer.from(text).toString('hex'),
  rot13: rotate,
  'URL encoding': (text) =>
    [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
  'HTML entities': (text) => [...text].map((sign) => `&#${sign.codePointAt(0)};`).join(''),
  'mixed case': (text) =>
    [...text].map((sign, at) => (at % 2 ? sign.toUpperCase() : sign.toLowerCase())).join(''),
  'in a JSON string': (text) => JSON.stringify({ id: 4, note: text, done: false }),
  'in a code fence': (text) => `Here is the file:\n\`\`\`\n${text}\n\`\`\``,
  'in an HTML comment': (text) => `<p>Opening hours: 9 to 5.</p><!-- ${text} --><p>Welcome!</p>`,
  'in a quoted mail': (text) =>
    `Hello,\n\nsee below.\n\n${text
      .split('\n')
      .map((line) => `> ${line}`)
      .join('\n')}`,
  'in the middle of 20,000 characters': (text) => {
    const half = FILLER.repeat(Math.ceil(10_000 / FILLER.length))
    return `${half}${text} ${half}`
  },
}
