/** The most UTF-16 units of a file's name, and of the ending that is kept of a longer one. */
const MAX_NAME = 255
const MAX_ENDING = 20

/** Characters that no name has: control characters, and those that change the direction of the text around them. */
const UNSEEN = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu

/** A name to save a file under: without folders, unseen characters and broken Unicode, of 1 to 255 characters. */
export function cleanFileName(given: string): string {
  const base = given.slice(-4_096).toWellFormed().split(/[/\\]/).at(-1)!
  const name = base.replace(UNSEEN, '').normalize('NFC').trim()
  if (/^\.*$/.test(name)) return 'file'
  if (name.length <= MAX_NAME) return name
  const dot = name.lastIndexOf('.')
  const ending = dot > 0 && name.length - dot <= MAX_ENDING ? name.slice(dot) : ''
  const start = name.slice(0, MAX_NAME - ending.length)
  // A character of two units is not cut in the middle.
  return (start.isWellFormed() ? start : start.slice(0, -1)) + ending
}

const TOKEN = "[\\w!#$%&'*+.^`|~-]{1,80}"
const MEDIA_TYPE = new RegExp(`^\\s*(${TOKEN}/${TOKEN})\\s*(?:;|$)`)
const CHARSET = /;\s*charset\s*=\s*"?([\w.:-]{1,40})"?\s*(?:;|$)/i

/**
 * A media type in lower case, with only the charset of its parameters. A missing or invalid one becomes the type of
 * unknown bytes.
 */
export function cleanMediaType(given: string | undefined): string {
  const type = MEDIA_TYPE.exec(given ?? '')?.[1]
  if (!type) return 'application/octet-stream'
  const charset = CHARSET.exec(given!)?.[1]
  return type.toLowerCase() + (charset ? `; charset=${charset.toLowerCase()}` : '')
}
