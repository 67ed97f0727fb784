import { createHash, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type RawBuilder, sql } from 'kysely'
import { v5 as uuidv5 } from 'uuid'
import type { GraphNode } from '../../../workflows/graph/graph.ts'
import type { FILES_KEY, ItemFiles } from '../../../workflows/itemfiles.ts'
import type { LargeNumbers } from '../../../workflows/nodes/fields.ts'
import type { ResponseMode, WebhookFiles, WebhookRespond } from '../../../workflows/nodes/webhooks.ts'
import { write } from '../../change.ts'
import type { Tx } from '../../connection.ts'
import { openTeamCredential } from '../../credentials/open.ts'
import { Fault, missing } from '../../fault.ts'
import { addFiles, type StoredFile } from '../../files/store.ts'
import { CALL_MARK } from '../../operation/callmark.ts'
import type { Store } from '../../scope.ts'
import { seal, unseal } from '../../seal.ts'
import { MAX_OUTPUT_BYTES } from '../records/written.ts'
import { addExecution, type StartedExecution } from './add.ts'
import type { TraceContext } from './origins.ts'
import { beginSignature, type Delivery, type Signature } from './signature.ts'
import { findStartable, readStartable, type StartableWorkflow } from './startable.ts'

/** How a caller signs: the secret is in a credential, or as it was saved by a release that had none. */
type StoredSignature = Omit<Signature, 'secret'> & { secret?: string; credentialId?: string }

/** A WEBHOOK_TRIGGER that can be called: that of an active workflow, or for a `test` while an editor listens. */
export type Webhook = {
  workflow: StartableWorkflow
  node: GraphNode
  test?: { lease: string }
  method: string
  /** The header that must hold the trigger's secret, in lower case; null if the trigger has no secret. */
  secretHeader: string | null
  signature: StoredSignature | null
  /** Whether the response waits for the execution, and for how long. */
  response: { mode: ResponseMode; timeoutMs: number; respond: WebhookRespond | undefined }
  /** The parts of the request's body that become files; undefined if none does. */
  files: WebhookFiles | undefined
  /** Whether the body as it was sent becomes a file, too. */
  rawBody: boolean
  largeNumbers: LargeNumbers | undefined
}

/**
 * The response of an execution to its webhook's caller. `body` is sent as it is if a string, else as JSON;
 * null is no body.
 */
export type WebhookAnswer = {
  status: number
  headers: Record<string, string>
  body: unknown
  /** The id of the file whose bytes are the body. */
  fileId?: string
}

const RESPONSE_TIMEOUT_MS = 30_000
const PURPOSE = 'hook answer'

/**
 * The request to a webhook, which is the trigger data of the execution. A trigger of the shape `n8n` also gets
 * params, webhookUrl and executionMode, and no method.
 */
export type WebhookCall = {
  body: unknown
  query: Record<string, string | string[]>
  headers: Record<string, string>
  method?: string
  rawBody?: { file: StoredFile }
  params?: Record<string, never>
  webhookUrl?: string
  executionMode?: string
  /** The files of a trigger of the shape `n8n`, which are no part of its body. */
  [FILES_KEY]?: ItemFiles
}

/**
 * The triggers at a path, one per method. Throws NOT_FOUND if there are none, or the workflow is inactive.
 */
export async function findWebhooks(store: Store, workflowId: string, path: string): Promise<Webhook[]> {
  const workflow = await findStartable(store, workflowId)
  const hooks = workflow?.active ? listWebhooksAt(workflow, path) : []
  if (hooks.length === 0) throw missing('webhook')
  return hooks
}

/** The triggers of the workflow at a path, one per method. */
export function listWebhooksAt(workflow: StartableWorkflow, path: string): Webhook[] {
  return workflow.graph.nodes
    .filter((node) => isWebhook(node) && (node.config as TriggerConfig).path === path)
    .map((node) => readWebhook(workflow, node))
}

/** Whether calls from outside can start at the node. */
export function isWebhook(node: GraphNode): boolean {
  return node.type === 'WEBHOOK_TRIGGER' && !node.disabled
}

/** The headers of a call that its trigger does not output, in lower case: they say who calls, or are the service's own. */
export function listWithheld({ config }: GraphNode): Set<string> {
  const { secretHeader, signature } = config as TriggerConfig
  const own = [secretHeader?.name, signature?.header].flatMap((name) => (name ? [name.toLowerCase()] : []))
  return new Set(['cookie', 'authorization', 'proxy-authorization', CALL_MARK, ...own])
}

