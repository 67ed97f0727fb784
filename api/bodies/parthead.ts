import { readDispositionName } from '../../activities/files/disposition.ts'
import { openDecoder } from '../../activities/reading/charset.ts'
import { readParameters } from './parameters.ts'

/** The headers of a part, as Latin-1. */
export type PartHeaders = Record<string, string[] | undefined>

/** The limits of a part's headers; further ones are not read. */
export const HEAD_LIMITS = { maxHeaderPairs: 50, maxHeaderSize: 16 * 1024 }

/** A text in which each quote that opens is closed. */
const CLOSED_QUOTES = /^(?:[^"]|"(?:[^"\\]|\\[\s\S])*")*$/

type Head = { name: string; filename: string | undefined; type: string } | { name?: undefined; fault: string }

/** The head of a part of a form, or its fault. */
export function readPartHead(header: PartHeaders): Head {
  const type = header['content-type']?.[0] ?? ''
  if (isCut(header)) return { fault: 'one has more headers than are read' }
  const given = header['content-disposition']?.[0]
  if (given === undefined) return { fault: 'one has no Content-Disposition' }
  if (!/^\s*form-data\s*(;|$)/i.test(given))
    return { fault: 'one has a Content-Disposition that is not form-data' }
  if (!CLOSED_QUOTES.test(given)) return { fault: 'one has a Content-Disposition whose quotes do not end' }
  const parameters = readParameters(given)
  const name = parameters.get('name')
  if (name === undefined) return { fault: `one has no name in its Content-Disposition` }
  const isEncoded = parameters.has('filename*') || /=\?[^?]*\?[bq]\?/i.test(parameters.get('filename') ?? '')
  const plain = parameters.get('filename')
  const filename = isEncoded ? (readDispositionName(given) ?? plain) : plain
  return {
    name: unescapeName(decodeName(name)),
    filename: filename === undefined || isEncoded ? filename : decodeName(filename),
    type,
  }
}

/** Whether some of the headers may be missing, because they were too many or too long. */
function isCut(header: PartHeaders): boolean {
  const { maxHeaderPairs, maxHeaderSize } = HEAD_LIMITS
  const lines = Object.entries(header).flatMap(([name, values = []]) =>
    values.map((value) => name.length + value.length + 4),
  )
  const bytes = lines.reduce((sum, line) => sum + line, 0)
  return lines.length >= maxHeaderPairs || bytes >= maxHeaderSize
}

function decodeName(given: string): string {
  try {
    return openDecoder('utf-8', { fatal: true })!.decode(Buffer.from(given, 'latin1'))
  } catch {
    return given
  }
}

/** Browsers escape three characters in names, and send all others as they are: a name may have looked so before. */
export function unescapeName(name: string): string {
  return name.replace(/%0d|%0a|%22/gi, (sign) => ESCAPED[sign.toLowerCase()]!)
}

const ESCAPED: Record<string, string> = { '%0d': '\r', '%0a': '\n', '%22': '"' }
