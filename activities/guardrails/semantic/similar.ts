import { availableParallelism } from 'node:os'
import type { Embedding, KnownExemplar } from '../../../db/guardrails/exemplars.ts'
import type { Asker } from '../../fairness/teamqueue.ts'
import { createThreadPool, type ThreadPool } from '../../threads.ts'
import type { Checked, Severity, Violation, ViolationAction } from '../violations.ts'
import type { SemanticJob, SemanticResult, Similar } from './messages.ts'

/** Threads of their own that compare meanings: each holds the model for it in memory. */
export type SemanticPool = ThreadPool<SemanticJob, SemanticResult>

/** What a text is compared with, besides the exemplars that come with the service. */
export type SemanticRequest = { exemplars: KnownExemplar[] }

/** The longest text takes some 2 s of processor time, on a slow one a few times as much. */
const DEADLINE_MS = 15_000

/** A job is one thing to do. */
const ONLY_PART = 'all'

/** The threads are started when they are first asked: one, or two where there are more than two processors. */
export function createSemanticPool({ threads = availableParallelism() > 2 ? 2 : 1 } = {}): SemanticPool {
  return createThreadPool({ threads, program: new URL('./thread.ts', import.meta.url) })
}

/**
 * Compares a text with exemplars. Never reports a part of the text, or an exemplar's. Rejects with DetectorsBusy if no
 * thread was free in time.
 */
export async function compareMeaning(
  deps: { semantic?: SemanticPool | undefined; patienceMs?: number | undefined },
  request: {
    team: string
    workflow: string
    text: string
    semantic: SemanticRequest
    onViolation: Exclude<ViolationAction, 'REDACTED'>
  },
): Promise<Checked> {
  const type = 'SEMANTIC_SIMILARITY'
  if (!deps.semantic)
    return { type, ms: 0, violations: [], error: 'This process compares no texts with exemplars' }
  const { team, workflow, text, semantic, onViolation } = request
  const job = { similar: { text, exemplars: semantic.exemplars } }
  const { ms, error, similar = [] } = await ask(deps.semantic, { team, workflow }, job, deps.patienceMs)
  return { type, ms, error, violations: similar.map((found) => describeSimilar(found, onViolation)) }
}

/** Makes the embedding of an exemplar's text. Throws if it cannot, and DetectorsBusy if no thread was free in time. */
export async function embedExemplar(pool: SemanticPool, team: string, text: string): Promise<Embedding> {
  const work = () => ask(pool, { team, workflow: team }, { embedding: { text } })
  const { embedding, error } = await pool.hold(team, text.length, work)
  if (!embedding) throw new Error(`The text has no embedding: ${error}`)
  const { model, rows } = embedding
  return { model, rows: Buffer.from(rows) }
}

async function ask(
  pool: SemanticPool,
  asker: Asker,
  job: SemanticJob,
  patienceMs?: number,
): Promise<SemanticResult> {
  const fail = (_: string, error: string): SemanticResult => ({ ms: 0, error })
  const parts = { limitMs: DEADLINE_MS, patienceMs, names: [ONLY_PART], nameOf: () => ONLY_PART, fail }
  const [result] = await pool.work(asker, job, parts)
  return result!
}

function describeSimilar(found: Similar, action: Violation['action']): Violation {
  const { start, end, similarity, confidence, category, exemplarId, exemplarName, corroborated } = found
  return {
    type: 'SEMANTIC_SIMILARITY',
    severity: rateSimilar(found),
    action,
    message: corroborated
      ? 'The text means much the same as a known attack, and looks like one'
      : 'The text means much the same as a known attack',
    confidence,
    details: {
      start,
      end,
      similarity,
      category,
      exemplarId,
      ...(exemplarName === undefined ? {} : { exemplarName }),
      corroborated,
    },
  }
}

/** Alone a similarity is a hint, a sure one at most MEDIUM; what the injection detector finds there too is one more. */
function rateSimilar({ confidence, corroborated }: Similar): Severity {
  const isSure = confidence >= 0.9
  if (corroborated) return isSure ? 'HIGH' : 'MEDIUM'
  return isSure ? 'MEDIUM' : 'LOW'
}
