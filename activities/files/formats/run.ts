import { isDeeper } from '../../../db/executions/records/depth.ts'
import { type WrittenOutput, writeOutput } from '../../../db/executions/records/written.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { invalidFile } from './faults.ts'
import type { FileResult, FileWork, Warn } from './work.ts'

/** Larger results are written by the evaluator process: the worker then has only their bytes. */
const MAX_TEXT = 256 * 1024

/** Deeper values overflow the stack when they are serialised again. */
const MAX_DEPTH = 500

/** Does the work. A fault of the file is a result; other errors are thrown. */
export async function workOnFile(work: FileWork): Promise<FileResult> {
  const warnings: string[] = []
  const warn: Warn = (message) => void warnings.push(message)
  try {
    if ('write' in work) {
      const { writeFormat } = await import('./write.ts')
      return { bytes: await writeFormat(work.write), warnings }
    }
    if ('pack' in work) {
      const { packFiles } = await import('./pack.ts')
      return { bytes: packFiles(work.pack), warnings }
    }
    const { readFormat } = await import('./read.ts')
    const reading = await readFormat(work.read, warn)
    if ('bytes' in reading || 'unpacked' in reading) return { ...reading, warnings }
    return { ...packOutput(work.read.name, reading.output), warnings }
  } catch (error) {
    if (error instanceof NodeFailure) return { fault: error.type, message: error.message }
    throw error
  }
}

function packOutput(name: string, output: unknown): { text: string } | { written: WrittenOutput } {
  const text = JSON.stringify(output)
  if (isDeeper(text, MAX_DEPTH)) throw invalidFile(name, `is nested deeper than ${MAX_DEPTH} levels`)
  if (text.length <= MAX_TEXT) return { text }
  try {
    return { written: writeOutput(text) }
  } catch (error) {
    if (error instanceof RangeError) throw new NodeFailure(error.message, { type: 'OutputTooLarge' })
    throw error
  }
}