/** What the config of a WEBHOOK_TRIGGER says about calls. */
export function readWebhook(workflow: StartableWorkflow, node: GraphNode): Webhook {
  const config = node.config as TriggerConfig
  const secretHeader = config.secretHeader?.name.toLowerCase() ?? null
  const { method = 'POST', signature = null, responseMode: mode = 'immediate' } = config
  const timeoutMs = config.responseTimeoutMs ?? RESPONSE_TIMEOUT_MS
  const response = { mode, timeoutMs, respond: config.respond }
  const { files, rawBody = false, largeNumbers } = config
  return { workflow, node, method, secretHeader, signature, response, files, rawBody, largeNumbers }
}

/**
 * Throws UNAUTHENTICATED unless `given` is the trigger's secret, and UNAVAILABLE if the trigger's credential is gone.
 * Compares in constant time.
 */
export async function checkWebhookSecret(
  store: Store,
  hook: Webhook,
  given: string | undefined,
): Promise<void> {
  const { secretHeader } = hook.node.config as TriggerConfig
  if (hook.secretHeader === null || !secretHeader) return
  const secret = secretHeader.value ?? (await openHookSecret(store, hook, secretHeader.credentialId))
  if (given === undefined || !isSameSecret(given, secret)) {
    throw new Fault('UNAUTHENTICATED', `The header ${hook.secretHeader} must hold the secret of this webhook`)
  }
}

/**
 * Begins to check a call's signature with the trigger's secret; undefined if it needs none. Throws as beginSignature
 * and checkWebhookSecret do.
 */
export async function beginWebhookSignature(
  store: Store,
  hook: Webhook,
  readHeader: (name: string) => string | undefined,
): Promise<ReturnType<typeof beginSignature> | undefined> {
  const { signature } = hook
  if (!signature) return undefined
  const secret = signature.secret ?? (await openHookSecret(store, hook, signature.credentialId))
  return beginSignature({ ...signature, secret }, readHeader)
}

/**
 * Opens the secret of a webhook for one call. Without its credential no call can be let in. That is not the caller's
 * fault: a call may succeed once the workflow has another credential.
 */
export async function openHookSecret(
  store: Store,
  { workflow }: Pick<Webhook, 'workflow'>,
  id: unknown,
): Promise<string> {
  try {
    const { type, data } = await openTeamCredential(store, workflow.teamId, String(id))
    if (type === 'SIGNATURE' && typeof data.secret === 'string') return data.secret
  } catch (error) {
    if (!(error instanceof Fault && error.code === 'NOT_FOUND')) throw error
  }
  throw new Fault('UNAVAILABLE', 'The credential that calls are checked with here no longer exists', {
    retryAfter: 60,
  })
}

/**
 * Accepts an execution of the webhook's workflow that starts at the webhook. If an execution was started before by the
 * same id or by the same stamp of its `delivery`, returns that one. A fresh one gets the `files` that came with the
 * call. Throws as addExecution does.
 */
export async function startWebhook(
  store: Store,
  hook: Webhook,
  call: WebhookCall,
  {
    delivery = {},
    files = [],
    warning: inputWarning,
    ...trace
  }: {
    delivery?: Delivery | undefined
    files?: StoredFile[]
    warning?: string | undefined
  } & TraceContext,
): Promise<StartedExecution> {
  const by = { kind: 'SYSTEM' as const, id: null, name: 'webhook' }
  const { workflow, node, test } = hook
  // A test call repeats only deliveries of the same listening, so that a delivery can be tested again after it.
  const place = test ? `${node.id} ${test.lease}` : node.id
  // A delivery without an id of its own cannot have started an execution by one, so none is looked for.
  const own = delivery.id === undefined ? {} : { id: uuidv5(`${place} ${delivery.id}`, workflow.id) }
  // No client can send this key, since a header cannot hold a line feed.
  const once = delivery.stamp === undefined ? undefined : `${place}\n${delivery.stamp}`
  const data = { ...call }
  const adopt =
    files.length > 0 ? (tx: Tx, id: string) => addFiles(tx, id, workflow.teamId, files) : undefined
  const draft = test !== undefined
  const renew = workflow.stamp === undefined ? undefined : () => renewWorkflow(store, hook)
  const start = { node, trigger: 'WEBHOOK' as const, data, draft, inputWarning, by, adopt, renew, ...trace }
  return addExecution(store, workflow, { origin: 'WEBHOOK', ...own, once, ...start })
}

