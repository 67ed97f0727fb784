import { expect } from 'vitest'
import type { createEvaluator } from '../../../../activities/expressions/evaluator.ts'
import type { ReadingOptions, WritingOptions } from '../../../../activities/files/formats/work.ts'
import type { ReadableFormat, WritableFormat } from '../../../../workflows/nodes/formats.ts'

const scope = { input: null, nodes: {}, trigger: null, vars: {}, execution: { id: 'e-1', workflowId: 'w-1' } }

export type Asked = { format?: ReadableFormat | 'auto'; mimeType?: string } & ReadingOptions

/** Reads and writes files with the processes of an evaluator. */
export function createFormats(evaluator: ReturnType<typeof createEvaluator>) {
  return {
    /** What a file says: the output of its reading, and the warnings if there are some. */
    async read(
      name: string,
      bytes: Uint8Array | string,
      { format = 'auto', mimeType = '', ...options }: Asked = {},
    ) {
      const source = { name, mimeType, bytes: Buffer.from(bytes as Uint8Array), format, options }
      const done = await evaluator.workOnFile({ read: source }, name, scope)
      if (!('text' in done)) throw new Error(`a result of ${Object.keys(done)}`)
      const output = JSON.parse(done.text)
      return done.warnings.length > 0 ? { ...output, warnings: done.warnings } : output
    },
    async write(format: WritableFormat, data: unknown, options: WritingOptions = {}): Promise<Buffer> {
      const work = { write: { format, data: JSON.stringify(data), options } }
      const done = await evaluator.workOnFile(work, 'it', scope)
      if (!('bytes' in done)) throw new Error('no file')
      return Buffer.from(done.bytes)
    },
  }
}

/** Why a work fails: the type and the message. */
export const failureOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    (value) => expect.fail(`did not fail, but gave ${JSON.stringify(value).slice(0, 300)}`),
    ({ type, message }) => `${type}: ${message}`,
  )
