import { problemsOf } from '../../data/refusal.ts'
import type { Note } from '../../graph/notes.ts'
import { type EditedWorkflow, type SentWorkflow, saveNewWorkflow, saveWorkflow } from '../data.ts'
import { readFaults } from './faults.ts'
import type { NodeTypes } from './kinds.ts'
import { type Draft, type EditorNode, placeNoted } from './model.ts'
import type { EditorState, EditorStore, Live } from './store.ts'

type Detail = EditedWorkflow['body']

/** A new workflow begins where most do. */
export function newDraft(): Draft {
  const start: EditorNode = {
    ...{ id: 'start', type: 'MANUAL_TRIGGER', name: 'Start', config: {} },
    position: { x: 0, y: 0 },
  }
  return { name: 'New workflow', description: '', nodes: [start], edges: [], notes: [], settings: {} }
}

export function draftOf({ name, description, nodes, edges, settings }: Detail, types: NodeTypes): Draft {
  const { notes = [], ...rest } = settings as Record<string, unknown> & { notes?: Note[] }
  const placed = placeNoted(nodes as EditorNode[], edges, notes, types)
  return { name, description: description ?? '', ...placed, edges, settings: rest }
}

function toSent({ name, description, nodes, edges, notes, settings }: Draft): SentWorkflow {
  return {
    ...{ name, description: description || null },
    ...{ nodes, edges, settings: { ...settings, notes } },
  }
}

/** What has been changed since it was saved. A layout that the service does not know of is no change. */
function toChange(draft: Draft, saved: Draft | undefined): Partial<SentWorkflow> {
  const { name, description, ...rest } = toSent(draft)
  const drawn = draft.nodes !== saved?.nodes || draft.edges !== saved.edges || draft.notes !== saved.notes
  return { name, description, ...(drawn ? rest : { settings: draft.settings }) }
}

/** Drafts that were not saved, by the workflow's id, as long as the console is open. */
const kept = new Map<string, EditorStore>()

/** The draft that was left unsaved, else a new one of what the service has. */
export function openStore(key: string, make: () => EditorStore): EditorStore {
  const store = kept.get(key) ?? make()
  kept.set(key, store)
  return store
}

/** A draft that has just become a workflow is edited on as that. */
export function moveStore(from: string, to: string): void {
  const store = kept.get(from)
  kept.delete(from)
  if (store) kept.set(to, store)
}

export function forgetStore(key: string, store: EditorStore): void {
  if (kept.get(key) === store) kept.delete(key)
}

export function findStore(key: string): EditorStore | undefined {
  return kept.get(key)
}

export function liveOf(told: Omit<Live, 'at'>): Live {
  const { active, version, publishedVersion, draftVersion, draftBase } = told
  return { active, version, publishedVersion, draftVersion, draftBase, at: Date.now() }
}

/** What came of a save: `atOnce` if something has changed that has no versions, such as the name. */
export type SaveOutcome = { id: string; warnings: number; before: Live | null; live: Live; atOnce: boolean }

/**
 * Saves what is edited: a new workflow, or as the draft of one. A refusal is kept as faults of the nodes, and thrown; the
 * warnings of what is saved are kept. The user may go on editing meanwhile. Without `over` a state that another user has
 * saved is not overwritten.
 */
export async function send(
  store: EditorStore,
  types: NodeTypes,
  { teamId, id, over = false }: { teamId: string; id: string | undefined; over?: boolean },
): Promise<SaveOutcome> {
  const { draft, saved, tag, live: before } = store.get()
  try {
    if (id === undefined) {
      const made = await saveNewWorkflow(teamId, toSent(draft))
      const faults = readFaults(made.warnings ?? [], draft, true)
      const live = liveOf({ ...made, version: 1, publishedVersion: 1, draftVersion: null, draftBase: null })
      store.set({ saved: draft, faults, live })
      return { id: made.id, warnings: faults.length, before, live, atOnce: false }
    }
    const now = await saveWorkflow(id, over ? toSent(draft) : toChange(draft, saved), over ? null : tag)
    const live = settleSaved(store, types, draft, now)
    const warnings = store.get().faults.length
    return {
      id,
      warnings,
      before,
      live,
      atOnce: saved !== undefined && writeUnversioned(saved) !== writeUnversioned(draft),
    }
  } catch (error) {
    keepProblems(store, draft, error, 'saved')
    throw error
  }
}

/** Keeps what was refused of a graph as faults of its nodes. */
export function keepProblems(
  store: EditorStore,
  sent: Draft,
  error: unknown,
  refused: EditorState['refused'],
): void {
  const problems = problemsOf(error)
  if (problems.length > 0) store.set({ faults: readFaults(problems, sent), refused })
}

/** Takes over what the service has made of the graph that was sent, unless the user has edited it meanwhile. */
export function settleSaved(
  store: EditorStore,
  types: NodeTypes,
  sent: Draft,
  { body, tag }: EditedWorkflow,
): Live {
  const faults = readFaults(body.warnings ?? [], sent, true)
  // The service may have moved secrets into credentials, and named what had no name.
  const now = { ...draftOf(body, types), nodes: keepSame(body.nodes as EditorNode[], sent.nodes) }
  const same = store.get().draft === sent
  const live = liveOf(body)
  store.set({ ...(same ? { draft: now, saved: now } : { saved: sent }), faults, tag, live })
  return live
}

/** Shows what the service has in place of what is edited, as a step that can be undone. */
export function takeShown(store: EditorStore, types: NodeTypes, { body, tag }: EditedWorkflow): void {
  const now = draftOf(body, types)
  store.edit(now, { saved: now, faults: [], tag, live: liveOf(body) })
}

/** What counts at once when it is saved, because it has no versions. */
function writeUnversioned({ name, description, settings: { strict: _, ...settings } }: Draft): string {
  return JSON.stringify([name, description, settings])
}

/** The nodes that were saved; those that are as they were sent stay the same objects. */
function keepSame(saved: EditorNode[], sent: EditorNode[]): EditorNode[] {
  const before = new Map(sent.map((node) => [node.id, node]))
  return saved.map((node) => {
    const known = before.get(node.id)
    return known && JSON.stringify(known) === JSON.stringify(node) ? known : node
  })
}