/**
 * The workflow as it is now, for a call that was judged by what was remembered of it. Throws NOT_FOUND if it is gone or
 * inactive, and UNAVAILABLE if its webhook is another one now.
 */
export async function renewWorkflow(
  store: Store,
  { workflow, node }: Pick<Webhook, 'workflow' | 'node'>,
  noun = 'webhook',
): Promise<StartableWorkflow> {
  const now = await readStartable(store, workflow.id, () => true)
  if (!now?.active) throw missing(noun)
  const same = now.graph.nodes.find(({ id }) => id === node.id)
  if (same && same.type === node.type && !same.disabled && isDeepStrictEqual(same.config, node.config))
    return now
  throw new Fault('UNAVAILABLE', `The ${noun} has just changed; try again`, { retryAfter: 1 })
}

/** Notes that a request waits for the execution's response. To be called before its run is started. */
export async function awaitAnswer(store: Store, executionId: string): Promise<void> {
  await write(store, (tx) => tx.insertInto('hookAnswers').values({ executionId }).execute())
}

/** Notes that the request no longer waits. Removes the response, and outputs that were kept only for it. */
export async function leaveAnswer(store: Store, executionId: string): Promise<void> {
  await removeAnswers(store, sql`id = ${executionId}`)
}

/** Longer than any request waits for its execution. */
const LONGEST_WAIT_MS = 600_000

/** Does what leaveAnswer does for requests whose process died while they waited. */
export async function purgeAnswers(store: Store): Promise<void> {
  await removeAnswers(store, sql`created_at < now() - ${LONGEST_WAIT_MS} * interval '1 millisecond'`)
}

async function removeAnswers(store: Store, which: RawBuilder<unknown>): Promise<void> {
  // Without the lock, an execution that ends at this moment would still see the request waiting, while we
  // would still see the execution open: neither would remove its outputs.
  await write(store, (tx) =>
    sql`
    with run as (
      select id from executions where ${which} and id in (select execution_id from hook_answers) for share)
    delete from hook_answers using run where execution_id = run.id`.execute(tx),
  )
}

/**
 * Stores the response of an execution for the request that waits for it, if one does; only the first response
 * counts. Throws RangeError if it is larger than MAX_OUTPUT_BYTES.
 */
export async function saveAnswer(store: Store, executionId: string, answer: WebhookAnswer): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(answer))
  if (bytes.length > MAX_OUTPUT_BYTES) {
    throw new RangeError(`The response has ${bytes.length} bytes; at most ${MAX_OUTPUT_BYTES} are allowed`)
  }
  await write(store, (tx) =>
    tx
      .updateTable('hookAnswers')
      .set({ answer: seal(store.keys, PURPOSE, executionId, bytes) })
      .where('executionId', '=', executionId)
      .where('answer', 'is', null)
      .execute(),
  )
}

/** The status of an execution, and its response to its webhook if there is one; null if it is deleted. */
export async function readWebhookAnswer(
  store: Store,
  executionId: string,
): Promise<{ status: string; answer: WebhookAnswer | null } | null> {
  const row = await store.db
    .selectFrom('executions as e')
    .leftJoin('hookAnswers as h', 'h.executionId', 'e.id')
    .select(['e.status', 'h.answer'])
    .where('e.id', '=', executionId)
    .executeTakeFirst()
  if (!row) return null
  const answer = row.answer && unseal(store.keys, PURPOSE, executionId, row.answer).toString()
  return { status: row.status, answer: answer === null ? null : (JSON.parse(answer) as WebhookAnswer) }
}

type TriggerConfig = {
  path?: string
  method?: string
  secretHeader?: { name: string; value?: string; credentialId?: string }
  signature?: StoredSignature
  responseMode?: ResponseMode
  responseTimeoutMs?: number
  respond?: WebhookRespond
  files?: WebhookFiles
  rawBody?: boolean
  largeNumbers?: LargeNumbers
}

/** Compares in constant time. */
export function isSameSecret(given: string, secret: string): boolean {
  return timingSafeEqual(digest(given), digest(secret))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
