import { sql } from 'kysely'
import { write } from '../../change.ts'
import { Fault, missing } from '../../fault.ts'
import { readOwner } from '../../owners.ts'
import { demandStill } from '../../people/rights.ts'
import { type Actor, demand, type Scope, type Store } from '../../scope.ts'
import { chooseVersion, readStartable, type StartableWorkflow } from './startable.ts'
import { isWebhook, listWebhooksAt, readWebhook, type Webhook } from './webhooks.ts'

/** How long a listener hears test calls without saying again that it listens. */
const LEASE_SECONDS = 120

/** The answer of a test address without a listener: the same for a workflow that does not exist. */
const NOT_LISTENING =
  'No editor listens for test calls of this workflow: open the workflow, choose Listen, and call again within two minutes'

/** A webhook as it can be called for a test. */
type TestHook = { nodeId: string; method: string; path: string }

/**
 * How test calls of a workflow are heard: which `version` they execute (`draft`: it is the draft), at which webhooks, and
 * until when (null if no editor listens).
 */
export type Listening = {
  workflowId: string
  version: number
  draft: boolean
  until: Date | null
  hooks: TestHook[]
  /** Its forms, which can be filled in for a test. */
  forms: Omit<TestHook, 'method'>[]
}

/**
 * Opens the workflow's test addresses for two minutes from now (BUILDER). A second call within this time keeps them open
 * for longer. Throws NOT_FOUND.
 */
export async function listenForCalls(scope: Scope, workflowId: string): Promise<Listening> {
  const { store } = scope
  const teamId = await readOwner(store, 'workflows', workflowId)
  demand(scope, teamId, 'BUILDER')
  const listener = nameListener(scope.actor)
  const until = await write(store, async (tx) => {
    await demandStill(tx, { scope, least: 'BUILDER' }, teamId)
    const { rows } = await sql<{ expiresAt: Date }>`
      insert into webhook_listeners as l (workflow_id, listener, expires_at)
      select id, ${listener}, now() + ${LEASE_SECONDS} * interval '1 second' from workflows where id = ${workflowId} for key share
      on conflict (workflow_id, listener) do update set expires_at = excluded.expires_at,
        lease = case when l.expires_at > now() then l.lease else excluded.lease end,
        since = case when l.expires_at > now() then l.since else excluded.since end
      returning expires_at`.execute(tx)
    return rows[0]?.expiresAt
  })
  return describeListening(store, workflowId, until ?? null)
}

/** Whether test calls of the workflow's webhooks are heard (VIEWER). Throws NOT_FOUND. */
export async function readListening(scope: Scope, workflowId: string): Promise<Listening> {
  const { store } = scope
  demand(scope, await readOwner(store, 'workflows', workflowId), 'VIEWER')
  const row = await selectListeners(store, workflowId)
    .select((eb) => eb.fn.max('expiresAt').as('until'))
    .executeTakeFirstOrThrow()
  return describeListening(store, workflowId, row.until)
}

/** Ends the caller's own listening at once (BUILDER); others who listen go on. Throws NOT_FOUND. */
export async function stopListening(scope: Scope, workflowId: string): Promise<void> {
  const { store } = scope
  const teamId = await readOwner(store, 'workflows', workflowId)
  demand(scope, teamId, 'BUILDER')
  await write(store, async (tx) => {
    await demandStill(tx, { scope, least: 'BUILDER' }, teamId)
    await tx
      .deleteFrom('webhookListeners')
      .where('workflowId', '=', workflowId)
      .where('listener', '=', nameListener(scope.actor))
      .execute()
  })
}

/** Removes the listeners whose time is over. */
export async function purgeListeners(store: Store): Promise<void> {
  await write(store, (tx) => sql`delete from webhook_listeners where expires_at < now()`.execute(tx))
}

/**
 * The triggers at a path of the version that is tested: the draft, or the published one without a draft. The workflow may
 * be inactive. Throws NOT_FOUND while no editor listens, and if there are none.
 */
export async function findTestWebhooks(store: Store, workflowId: string, path: string): Promise<Webhook[]> {
  const { workflow, lease } = await readListened(store, workflowId)
  const hooks = listWebhooksAt(workflow, path)
  if (hooks.length === 0)
    throw new Fault(
      'NOT_FOUND',
      'The version that is tested has no webhook at this path; a draft counts once it is saved',
    )
  return hooks.map((hook) => ({ ...hook, test: { lease } }))
}

/** The version of a workflow that is tested while an editor listens, and since when. Throws NOT_FOUND while none does. */
export async function readListened(
  store: Store,
  workflowId: string,
): Promise<{ workflow: StartableWorkflow; lease: string }> {
  const first = await selectListeners(store, workflowId)
    .select('lease')
    .orderBy('since')
    .limit(1)
    .executeTakeFirst()
  const tested = first && (await readTested(store, workflowId))
  if (!tested) throw new Fault('NOT_FOUND', NOT_LISTENING)
  return { workflow: tested.workflow, lease: first.lease }
}

function selectListeners(store: Store, workflowId: string) {
  return store.db
    .selectFrom('webhookListeners')
    .where('workflowId', '=', workflowId)
    .where('expiresAt', '>', sql<Date>`now()`)
}

async function describeListening(store: Store, workflowId: string, until: Date | null): Promise<Listening> {
  const tested = await readTested(store, workflowId)
  if (!tested) throw missing('workflow')
  const { workflow, draft } = tested
  const hooks = workflow.graph.nodes.filter(isWebhook).map((node) => {
    const { method } = readWebhook(workflow, node)
    return { nodeId: node.id, method, path: String(node.config.path) }
  })
  const forms = workflow.graph.nodes
    .filter((node) => node.type === 'FORM_TRIGGER' && !node.disabled)
    .map((node) => ({ nodeId: node.id, path: String(node.config.path) }))
  return { workflowId, version: workflow.version, draft, until, hooks, forms }
}

async function readTested(
  store: Store,
  workflowId: string,
): Promise<{ workflow: StartableWorkflow; draft: boolean } | undefined> {
  const workflow = await readStartable(store, workflowId, () => true)
  return workflow && chooseVersion(store, workflow, workflow.draftVersion ?? undefined)
}

function nameListener({ kind, id }: Actor): string {
  return `${kind} ${id}`
}
