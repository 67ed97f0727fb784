import type { Language } from '../../../workflows/expressions/rules.ts'
import { findNodeNames, languageOf } from '../../../workflows/graph/graph.ts'
import { setOwn } from '../../../workflows/json.ts'
import { type Envelope, INPUT_REF } from '../../../workflows/run/plan.ts'
import { chatPrivacyOf, isHiddenFrom, isPrivate } from '../../chat/privacy.ts'
import { Fault, invalid, missing } from '../../fault.ts'
import { demandTeam, type Scope, type Store } from '../../scope.ts'
import { readTeamVariables } from '../../variables/variables.ts'
import { readCompiledPlan } from '../../workflows/compiled.ts'
import { readSettings } from '../../workflows/settings.ts'
import { readStoredVersion } from '../../workflows/versions.ts'
import { readPage, readRecordsBefore, type StoredNode } from './stored.ts'
import { deriveValues } from './values.ts'

/** Where an expression is to be read: as in a node of an execution, or of a workflow that is not executed. */
export type BindingPlace = {
  teamId: string
  workflowId?: string | undefined
  executionId?: string | undefined
  nodeId?: string | undefined
  /** The path of the iteration, for a node in a loop; '' for the first one. */
  iteration?: string | undefined
}

/** What the variables of an expression hold there, and what expressions mean. */
export type PlaceBindings = {
  language: Language | undefined
  input: unknown
  nodes: Record<string, unknown>
  trigger: unknown
  vars: Record<string, unknown>
  execution: Record<string, unknown>
  item?: unknown
  index?: number
  /** The ids of nodes by their names. */
  names?: Record<string, string>
}

/** What the values may have together, in bytes: as much as a node may read, but for others who read at once. */
const MAX_READ_BYTES = 16_000_000

/**
 * Reads what an expression could read at a place (VIEWER): `text` says which nodes and variables it may name. Throws
 * NOT_FOUND unless the execution, its node and the workflow are of the team, INVALID if they do not fit together, and
 * CONFLICT if what is needed was not kept, or is too much.
 */
export async function readBindings(scope: Scope, place: BindingPlace, text: string): Promise<PlaceBindings> {
  const { store } = scope
  const { teamId, workflowId, executionId, nodeId } = place
  await demandTeam(scope, teamId, 'VIEWER')
  if (executionId === undefined && nodeId !== undefined && workflowId === undefined)
    throw invalid([{ path: 'nodeId', message: 'needs the execution or the workflow that it is in' }])
  const vars = /\$(?:vars|env)\b/.test(text) ? await readTeamVariables(store, teamId) : {}
  if (executionId !== undefined) return { ...(await readExecuted(scope, place, executionId, text)), vars }
  const none = { input: undefined, nodes: {}, trigger: undefined, vars }
  if (workflowId === undefined) return { ...none, language: undefined, execution: {} }
  const row = await store.db
    .selectFrom('workflows')
    .select(['id', 'teamId', 'name', 'version', 'draftVersion', 'settings'])
    .where('id', '=', workflowId)
    .executeTakeFirst()
  if (row?.teamId !== teamId) throw missing('workflow')
  // What is being written is the draft.
  const version = row.draftVersion ?? row.version
  const { graph } = await readStoredVersion(store, workflowId, version)
  if (nodeId !== undefined && !graph.nodes.some(({ id }) => id === nodeId)) throw missing('node')
  const { timezone } = readSettings(row.settings)
  const execution = { workflowId, workflowName: row.name, version, timezone: timezone ?? 'UTC' }
  return { ...none, language: languageOf(graph), names: findNodeNames(graph), execution }
}

