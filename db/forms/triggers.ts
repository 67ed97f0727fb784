import { createHash } from 'node:crypto'
import { v5 as uuidv5 } from 'uuid'
import type { Form } from '../../workflows/graph/form.ts'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import type { Completion, FormAccess } from '../../workflows/nodes/forms.ts'
import type { Tx } from '../connection.ts'
import type { StartedExecution } from '../executions/starts/add.ts'
import { addExecution } from '../executions/starts/add.ts'
import { readListened } from '../executions/starts/listeners.ts'
import type { TraceContext } from '../executions/starts/origins.ts'
import { findStartable, type StartableWorkflow } from '../executions/starts/startable.ts'
import { openHookSecret, renewWorkflow } from '../executions/starts/webhooks.ts'
import { missing } from '../fault.ts'
import { addFiles, type StoredFile } from '../files/store.ts'
import type { Actor, Scope, Store } from '../scope.ts'

/** A FORM_TRIGGER that can be filled in: that of an active workflow, or for a `test` while an editor listens. */
export type OpenForm = {
  workflow: StartableWorkflow
  node: GraphNode
  config: FormConfig
  test: boolean
}

type FormConfig = {
  path: string
  form: Form
  title?: string
  description?: string
  button?: string
  access: FormAccess
  password?: { value?: string; credentialId?: string }
  completion?: Completion
  shape?: 'n8n'
}

/** The form at a path of an active workflow. Throws NOT_FOUND. */
export async function findForm(store: Store, workflowId: string, path: string): Promise<OpenForm> {
  const workflow = await findStartable(store, workflowId)
  const found = workflow?.active ? findFormAt(workflow, path) : undefined
  if (!found) throw missing('form')
  return { ...found, test: false }
}

/** The form at a path of the version that is tested. Throws NOT_FOUND, also while no editor listens. */
export async function findTestForm(store: Store, workflowId: string, path: string): Promise<OpenForm> {
  const { workflow } = await readListened(store, workflowId)
  const found = findFormAt(workflow, path)
  if (!found) throw missing('form')
  return { ...found, test: true }
}

function findFormAt(workflow: StartableWorkflow, path: string) {
  const node = workflow.graph.nodes.find(
    ({ type, disabled, config }) => type === 'FORM_TRIGGER' && !disabled && config.path === path,
  )
  return node && { workflow, node, config: node.config as FormConfig }
}

/** The password of a form; undefined if it asks for none. Throws UNAVAILABLE if its credential is gone. */
export async function openFormPassword(store: Store, form: OpenForm): Promise<string | undefined> {
  const { access, password } = form.config
  if (access !== 'password') return undefined
  return password?.value ?? openHookSecret(store, form, password?.credentialId)
}

/** The answers: `values` by field, and the output of the trigger that was made of them. */
export type SentForm = {
  values: Record<string, unknown>
  output: Record<string, unknown>
  files: StoredFile[]
  /** The text that the page was given when it was shown; undefined for a form that did not come from there. */
  submission: string | undefined
}

/**
 * Accepts an execution that starts at the form. The same answers of the same page start one only, however often they are
 * sent. Throws as addExecution does.
 */
export async function startForm(
  store: Store,
  form: OpenForm,
  { values, output, files, submission }: SentForm,
  { by, ...trace }: TraceContext & { by: Actor },
): Promise<StartedExecution> {
  const { workflow, node, test } = form
  const own =
    submission === undefined ? {} : { id: uuidv5(`${node.id} ${submission} ${digest(values)}`, workflow.id) }
  const adopt =
    files.length > 0 ? (tx: Tx, id: string) => addFiles(tx, id, workflow.teamId, files) : undefined
  // A version that is tested is not the one that is read anew.
  const renew = workflow.stamp === undefined || test ? undefined : () => renewWorkflow(store, form, 'form')
  const start = { node, trigger: 'FORM' as const, data: output, draft: test, by, adopt, renew, ...trace }
  return addExecution(store, workflow, { origin: 'FORM', ...own, ...start })
}

/** Files are stored anew each time, so they count by what they are. */
function digest(values: Record<string, unknown>): string {
  const text = JSON.stringify(values, (key, value) => {
    if (key !== 'file') return value
    const { name, mimeType, bytes } = Object(value) as StoredFile
    return { name, mimeType, bytes }
  })
  return createHash('sha256').update(text).digest('base64url')
}

/** Who has filled in a form for members. */
export type FormUser = { id: string; email: string; name: string }

/** The member whose session or token a scope is; undefined for a token whose maker is deleted. */
export async function readFormUser({ store, actor, userId }: Scope): Promise<FormUser | undefined> {
  if (userId === null) return undefined
  const row = await store.db.selectFrom('users').select('email').where('id', '=', userId).executeTakeFirst()
  return row && { id: userId, email: row.email, name: actor.name }
}
