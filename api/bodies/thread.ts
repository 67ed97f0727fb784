import { parentPort } from 'node:worker_threads'
import { standBehind } from '../../activities/threads.ts'
import { Fault } from '../../db/fault.ts'
import type { BodyJob, BodyResult } from './away.ts'
import { readPlain } from './plain.ts'

/** The program of a thread that reads large bodies, one at a time, and writes their values as JSON. */

standBehind()

const port = parentPort!

port.on('message', (job: BodyJob) => {
  port.postMessage(read(job))
  port.postMessage('done')
})
port.postMessage('ready')

function read({ bytes, contentType, settings }: BodyJob): BodyResult {
  try {
    const { value, ...large } = readPlain(bytes, contentType, settings)
    return { text: JSON.stringify(value), ...large }
  } catch (error) {
    if (error instanceof Fault) return { problems: error.problems }
    throw error
  }
}
