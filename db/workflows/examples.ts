import { sql } from 'kysely'
import { v7 as uuid } from 'uuid'
import type { GraphNode } from '../../workflows/graph/graph.ts'
import { change } from '../change.ts'
import type { Db, Tx } from '../connection.ts'
import { readStartable } from '../executions/starts/startable.ts'
import { Fault, missing } from '../fault.ts'
import { demandRoom, findOwned, guardName } from '../owned.ts'
import { readOwner } from '../owners.ts'
import { describeChange } from '../redaction/difference.ts'
import { demand, type Scope } from '../scope.ts'
import {
  type ExampleKind,
  type ExampleValue,
  readExampleText,
  sealExample,
  tryOpenExample,
  writeExample,
} from './examplevalues.ts'
import { readVersion } from './versions.ts'

/** How many examples a workflow may have. */
export const MAX_EXAMPLES = 20

/** A saved example without what it holds. `trigger` is the id of the node, which the graph may no longer have. */
export type ExampleItem = {
  id: string
  workflowId: string
  name: string
  trigger: string
  kind: ExampleKind
  bytes: number
  createdAt: Date
  updatedAt: Date
}

/** A saved example with its `request` or its `data`. */
export type Example = ExampleItem & ExampleValue

type ExamplePatch = ExampleValue & { name?: string | undefined; trigger?: string | undefined }

/** The examples of a workflow, by name (VIEWER). Throws NOT_FOUND. */
export async function listExamples(scope: Scope, workflowId: string): Promise<ExampleItem[]> {
  demand(scope, await readOwner(scope.store, 'workflows', workflowId), 'VIEWER')
  const rows = await scope.store.db
    .selectFrom('workflowExamples')
    .select(['id', 'workflowId', 'name', 'triggerNodeId', 'kind', 'bytes', 'createdAt', 'updatedAt'])
    .where('workflowId', '=', workflowId)
    .orderBy('name')
    .execute()
  return rows.map(showItem)
}

/** One example of a workflow (VIEWER, as the inputs of executions). Throws NOT_FOUND, and CONFLICT if its key is gone. */
export async function readExample(scope: Scope, workflowId: string, id: string): Promise<Example> {
  demand(scope, await readOwner(scope.store, 'workflows', workflowId), 'VIEWER')
  const row = await findOwned(select(scope.store.db, workflowId, id), 'example')
  const text = tryOpenExample(scope.store.keys, row)
  if (!text) throw sealedElsewhere()
  return show(row, text)
}

/**
 * Saves an example (BUILDER). Of a request, the headers that a webhook withholds are not kept. Throws NOT_FOUND; INVALID
 * if the workflow has no such trigger, published or in its draft, a request is for another one than a webhook, or it is
 * too large; CONFLICT for a name that is taken, and if there are too many.
 */
export async function createExample(
  scope: Scope,
  workflowId: string,
  { name, trigger, ...value }: ExampleValue & { name: string; trigger: string },
): Promise<Example> {
  const { teamId, nodes } = await readNodes(scope, workflowId)
  const { kind, text } = writeExample(nodes, trigger, value)
  return guardName('workflow_examples', name, () =>
    change(scope, 'WORKFLOW_EXAMPLE_CREATED', teamId, async (tx) => {
      await demandRoom(tx, 'workflow_examples', workflowId, MAX_EXAMPLES)
      await holdWorkflow(tx, workflowId)
      const id = uuid()
      const sealed = sealExample(scope.store.keys, { workflowId, id }, text)
      const row = await tx
        .insertInto('workflowExamples')
        .values({ id, workflowId, name, triggerNodeId: trigger, kind, bytes: text.length, sealed })
        .returningAll()
        .executeTakeFirstOrThrow()
      return { result: show(row, text), resourceId: workflowId, details: { exampleId: id, ...describe(row) } }
    }),
  )
}

/**
 * Changes what is given (BUILDER); a `request` takes the place of `data`, and the other way round. Throws as
 * createExample, and CONFLICT if its key is gone and it is not given another value.
 */
