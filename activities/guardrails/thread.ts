import { parentPort } from 'node:worker_threads'
import type { Finding } from '../../db/detection/spans.ts'
import { listViews, type TextView } from '../../db/detection/views.ts'
import { standBehind, type ThreadMessage } from '../threads.ts'
import { DETECTORS, type Detection, type DetectorName } from './detectors.ts'
import { applyInThread, type RuleResult, type ThreadRule } from './rules/compiled.ts'

/** The program of a thread that looks for things in texts, one text at a time. */

export type DetectionJob = { text: string; detection: Detection }
/** Applies rules of a team to a text. */
export type RuleJob = { text: string; rules: ThreadRule[] }

/** What a detector has found, or the sentence that says why it could not; and how long it took, in milliseconds. */
export type DetectionResult = { type: DetectorName; ms: number } & (
  | { findings: Finding[]; error?: undefined }
  | { error: string; findings?: undefined }
)

standBehind()

const port = parentPort!
const tell = (message: ThreadMessage<DetectionResult | RuleResult>) => port.postMessage(message)

port.on('message', (job: DetectionJob | RuleJob) => {
  const { text } = job
  let views: TextView[] | undefined
  const readViews = () => {
    views ??= listViews(text)
    return views
  }
  if ('rules' in job) for (const rule of job.rules) tell(applyInThread(rule, text, readViews))
  else
    for (const type of Object.keys(job.detection) as DetectorName[])
      tell(detect(type, text, readViews, job.detection))
  tell('done')
})
tell('ready')

function detect<Name extends DetectorName>(
  type: Name,
  text: string,
  views: () => TextView[],
  detection: Detection,
): DetectionResult {
  const began = performance.now()
  const took = () => performance.now() - began
  const find = DETECTORS[type]
  if (!find) return { type, ms: 0, error: 'This version has no detector for it' }
  try {
    const findings = find(text, views, detection[type]!)
    return { type, findings, ms: took() }
  } catch (error) {
    // Its message might quote the text.
    return {
      type,
      ms: took(),
      error: `The detector failed (${error instanceof Error ? error.name : 'unknown'})`,
    }
  }
}
