import { createFold } from '../../db/executions/projection/fold.ts'
import { readProgress } from '../../db/executions/projection/progress.ts'
import { readPosition, saveProjection, saveSettled } from '../../db/executions/records/save.ts'
import type { ExecutionStatus } from '../../db/executions/status.ts'
import { openHistories } from './histories.ts'
import { type ProjectorDeps, readInto } from './refresher.ts'

/** How often the history is read if the rows go on meanwhile: those of an open execution do. */
const TRIES = 10

/**
 * Rebuilds an execution's rows from its history. Null if they stay as they are, because the history or its beginning
 * is gone (then only what they do not know is added), or because the execution was cancelled before it began. They do
 * so too if the history belongs to another execution, or sealed with a key that is lost, or if the rows know more
 * than the history: that is thrown.
 */
export async function rebuildExecution(
  deps: Pick<ProjectorDeps, 'store' | 'client' | 'sealer'>,
  executionId: string,
): Promise<ExecutionStatus | null> {
  const { store } = deps
  for (let tried = 0; tried < TRIES; tried++) {
    const source = { ...deps, executionId }
    const found = await openHistories(source, false, async (when) =>
      when === 'gone' ? readProgress(store, executionId) : null,
    )
    if (!found) return null
    const options = { values: true, again: !found.known }
    const fold = createFold(executionId, found.known)
    const went = await readInto(fold, found.parts, async (full) => {
      const there = await saveSettled(store, executionId, full.project(), options)
      if (there) full.confirm('settled')
      return there
    })
    if (!went) return null
    if (fold.isForeign()) throw new Error('its run was not started by this service, or its key is lost')
    const projection = fold.project()
    if (await saveProjection(store, executionId, projection, options)) return projection.status
    const row = await readPosition(store, executionId)
    if (!row || found.known || !projection.began) return null
  }
  throw new Error('its rows know more than its history, or change faster than it can be read')
}
