import { type WrittenOutput, writeOutput } from '../../db/records/written.ts'
import { parseResponseBody } from './body.ts'

/** An answer to be read, parsed and written in a process of its own, because it is large. */
export type LargeAnswer = {
  status: number
  headers: Record<string, string>
  body: Uint8Array
  responseType: unknown
}

/**
 * The output {status, headers, body} of an answer, or a fault: `body` continues the words "a body that ...",
 * `size` is a sentence.
 */
export function writeAnswer({
  status,
  headers,
  body,
  responseType,
}: LargeAnswer): { output: WrittenOutput } | { fault: 'body' | 'size'; message: string } {
  const read = parseResponseBody(body, headers['content-type'], responseType)
  if ('fault' in read) return { fault: 'body', message: read.fault }
  const text = JSON.stringify({ status, headers, body: read.value })
  try {
    return { output: writeOutput(text) }
  } catch (error) {
    if (error instanceof RangeError) return { fault: 'size', message: error.message }
    throw error
  }
}
