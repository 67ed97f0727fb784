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

/** What a value may be that is a piece of a host: a piece of one label, or a port. */
const HOST_PIECE = /^[\w-]*$/

/**
 * Joins a URL. A value within its path, query or fragment is percent-encoded, so that it cannot change where the
 * request goes; before that, values are taken as they are. With `strict` a value beside other text of the host must be a
 * piece of a label or a port: else `https://api.example.com{{ $args.path }}` would lead to any host. Throws a NodeFailure
 * (InvalidConfig) for others, and if a part of the path would be `.` or `..`.
 */
export function joinUrl(url: unknown, rendered: unknown, strict = false): string {
  const { parts } = splitUrl(String(url))
  let text = ''
  let isFilled = false
  for (const [i, part] of parts.entries()) {
    if (typeof part === 'string') text += part
    else {
      const value = (rendered as unknown[])[i]
      if (typeof value !== 'string' || !value.startsWith(BESIDE)) throw invalidConfig('url', 'must be a URL')
      const own = value.slice(BESIDE.length)
      isFilled ||= isPastHost(text)
      if (strict && !isPastHost(text) && isWithinHost(text, parts[i + 1]) && !HOST_PIECE.test(own))
        throw invalidConfig('url', PIECE_OF_HOST)
      text += isPastHost(text) ? encodeURIComponent(own.toWellFormed()) : own
    }
  }
  if (isFilled && hasDots(text))
    throw invalidConfig('url', 'has a part of its path that is . or .. once its expressions are computed')
  return text
}

const PIECE_OF_HOST =
  'has an expression within its host whose value is more than letters, digits, _ and -: it could lead anywhere. ' +
  'Write the host and the / after it as they stand'

/** Whether a value stands beside text of the host, or of the scheme, so that it is not all of the host itself. */
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
