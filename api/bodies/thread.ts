import { parentPort } from 'node:worker_threads'
import { standBehind } from '../../activities/guardrails/messages.ts'
import { Fault } from '../../db/fault.ts'
import type { JsonJob, JsonResult } from './away.ts'
import { parseJson } from './json.ts'
import { unwrapData } from './unwrap.ts'

/** The program of a thread that reads large bodies of JSON, one at a time, and writes them anew. */

standBehind()

const port = parentPort!

port.on('message', ({ bytes, settings, unwraps }: JsonJob) => {
  port.postMessage(read(bytes, settings, unwraps))
  port.postMessage('done')
})
port.postMessage('ready')

function read(bytes: Uint8Array, settings: JsonJob['settings'], unwraps: boolean): JsonResult {
  try {
    const { value, large } = parseJson(bytes, settings)
    const text = JSON.stringify(unwraps ? unwrapData(value) : value)
    return { text, ...(large ? { large } : {}) }
  } catch (error) {
    if (error instanceof Fault) return { problems: error.problems }
    throw error
  }
}
