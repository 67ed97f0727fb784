import { isTemplate, plainText, splitPieces, tryCode, writeCode } from '../texts.ts'

type Fields = Record<string, unknown>

/** An expression for the item's file that a parameter names, which may itself be an expression that gives one. */
export function fileOf(name: unknown, fallback = 'data'): string {
  return `={{ ${fileScript(name, fallback)} }}`
}

export function fileScript(name: unknown, fallback = 'data'): string {
  const given = name === undefined || name === '' ? fallback : name
  if (!isTemplate(given)) return `$binary[${JSON.stringify(plainText(given))}]`
  const pieces = splitPieces(given).map((piece) =>
    isTemplate(piece) ? tryCode(piece.slice(3, -2)) : JSON.stringify(piece),
  )
  if (pieces.length > 1) return `$binary[${pieces.join(' + ')}]`
  // The value is a name, or a file itself.
  return `(given => typeof given === "object" ? given : $binary[given])(${pieces[0]})`
}

/** An expression for a file of a message: that of the item, by another name if one is given. */
export function sentFileOf(name: unknown, fileName?: unknown, fallback = 'data'): string {
  const script = fileScript(name, fallback)
  if (fileName === undefined || fileName === '') return `={{ ${script} }}`
  return `={{ ({ file: ${script}, fileName: ${writeCode(fileName)} }) }}`
}

/**
 * An expression for several files of the item, whose names stand in a text with commas between them, or are what an
 * expression gives. An item without any files has none of them.
 */
export function sentFilesOf(lists: { names: unknown; cid?: boolean }[]): string {
  const parts = lists.map(({ names, cid }) => {
    const list = isTemplate(names)
      ? `(given => Array.isArray(given) ? given : typeof given === 'object' ? [given] : ` +
        `String(given).split(',').map(one => one.trim()))(${writeCode(names)})`
      : JSON.stringify(splitGiven(names))
    const made = `typeof one === 'object' ? one : ${cid ? '({ file: $binary[one], cid: one })' : '$binary[one]'}`
    return `...${list}.map(one => ${made})`
  })
  return `={{ Object.keys($binary).length === 0 ? [] : [${parts.join(', ')}] }}`
}

/** As n8n splits them: what is empty stays a name. */
const splitGiven = (names: unknown) =>
  Array.isArray(names) ? names.map(String) : (plainText(names) ?? '').split(',').map((one) => one.trim())

const READ_ENCODINGS: Record<string, string> = {
  utf8: 'utf-8',
  'utf-8': 'utf-8',
  utf16le: 'utf-16le',
  'utf-16le': 'utf-16le',
  ucs2: 'utf-16le',
  'ucs-2': 'utf-16le',
  utf16: 'utf-16le',
  utf16be: 'utf-16be',
  ascii: 'utf-8',
  latin1: 'windows-1252',
  'iso-8859-1': 'windows-1252',
  iso88591: 'windows-1252',
  win1252: 'windows-1252',
  windows1252: 'windows-1252',
  shiftjis: 'shift_jis',
  gbk: 'gbk',
  gb18030: 'gb18030',
  big5: 'big5',
  euckr: 'euc-kr',
  eucjp: 'euc-jp',
  koi8r: 'koi8-r',
  win1251: 'windows-1251',
  win1250: 'windows-1250',
}

export function readEncoding(given: unknown): Fields {
  if (given === undefined || given === '') return {}
  const encoding = READ_ENCODINGS[String(plainText(given)).toLowerCase()]
  if (encoding === undefined)
    throw new Error(`it reads the encoding "${given}", which EXTRACT_FROM_FILE does not know by that name`)
  return { encoding }
}

const WRITTEN_ENCODINGS: Record<string, string> = {
  utf8: 'utf-8',
  'utf-8': 'utf-8',
  utf16le: 'utf-16le',
  ucs2: 'utf-16le',
  latin1: 'iso-8859-1',
  'iso-8859-1': 'iso-8859-1',
}

export function writeEncoding(given: unknown): Fields {
  if (given === undefined || given === '') return {}
  const encoding = WRITTEN_ENCODINGS[String(plainText(given)).toLowerCase()]
  if (encoding === undefined)
    throw new Error(`it writes the encoding "${given}", and CONVERT_TO_FILE UTF-8, UTF-16LE or ISO-8859-1`)
  return encoding === 'utf-8' ? {} : { encoding }
}

/** The encodings for which n8n heeds what is said of a byte order mark. */
export const KNOWS_MARK = new Set(['utf8', 'cesu8', 'ucs2'])
