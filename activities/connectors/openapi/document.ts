import { createEvaluator } from '../../expressions/evaluator.ts'
import type { OpenApiOptions } from './parts.ts'
import type { ReadDocument } from './read.ts'

/** The most characters of a document, and of what is read out of it. */
export const MAX_DOCUMENT = 20 * 1024 * 1024
const MAX_READ = 32_000_000

/** What a document may take: GitHub's, of 13 MB, takes 3 s and 200 MB. */
const LIMITS = { timeoutMs: 6_000, heapMb: 512, processes: 1, patienceMs: 60_000, maxChars: MAX_READ }

/** No expression is read with it, so there is nothing to bind. */
const NOTHING = { input: null, nodes: {}, trigger: null, vars: {}, execution: {} }

/**
 * Reads an OpenAPI document in a process of its own, which ends after it. Throws a NodeFailure for one that cannot be read,
 * or takes more than 30 s or 512 MB.
 */
export async function readOpenApiDocument(openapi: string, options: OpenApiOptions): Promise<ReadDocument> {
  const evaluator = createEvaluator(LIMITS)
  try {
    return (await evaluator.convert({ kind: 'openapi', openapi, options }, NOTHING)) as ReadDocument
  } finally {
    await evaluator.close()
  }
}
