import { isDatabaseAway } from '../../../../db/connection.ts'
import { readExecutionOutput } from '../../../../db/executions/records/records.ts'
import type { SamplingSlot } from '../../../../db/monitoring/shifts/cursors.ts'
import {
  type DriftSide,
  keepDriftSample,
  listSampleable,
  type SampleableExecution,
} from '../../../../db/monitoring/shifts/driftsamples.ts'
import type { RedactionRules } from '../../../../db/redaction/redact.ts'
import { readRules } from '../../../../db/redaction/rules.ts'
import type { Store } from '../../../../db/scope.ts'
import { isObject } from '../../../../workflows/json.ts'
import { takeTurn } from '../../../../workflows/turns.ts'
import {
  EMBEDDING_MODEL,
  isComparable,
  openRows,
  packRows,
  ROW_LENGTH,
} from '../../../guardrails/semantic/embedder.ts'
import { embedExemplar, type SemanticPool } from '../../../guardrails/semantic/similar.ts'
import { THREADS_BUSY } from '../../../threads.ts'
import { meanOf } from '../compare.ts'
import { readTexts } from './texts.ts'

export type DriftSampling = {
  store: Store
  semantic: SemanticPool
  /** Is told of what cannot be sampled, and is left out: it must not hold up all that comes after it. */
  onFault: (executionId: string, error: unknown) => void
}

/**
 * Samples what the executions of a slot were about: texts are opened and redacted in memory, and only their meaning and
 * length are kept. One at a time, so that checks of texts never wait for more than one. Rejects if `signal` is aborted or no
 * thread was free: what is kept by then is not done again.
 */
export async function sampleDrift(
  { store, semantic, onFault }: DriftSampling,
  slot: SamplingSlot,
  signal: AbortSignal,
): Promise<void> {
  const rules = await readRules(store.db)
  for (const execution of await listSampleable(store, slot))
    for (const side of execution.sides) {
      signal.throwIfAborted()
      await takeTurn(slot.teamId)
      try {
        await sampleSide(store, semantic, { execution, side, rules })
      } catch (error) {
        if (isDatabaseAway(error) || (error as Error).name === THREADS_BUSY) throw error
        onFault(execution.id, error)
      }
    }
}

async function sampleSide(
  store: Store,
  semantic: SemanticPool,
  { execution, side, rules }: { execution: SampleableExecution; side: DriftSide; rules: RedactionRules },
): Promise<void> {
  const value = side === 'INPUT' ? pickInput(execution) : await readOutput(store, execution)
  if (value === undefined) return
  const { text, length } = readTexts(value, rules)
  const { id: executionId, teamId, workflowId, endedAt } = execution
  const meaning = isComparable(text) ? await embed(semantic, teamId, text) : null
  const about = { executionId, side, teamId, workflowId, endedAt }
  await keepDriftSample(store, { ...about, length, model: EMBEDDING_MODEL, meaning })
}

/** For a chat only the question: earlier messages belong to executions of their own. */
function pickInput({ trigger, inputData }: SampleableExecution): unknown {
  return trigger === 'CHAT' && isObject(inputData) ? inputData.message : inputData
}

/** Undefined if it is not kept, or is deleted meanwhile. */
async function readOutput(store: Store, execution: SampleableExecution): Promise<unknown> {
  try {
    return await readExecutionOutput(store, execution)
  } catch (error) {
    if ((error as { code?: string }).code === 'NOT_FOUND') return undefined
    throw error
  }
}

/** The mean of its sentences. */
async function embed(semantic: SemanticPool, teamId: string, text: string): Promise<Uint8Array> {
  const { rows } = await embedExemplar(semantic, teamId, text)
  return packRows(meanOf({ figures: openRows(rows), width: ROW_LENGTH }))
}
