import { hostname } from 'node:os'
import type { Replies } from '../../activities/chat/replies.ts'
import type { Outsides } from '../../activities/egress/outside.ts'
import type { SemanticPool } from '../../activities/guardrails/semantic/similar.ts'
import { openDatabase } from '../../db/connection.ts'
import { type Engine, startEngine } from '../engine/engine.ts'
import { PROCESS_ID } from '../memoryend.ts'
import { connectWorker } from '../temporal.ts'
import { type Base, untilDone } from './opening.ts'
import { installRuntime } from './runtime.ts'
import type { Instruments } from './serving.ts'

/** How long a renewal of the lease may take. The lease lasts for 5 s, so that another one has time to succeed. */
const RENEWAL_MS = 2_000

type WorkingDeps = Instruments & { outside: Outsides; replies: Replies; semantic: SemanticPool }

/** An engine, and the function that stops it and closes its connections. */
export type Working = { engine: Engine; stop(hurry: AbortSignal): Promise<void> }

/** Starts the engine as soon as Temporal is there. Undefined if `asked` is aborted first. */
export async function startWorking(
  { kind, config, store, sealer, bus, log }: Base,
  { semantic, ...deps }: WorkingDeps,
  asked: AbortSignal,
): Promise<Working | undefined> {
  installRuntime(log)
  const connection = await untilDone('Temporal', () => connectWorker(config), log, asked)
  if (!connection) return undefined
  const { namespace } = config.temporal
  const { publicUrl, taskQueue, deploymentName, buildId, continueAfterEvents } = config
  const { stopGraceMs, modelStopGraceMs, modelCallsAtOnce, modelSilenceMs, budgetBytes } = config
  // A pool in which others wait must not make a process that is alive seem lost.
  const leases = openDatabase(config.databaseUrl!, {
    ...{ max: 1, name: `perdure ${kind} lease`, timeoutMs: RENEWAL_MS },
  })
  const processId = process.env[PROCESS_ID]
  const engine = await startEngine({
    ...{ store, bus, sealer, publicUrl, ...deps },
    guardrails: { onError: config.guardrailOnError, semantic },
    temporal: {
      ...{ connection, namespace, taskQueue, continueAfterEvents },
      ...(buildId ? { version: { deploymentName, buildId } } : {}),
    },
    process: {
      ...{ processId, stopGraceMs, modelStopGraceMs },
      leaseStore: { ...store, db: leases.db },
      // The supervisor has locked the data folder, and ended what ran there before.
      place: kind === 'service' && processId ? `${hostname()}:${config.dataDir}` : undefined,
    },
    limits: { budgetBytes, modelCallsAtOnce },
    times: { modelSilenceMs },
  })
  log.info({ taskQueue, namespace, buildId }, 'the worker polls Temporal')
  return {
    engine,
    async stop(hurry) {
      await engine.stop(hurry)
      await connection.close().catch(() => {})
      await leases.close()
    },
  }
}
