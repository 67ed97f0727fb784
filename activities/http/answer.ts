import { type WrittenOutput, writeOutput } from '../../db/executions/records/written.ts'
import type { LargeNumbers } from '../../workflows/nodes/fields.ts'
import { parseResponseBody } from './body.ts'
import { showHeaders } from './headers.ts'

/** An answer to be read, parsed and written in a process of its own, because it is large. */
export type LargeAnswer = {
  status: number
  headers: Record<string, string>
  cookies?: string[] | undefined
  body: Uint8Array
  responseType: unknown
  largeNumbers?: LargeNumbers
}

/**
 * The output {status, headers, body} of an answer, or a fault: `body` continues the words "a body that ...",
 * `size` is a sentence. `warnings` are what could not be kept of the body.
 */
export function writeAnswer({
  status,
  headers,
  cookies,
  body,
  responseType,
  largeNumbers,
}: LargeAnswer): { output: WrittenOutput; warnings: string[] } | { fault: 'body' | 'size'; message: string } {
  const read = parseResponseBody(body, headers['content-type'], { responseType, largeNumbers })
  if ('fault' in read) return { fault: 'body', message: read.fault }
  const text = JSON.stringify({ status, headers: showHeaders({ headers, cookies }), body: read.value })
  try {
    return { output: writeOutput(text), warnings: read.warnings }
  } catch (error) {
    if (error instanceof RangeError) return { fault: 'size', message: error.message }
    throw error
  }
}
