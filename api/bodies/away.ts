import type { Asker } from '../../activities/fairness/teamqueue.ts'
import type { JsonReading } from '../../activities/reading/json.ts'
import { createThreadPool, THREADS_BUSY } from '../../activities/threads.ts'
import { type JsonText, makeJsonText } from '../../db/executions/waits/jsontext.ts'
import { Fault, invalid } from '../../db/fault.ts'
import type { Problem } from '../../workflows/problem.ts'
import type { PlainSettings } from './plain.ts'

export type BodyJob = { bytes: Uint8Array; contentType: string; settings: PlainSettings }
export type BodyResult =
  | { text: string; large?: NonNullable<JsonReading['large']>; problems?: undefined }
  | { problems: Problem[] }

/** A team has at most half of them. */
const THREADS = 2

/** The most processor time that a body may take: the worst of 1.5 MB takes 0.2 s. */
const LIMIT_MS = 5_000
const PATIENCE_MS = 20_000

/** A job is one thing to do. */
const ONLY_PART = 'body'

/** Reads large bodies on threads of their own, which are started when they are first needed. */
export type BodyReader = (
  asker: Asker,
  job: BodyJob,
) => Promise<{ value: JsonText } & Pick<JsonReading, 'large'>>

/** Throws INVALID as readPlain does, and THROTTLED if no thread was free in time. */
export function createBodyReader(): BodyReader {
  const pool = createThreadPool<BodyJob, BodyResult>({
    threads: THREADS,
    patienceMs: PATIENCE_MS,
    program: new URL('./thread.ts', import.meta.url),
  })
  const fail = (): BodyResult => ({ problems: [{ path: 'body', message: 'takes too long to be read' }] })
  return async (asker, job) => {
    const parts = { limitMs: LIMIT_MS, names: [ONLY_PART], nameOf: () => ONLY_PART, fail }
    const work = () => pool.work(asker, job, parts)
    const [result] = await pool.hold(asker.team, job.bytes.length, work).catch((error) => {
      if (error?.name !== THREADS_BUSY) throw error
      throw new Fault('THROTTLED', 'Too many large bodies are being read. Try again later', { retryAfter: 5 })
    })
    if (result!.problems) throw invalid(result!.problems)
    const { text, large } = result as Extract<BodyResult, { text: string }>
    return { value: makeJsonText(text), ...(large ? { large } : {}) }
  }
}
