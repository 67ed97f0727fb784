import { isPastHost, splitUrl } from '../../../workflows/graph/openhost.ts'
import { invalidConfig } from './failure.ts'

/** Keeps the value of an expression a text, as it is beside others. */
const BESIDE = '_'

/**
 * The texts that make up a URL to which a credential is sent, to be rendered: each of its expressions by itself.
 * `joinUrl` makes the URL of them.
 */
export function takeUrlApart(url: unknown): string[] {
  if (typeof url !== 'string') throw invalidConfig('url', 'must be a URL')
  try {
    const { parts, isScript } = splitUrl(url)
    return parts.map((part) => {
      if (typeof part === 'string') return ''
      return `${isScript ? '=' : ''}${BESIDE}{{ ${part.source} }}`
    })
  } catch (error) {
    throw invalidConfig('url', (error as Error).message)
  }
}

/** Whether texts and expressions together make up a URL. */
export function isMixedUrl(url: unknown): boolean {
  if (typeof url !== 'string' || !url.includes('{{')) return false
  try {
    return splitUrl(url).parts.length > 1
  } catch {
    return false
  }
}

/** What a value may be that is a piece of a host: a piece of one label, or a port. */
const HOST_PIECE = /^[\w-]*$/

/** How a URL is joined. */
export type UrlManner = {
  /** The values come from an untrusted source, such as a model. */
  strict?: boolean
  /** Whether values after the host are percent-encoded (the default), or taken as they are. */
  encodes?: boolean
  /** Called if a part of the path that only expressions give has become empty: `/users/{{ $input.id }}` without an id. */
  onEmpty?: () => void
}

/**
 * Joins a URL. A value within its path, query or fragment is percent-encoded, so that it cannot change where the
 * request goes; before that, values are taken as they are. With `strict` a value beside other text of the host must be a
 * piece of a label or a port: else `https://api.example.com{{ $args.path }}` would lead to any host; and one within the
 * path must name something below it. Throws a NodeFailure (InvalidConfig) for others, and if a part of the path would be
 * `.` or `..`.
 */
export function joinUrl(url: unknown, rendered: unknown, manner: UrlManner = {}): string {
  const { strict = false, encodes = true, onEmpty } = manner
  const { parts } = splitUrl(String(url))
  let text = ''
  let isFilled = false
  const places: number[] = []
  for (const [i, part] of parts.entries()) {
    if (typeof part === 'string') text += part
    else {
      const own = readValue(rendered, i)
      const isPast = isPastHost(text)
      isFilled ||= isPast && encodes
      if (strict && !isPast && isWithinHost(text, parts[i + 1]) && !HOST_PIECE.test(own))
        throw invalidConfig('url', PIECE_OF_HOST)
      if (strict && isPast && isInPath(text)) demandName(own)
      if (isPast) places.push(text.length)
      text += isPast && encodes ? encodeURIComponent(own.toWellFormed()) : own
    }
  }
  if (isFilled && hasDots(text))
    throw invalidConfig('url', 'has a part of its path that is . or .. once its expressions are computed')
  if (places.some((place) => isEmptyPart(text, place))) onEmpty?.()
  return text
}

function readValue(rendered: unknown, i: number): string {
  const value = (rendered as unknown[])[i]
  if (typeof value === 'string' && value.startsWith(BESIDE)) return value.slice(BESIDE.length)
  throw invalidConfig('url', 'must be a URL')
}

/** What users read of an address whose path has lost a part. */
export const EMPTY_PART =
  'has an empty part in its path once its expressions are computed, so it may be the address of something else: ' +
  'of a whole list instead of one of its entries, for example'

/** Whether a URL that has come past its host has not come to its query or fragment yet. */
function isInPath(start: string): boolean {
  return !/[?#]/.test(start.replace(/^\s*https?:\/\//i, ''))
}

/** Whether the part of the path that has a value at `place` is nothing, or only white space and what cannot be seen. */
function isEmptyPart(url: string, place: number): boolean {
  const before = url.slice(0, place)
  if (!isInPath(before)) return false
  const part = /[^/\\]*$/.exec(before)![0] + /^[^/\\?#]*/.exec(url.slice(place))![0]
  return isBlank(
    decodeURIComponent(part.replace(/%(?![\da-f]{2})/gi, '%25').replace(/%[89a-f][\da-f]/gi, 'x')),
  )
}

function isBlank(text: string): boolean {
  return /^[\s\p{C}]*$/u.test(text)
}

/**
 * An untrusted value in a path must name something: without a name `/users/` is all of them. Servers that decode twice, or
 * a slash too early, read dots and control characters in it as their own.
 */
export function demandName(value: string): void {
  if (isBlank(value)) throw invalidConfig('url', `has an empty value in its path: ${WHOLE}`)
  if (/\p{Cc}|%00/iu.test(value))
    throw invalidConfig('url', 'has a value with a control character in its path')
  const plain = value.replace(/%2e/gi, '.').replace(/%(?:2f|5c)/gi, '/')
  if (plain.split(/[/\\]/).some((part) => /^\.{1,2}$/.test(part.trim())))
    throw invalidConfig('url', 'has a value in its path of which a part is . or ..')
}

const WHOLE = 'it would be the address of something else'

const PIECE_OF_HOST =
  'has an expression within its host whose value is more than letters, digits, _ and -: it could lead anywhere. ' +
  'Write the host and the / after it as they stand'

/** Whether a value is only a part of the host, or of the scheme, because text precedes or follows it. */
function isWithinHost(before: string, after: unknown): boolean {
  const start = before.trim()
  if (start !== '' && !/^https?:\/\/$/i.test(start)) return true
  return start !== '' && typeof after === 'string' && /^[^/?#\\:]/.test(after)
}

/** As URLs are read: backslashes are slashes, and the dots may be percent-encoded. */
function hasDots(url: string): boolean {
  const [path = ''] = url.replace(/^\s*https?:\/\//i, '').split(/[?#]/)
  return path.split(/[/\\]/).some((part) => /^(?:\.|%2e){1,2}$/i.test(part.trim()))
}
