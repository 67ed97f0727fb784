import type { MappedNode } from './parts.ts'
import type { ProblemReporter } from './report.ts'

const DAY_MS = 86_400_000

/** Types of nodes that Perdure does not retry, beside the triggers. */
const NOT_RETRIED = ['FOR_EACH', 'REPEAT', 'SUB_WORKFLOW', 'WAIT_FOR_EVENT']

/** The retries and the error handling of an n8n node, as fields of ours. Reports its other settings. */
export function mapNodeSettings(
  part: Pick<MappedNode, 'type' | 'retry' | 'works'> & Partial<Pick<MappedNode, 'config'>>,
  raw: Record<string, unknown>,
  report: ProblemReporter,
): Record<string, unknown> {
  const settings: Record<string, unknown> = {}
  const isRetried = !NOT_RETRIED.includes(part.type) && !/TRIGGER/.test(part.type)
  if (raw.retryOnFail === true && !isRetried) {
    const message =
      `n8n retries this node when it fails. Perdure does not retry nodes of the type ${part.type}: set ` +
      'retries on the nodes that do the work.'
    report('parameter', 'retryOnFail', message, true)
  } else if (raw.retryOnFail === true) {
    settings.retry = {
      maxAttempts: readCount(raw.maxTries, 3, 100),
      initialIntervalMs: readCount(raw.waitBetweenTries, 1_000, DAY_MS),
      backoffCoefficient: 1,
    }
  } else if (part.retry) settings.retry = part.retry
  if (raw.onError === 'continueErrorOutput') settings.onError = 'BRANCH'
  else if (raw.onError === 'continueRegularOutput' || raw.continueOnFail === true)
    settings.onError = 'CONTINUE'
  if (part.works) {
    const options = {
      ...(raw.executeOnce === true ? { firstOnly: true } : {}),
      ...(raw.alwaysOutputData === true ? { alwaysOne: true } : {}),
      ...(settings.onError ? { errors: PASSING.has(part.type) ? 'pass' : 'text' } : {}),
    }
    if (Object.keys(options).length > 0) settings.itemOptions = options
  } else if (raw.executeOnce === true || raw.alwaysOutputData === true) {
    const message =
      'n8n executes this node once, or always with an output. Perdure does not: check the next nodes.'
    report('parameter', 'executeOnce', message, true)
  }
  const isSigned = part.type === 'HTTP_REQUEST' || part.config?.credentialId !== undefined
  reportSettings(isSigned ? { ...raw, credentials: undefined } : raw, report)
  return settings
}

/** Node types in n8n's place of which items go on as they came if the node fails. */
const PASSING = new Set([
  'SORT',
  'LIMIT',
  'AGGREGATE',
  'DEDUPLICATE',
  'SKIP_SEEN',
  'MERGE',
  'STOP_AND_ERROR',
  'IF_ELSE',
  'SPLIT',
  'COMPARE_DATASETS',
])

function readCount(value: unknown, fallback: number, max: number): number {
  const count = Number.isFinite(value) ? Math.round(Number(value)) : fallback
  return Math.min(max, Math.max(1, count))
}

function reportSettings(raw: Record<string, unknown>, report: ProblemReporter): void {
  for (const [type, credential] of Object.entries(Object(raw.credentials))) {
    const message =
      'n8n gives this node a credential. Credentials are not imported: set on the node what the service ' +
      'needs, for example a header.'
    report('credential', `credentials.${type}`, message, credential)
  }
  if (typeof raw.notes === 'string' && raw.notes.trim() !== '')
    report(
      'note',
      'notes',
      'Nodes have no notes here: put it into the description of the workflow.',
      raw.notes,
    )
}