async function readExecuted(
  scope: Scope,
  { teamId, workflowId, nodeId, iteration = '' }: BindingPlace,
  executionId: string,
  text: string,
): Promise<Omit<PlaceBindings, 'vars'>> {
  const { store } = scope
  const run = await store.db
    .selectFrom('executions as e')
    .innerJoin('workflows as w', 'w.id', 'e.workflowId')
    .select([
      'e.id',
      'e.teamId',
      'e.workflowId',
      'e.workflowName',
      'e.workflowVersion',
      'e.status',
      'e.trigger',
    ])
    .select(['e.triggerNodeId', 'e.onlyNode', 'e.startedAt', 'e.keepInputs', 'e.keepOutputs', 'w.settings'])
    .select(chatPrivacyOf('e').as('privacy'))
    .where('e.id', '=', executionId)
    .executeTakeFirst()
  if (run?.teamId !== teamId) throw missing('execution')
  if (isHiddenFrom(scope, teamId, run.privacy)) throw isPrivate()
  if (workflowId !== undefined && run.workflowId !== workflowId)
    throw invalid([{ path: 'executionId', message: 'is not an execution of this workflow' }])
  const { graph } = await readStoredVersion(store, run.workflowId, run.workflowVersion)
  const node = graph.nodes.find(({ id }) => id === nodeId)
  if (nodeId !== undefined && !node) throw missing('node')
  if (!run.keepInputs || !run.keepOutputs)
    throw new Fault('CONFLICT', 'The inputs and outputs of the execution are not kept')
  const plan = await readCompiledPlan(store, run)
  const path = node?.parentId === undefined ? '' : iteration || '0'
  const own = await readOwn(store, executionId, nodeId, path)
  const rows = [...own, ...(await readRecordsBefore(store, executionId, plan, placeIn(own, nodeId, path)))]
  const named = graph.nodes
    .map(({ id }) => id)
    .filter((id) => id !== nodeId && isNamed(graph.nodes, id, text))
  demandLittle(rows, [
    ...named,
    ...plan.edges.flatMap(({ source, target }) => (target === nodeId ? [source] : [])),
  ])
  const values = deriveValues(store, executionId, plan, rows)
  const nodes: Record<string, unknown> = Object.create(null)
  for (const id of named) {
    const output = await values.output(id, path)
    if (output !== undefined) setOwn(nodes, id, output)
  }
  const trigger = await values.output(run.triggerNodeId, '')
  const inLoop =
    path === '' ? {} : { item: await values.item(nodeId!, path), index: Number(path.split('.').at(-1)) }
  const { id, workflowName, workflowVersion: version, trigger: how, startedAt, settings } = run
  const timezone = readSettings(settings).timezone ?? 'UTC'
  const about = { id, workflowId: run.workflowId, workflowName, version, trigger: how, timezone }
  return {
    language: languageOf(graph),
    names: findNodeNames(graph),
    input: nodeId === undefined ? trigger : await values.input(nodeId, path),
    nodes,
    trigger,
    execution: { ...about, startedAt: startedAt?.toISOString() ?? null },
    ...inLoop,
  }
}

/** The record of the node in the iteration, if it has one. */
async function readOwn(
  store: Store,
  executionId: string,
  nodeId: string | undefined,
  path: string,
): Promise<StoredNode[]> {
  if (nodeId === undefined) return []
  const page = await readPage(store, executionId, { nodeId }, { size: 1_000, offset: 0 })
  return page.filter(({ iteration }) => iteration === path)
}

/** A place for a record that the node does not have, so that the records before it are read. */
function placeIn(own: StoredNode[], nodeId: string | undefined, iteration: string): StoredNode[] {
  if (own.length > 0 || nodeId === undefined) return own
  return [{ id: '', nodeId, iteration } as StoredNode]
}

/** Whether an expression may name the node: by its id, or by its name if it is one that no other has. */
function isNamed(nodes: { id: string; name: string }[], id: string, text: string): boolean {
  const { name = '' } = nodes.find((node) => node.id === id) ?? {}
  return (
    text.includes(id) ||
    (name !== '' && text.includes(name)) ||
    text.includes(JSON.stringify(name).slice(1, -1))
  )
}

/** Throws CONFLICT if the outputs of these nodes are too much to be read for this. */
function demandLittle(rows: StoredNode[], ids: string[]): void {
  const sizes = new Map<string, number>()
  for (const { nodeId, output } of rows) {
    const envelope = output as Envelope | null
    if (!envelope || !ids.includes(nodeId)) continue
    sizes.set('ref' in envelope && envelope.ref !== INPUT_REF ? envelope.ref : nodeId, envelope.bytes)
  }
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0)
  if (bytes > MAX_READ_BYTES)
    throw new Fault(
      'CONFLICT',
      `What the expression may read has ${bytes} bytes; at most ${MAX_READ_BYTES} can be read`,
    )
}