export async function updateExample(
  scope: Scope,
  workflowId: string,
  id: string,
  { name, trigger, ...value }: ExamplePatch,
): Promise<Example> {
  const { keys } = scope.store
  const { teamId, nodes } = await readNodes(scope, workflowId)
  return guardName('workflow_examples', name ?? '', () =>
    change(scope, 'WORKFLOW_EXAMPLE_UPDATED', teamId, async (tx) => {
      await holdWorkflow(tx, workflowId)
      const before = await findOwned(select(tx, workflowId, id).forUpdate(), 'example')
      const known = tryOpenExample(keys, before)
      const given = value.request || value.data ? value : undefined
      if (!given && !known) throw sealedElsewhere()
      const kept = known && { kind: before.kind as ExampleKind, text: known }
      const triggerNodeId = trigger ?? before.triggerNodeId
      // An example stays when its trigger is removed from the graph, and can be given another name.
      const isChecked = given !== undefined || triggerNodeId !== before.triggerNodeId
      const { kind, text } = isChecked
        ? writeExample(nodes, triggerNodeId, given ?? readExampleText(kept!))
        : kept!
      const after = { name: name ?? before.name, triggerNodeId, kind, bytes: text.length }
      const told = describeChange(describe(before), describe({ ...before, ...after }))
      const isSame = known?.equals(text) ?? false
      if (!isSame) told.changed.push('value')
      if (told.changed.length === 0) return { result: show(before, text), unchanged: true }
      const row = await tx
        .updateTable('workflowExamples')
        .set({
          ...after,
          updatedAt: sql<Date>`now()`,
          ...(isSame ? {} : { sealed: sealExample(keys, before, text) }),
        })
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow()
      const details = { exampleId: id, name: row.name, ...told }
      return { result: show(row, text), resourceId: workflowId, details }
    }),
  )
}

/** Deletes an example (BUILDER). Throws NOT_FOUND. */
export async function deleteExample(scope: Scope, workflowId: string, id: string): Promise<void> {
  const teamId = await readOwner(scope.store, 'workflows', workflowId)
  await change(scope, 'WORKFLOW_EXAMPLE_DELETED', teamId, async (tx) => {
    const known = await findOwned(select(tx, workflowId, id).forUpdate(), 'example')
    await tx.deleteFrom('workflowExamples').where('id', '=', id).execute()
    const details = { exampleId: id, ...describe(known) }
    return { result: undefined, resourceId: workflowId, details }
  })
}

/** The nodes of a workflow's published graph and of its draft, for a BUILDER. Throws NOT_FOUND. */
async function readNodes(scope: Scope, workflowId: string): Promise<{ teamId: string; nodes: GraphNode[] }> {
  const { store } = scope
  const workflow = await readStartable(store, workflowId, (teamId) => {
    demand(scope, teamId, 'BUILDER')
    return true
  })
  if (!workflow) throw missing('workflow')
  const { teamId, graph, draftVersion } = workflow
  const draft = draftVersion === null ? [] : (await readVersion(store, workflowId, draftVersion)).nodes
  return { teamId, nodes: [...graph.nodes, ...draft] }
}

/** Who deletes the workflow waits till the commit. Throws NOT_FOUND. */
async function holdWorkflow(tx: Tx, id: string): Promise<void> {
  await findOwned(tx.selectFrom('workflows').select('id').where('id', '=', id).forKeyShare(), 'workflow')
}

function select(db: Db, workflowId: string, id: string) {
  return db
    .selectFrom('workflowExamples')
    .selectAll()
    .where('workflowId', '=', workflowId)
    .where('id', '=', id)
}

type Row = Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirstOrThrow']>>

function showItem({ triggerNodeId: trigger, ...row }: Omit<Row, 'sealed'>): ExampleItem {
  const { id, workflowId, name, kind, bytes, createdAt, updatedAt } = row
  return { id, workflowId, name, trigger, kind: kind as ExampleKind, bytes, createdAt, updatedAt }
}

function show(row: Row, text: Buffer): Example {
  const item = showItem(row)
  return { ...item, ...readExampleText({ kind: item.kind, text }) }
}

/** What the audit says of an example: of what it holds, nothing. */
function describe({ name, triggerNodeId: trigger, kind, bytes }: Omit<Row, 'sealed'>) {
  return { name, trigger, kind, bytes }
}

function sealedElsewhere(): Fault {
  return new Fault(
    'CONFLICT',
    'The example was sealed with a key that this service does not have: give it another value, or delete it',
  )
}
