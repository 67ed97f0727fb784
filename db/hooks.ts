import { createHash, timingSafeEqual } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import type { GraphNode } from '../workflows/graph.ts'
import type { ResponseMode } from '../workflows/nodes/hooks.ts'
import { MAX_OUTPUT_BYTES } from './blobs.ts'
import { Fault, missing } from './fault.ts'
import type { Store } from './scope.ts'
import { seal, unseal } from './seal.ts'
import type { Signature } from './signature.ts'
import { addExecution, readStartable, type Startable, type Started } from './start.ts'

/** A WEBHOOK_TRIGGER of an active workflow. */
export type Hook = {
  workflow: Startable
  node: GraphNode
  method: string
  /** Lower-case, where the trigger asks for a secret. */
  secretHeader: string | null
  signature: Signature | null
  /** Whether the call waits for the run, and for how long. */
  response: { mode: ResponseMode; timeoutMs: number }
}

/** What a run says that its webhook's call is answered with: a text as it is, null as no body, else JSON. */
export type Answer = { status: number; headers: Record<string, string>; body: unknown }

const RESPONSE_TIMEOUT_MS = 30_000
const PURPOSE = 'hook answer'

/** What a webhook's run begins with. */
export type Call = {
  body: unknown
  query: Record<string, string | string[]>
  headers: Record<string, string>
  method: string
}

/** The triggers at a path, one per method. Throws NOT_FOUND where the workflow is unknown or inactive, or has none. */
export async function findHooks(store: Store, workflowId: string, path: string): Promise<Hook[]> {
  const workflow = await readStartable(store, workflowId, () => true)
  const nodes = workflow?.active ? workflow.graph.nodes : []
  const hooks = nodes.flatMap((node) => {
    const config = node.config as TriggerConfig
    if (node.type !== 'WEBHOOK_TRIGGER' || node.disabled || config.path !== path) return []
    const secretHeader = config.secretHeader?.name.toLowerCase() ?? null
    const { method = 'POST', signature = null, responseMode: mode = 'immediate' } = config
    const response = { mode, timeoutMs: config.responseTimeoutMs ?? RESPONSE_TIMEOUT_MS }
    return [{ workflow: workflow!, node, method, secretHeader, signature, response }]
  })
  if (hooks.length === 0) throw missing('webhook')
  return hooks
}

/** Throws UNAUTHENTICATED unless `given` is the secret that the trigger asks for; takes the same time for any text. */
export function checkSecret(hook: Hook, given: string | undefined): void {
  if (hook.secretHeader === null) return
  const { secretHeader } = hook.node.config as { secretHeader: { value: string } }
  if (given === undefined || !timingSafeEqual(digest(given), digest(secretHeader.value))) {
    throw new Fault('UNAUTHENTICATED', `The header ${hook.secretHeader} must hold the secret of this webhook`)
  }
}

/** Accepts a run of the hook's workflow, which starts at the hook. */
export async function startHook(
  store: Store,
  hook: Hook,
  call: Call,
  traceparent?: string,
): Promise<Started> {
  const by = { kind: 'SYSTEM' as const, id: null, name: 'webhook' }
  const { workflow, node } = hook
  return addExecution(store, workflow, { node, trigger: 'WEBHOOK', data: call, by, traceparent })
}

/** Says that a call waits for the answer of a run, before that is started. */
export async function awaitAnswer(store: Store, executionId: string): Promise<void> {
  await store.db.insertInto('hookAnswers').values({ executionId }).execute()
}

/** Says that it waits no more. */
export async function leaveAnswer(store: Store, executionId: string): Promise<void> {
  await removeAnswers(store, sql`id = ${executionId}`)
}

/** Longer than any call waits for its run. */
const LONGEST_WAIT_MS = 600_000

/** Removes what calls have left behind whose process died while they waited, and with it what is not to be kept. */
export async function purgeAnswers(store: Store): Promise<void> {
  await removeAnswers(store, sql`created_at < now() - ${LONGEST_WAIT_MS} * interval '1 millisecond'`)
}

async function removeAnswers(store: Store, which: RawBuilder<unknown>): Promise<void> {
  // Locked for share: of a run that ends at this moment, it or we would not see that its outputs are to go.
  await sql`
    with run as (
      select id from executions where ${which} and id in (select execution_id from hook_answers) for share)
    delete from hook_answers using run where execution_id = run.id`.execute(store.db)
}

/** Notes what a run answers its webhook with, where a call waits; only the first counts. Throws RangeError for too much. */
export async function saveAnswer(store: Store, executionId: string, answer: Answer): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(answer))
  if (bytes.length > MAX_OUTPUT_BYTES) {
    throw new RangeError(`The answer has ${bytes.length} bytes; at most ${MAX_OUTPUT_BYTES} are allowed`)
  }
  await store.db
    .updateTable('hookAnswers')
    .set({ answer: seal(store.keys, PURPOSE, executionId, bytes) })
    .where('executionId', '=', executionId)
    .where('answer', 'is', null)
    .execute()
}

/** How a run stands that a call waits for, and its answer if there is one; null where it is deleted. */
export async function readReply(
  store: Store,
  executionId: string,
): Promise<{ status: string; answer: Answer | null } | null> {
  const row = await store.db
    .selectFrom('executions as e')
    .leftJoin('hookAnswers as h', 'h.executionId', 'e.id')
    .select(['e.status', 'h.answer'])
    .where('e.id', '=', executionId)
    .executeTakeFirst()
  if (!row) return null
  const answer = row.answer && unseal(store.keys, PURPOSE, executionId, row.answer).toString()
  return { status: row.status, answer: answer === null ? null : (JSON.parse(answer) as Answer) }
}

type TriggerConfig = {
  path?: string
  method?: string
  secretHeader?: { name: string }
  signature?: Signature
  responseMode?: ResponseMode
  responseTimeoutMs?: number
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
