import { domainToASCII } from 'node:url'

/** A mail address, with the name that is shown for it. */
export type MailAddress = { name: string; address: string }

/** A single address without anything that could end a header, begin another recipient or name a display. */
const ADDRESS = /^[^\s\p{Cc}@<>()[\]\\,;:"]{1,64}@[^\s\p{Cc}@<>()[\]\\,;:"]{1,255}$/u

const MAX_TEXT = 20_000

/** Whether a text is a single e-mail address, and nothing else. */
export function isMailAddress(text: string): boolean {
  return ADDRESS.test(text)
}

/**
 * Reads addresses from a text with commas, or a list of texts, each `ada@example.com` or `Ada Byron
 * <ada@example.com>`; the domains become ASCII. Null and empty texts are no addresses. Throws an Error whose message
 * follows the name of the field.
 */
export function readMailAddresses(value: unknown): MailAddress[] {
  const list = Array.isArray(value) ? value : [value]
  return list.flatMap((entry) => {
    if (entry === null || entry === undefined) return []
    if (typeof entry !== 'string') throw new Error('must be a text, or a list of texts')
    if (entry.length > MAX_TEXT) throw new Error(`must have at most ${MAX_TEXT} characters`)
    if (/[\0\r\n]/.test(entry)) throw new Error('must not contain a line break or NUL')
    return splitAddresses(entry).map(readAddress)
  })
}

/** The parts of a text between commas that are not in quotes. */
function splitAddresses(text: string): string[] {
  const parts: string[] = []
  let start = 0
  let quoted = false
  for (let at = 0; at <= text.length; at++) {
    const char = text[at]
    if (char === '\\' && quoted) at++
    else if (char === '"') quoted = !quoted
    if (at < text.length && (char !== ',' || quoted)) continue
    parts.push(text.slice(start, at).trim())
    start = at + 1
  }
  if (quoted) throw new Error('has a quote that does not end')
  return parts.filter((part) => part !== '')
}

function readAddress(text: string): MailAddress {
  const named = /^([^<>]*)<([^<>]*)>$/.exec(text)
  const given = (named?.[2] ?? text).trim()
  const at = given.lastIndexOf('@')
  const domain = domainToASCII(given.slice(at + 1))
  const address = `${given.slice(0, at)}@${domain}`
  if (!ADDRESS.test(given) || domain === '' || !ADDRESS.test(address)) {
    const shown = text.length > 60 ? `${text.slice(0, 60)}...` : text
    throw new Error(`must have only e-mail addresses, and ${JSON.stringify(shown)} is none`)
  }
  const name = named?.[1]?.trim() ?? ''
  const plain = /^"(.*)"$/.exec(name)?.[1]?.replaceAll(/\\(.)/g, '$1') ?? name
  return { name: plain.replaceAll(/\p{Cc}/gu, ' '), address }
}
