/** A line of a file: `text` is undefined if it is longer than MAX_LINE_BYTES, or no UTF-8. */
export type FileLine = { number: number; text: string | undefined; fault?: string }

/** The details of an entry have 32,000 bytes at most, and escaping makes seven of one at most. */
const MAX_LINE_BYTES = 1024 * 1024

/**
 * Cuts bytes into lines, of which no more than one is held in memory. The last one counts only with its line break: what
 * is behind it is a line with a fault.
 */
export async function* readFileLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<FileLine> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let number = 1
  let pieces: Uint8Array[] = []
  let size = 0
  const keep = (piece: Uint8Array) => {
    size += piece.length
    if (size <= MAX_LINE_BYTES) pieces.push(piece)
    else pieces = []
  }
  const take = (): FileLine => {
    const line = { number, text: undefined }
    try {
      if (size > MAX_LINE_BYTES) return { ...line, fault: `is longer than ${MAX_LINE_BYTES} bytes` }
      return { number, text: decoder.decode(Buffer.concat(pieces)) }
    } catch {
      return { ...line, fault: 'is not UTF-8' }
    } finally {
      pieces = []
      size = 0
      number++
    }
  }
  for await (const chunk of bytes) {
    let from = 0
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      keep(chunk.subarray(from, at))
      from = at + 1
      yield take()
    }
    if (from < chunk.length) keep(chunk.slice(from))
  }
  if (size > 0) yield { number, text: undefined, fault: 'has no end' }
}

const LF = 10
