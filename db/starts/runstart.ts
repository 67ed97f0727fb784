import { type Envelope, INPUT_REF } from '../../workflows/run/plan.ts'
import type { Store } from '../scope.ts'
import { readSettings } from '../workflows/settings.ts'

/** Bigger trigger data stays in the execution's row, and the run gets a reference to it. */
const INLINE_INPUT_BYTES = 2_000

/** What an execution's run is started with; its input is an envelope. Undefined if it is deleted. */
export async function readRunStart({ db }: Pick<Store, 'db'>, executionId: string) {
  const row = await db
    .selectFrom('executions')
    .select(['id', 'workflowId', 'workflowName', 'workflowVersion', 'trigger', 'triggerNodeId', 'status'])
    .select(['timeoutMs', 'inputBytes', 'traceparent', 'queuedAt', 'teamId', 'given', 'onlyNode'])
    .select((eb) =>
      eb.case().when('inputBytes', '<=', INLINE_INPUT_BYTES).then(eb.ref('inputData')).end().as('inputData'),
    )
    .select((eb) =>
      eb
        .selectFrom('workflows')
        .select('settings')
        .whereRef('workflows.id', '=', 'executions.workflowId')
        .as('settings'),
    )
    .where('id', '=', executionId)
    .executeTakeFirst()
  if (!row) return undefined
  const { settings, inputBytes: bytes, inputData, ...execution } = row
  const input: Envelope = bytes <= INLINE_INPUT_BYTES ? { v: inputData, bytes } : { ref: INPUT_REF, bytes }
  return { ...execution, input, timezone: readSettings(settings).timezone ?? 'UTC' }
}
