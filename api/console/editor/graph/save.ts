import { problemsOf } from '../../data/refusal.ts'
import type { Note } from '../../graph/notes.ts'
import { type EditedWorkflow, type SentWorkflow, saveNewWorkflow, saveWorkflow } from '../data.ts'
import { readFaults } from './faults.ts'
import type { NodeTypes } from './kinds.ts'
import { type Draft, type EditorNode, placeNoted } from './model.ts'
import type { EditorStore } from './store.ts'

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

export function forgetStore(key: string): void {
  kept.delete(key)
}

export function findStore(key: string): EditorStore | undefined {
  return kept.get(key)
}

/**
 * Sends the draft. A refusal is kept as faults of the nodes, and thrown; a saved draft's warnings are kept. The user
 * may go on editing meanwhile. Without `over` a state that another user has saved is not overwritten.
 */
export async function send(
  store: EditorStore,
  types: NodeTypes,
  { teamId, id, over = false }: { teamId: string; id: string | undefined; over?: boolean },
): Promise<{ id: string; warnings: number }> {
  const { draft, tag } = store.get()
  try {
    if (id === undefined) {
      const made = await saveNewWorkflow(teamId, toSent(draft))
      const faults = readFaults(made.warnings ?? [], draft, true)
      store.set({ saved: draft, faults })
      return { id: made.id, warnings: faults.length }
    }
    const { body, tag: next } = await saveWorkflow(id, toSent(draft), over ? null : tag)
    const faults = readFaults(body.warnings ?? [], draft, true)
    // The service may have moved secrets into credentials, and named what had no name.
    const now = { ...draftOf(body, types), nodes: keepSame(body.nodes as EditorNode[], draft.nodes) }
    const same = store.get().draft === draft
    store.set({ ...(same ? { draft: now, saved: now } : { saved: draft }), faults, tag: next })
    return { id, warnings: faults.length }
  } catch (error) {
    const problems = problemsOf(error)
    if (problems.length > 0) store.set({ faults: readFaults(problems, draft) })
    throw error
  }
}

/** The nodes that were saved; those that are as they were sent stay the same objects. */
function keepSame(saved: EditorNode[], sent: EditorNode[]): EditorNode[] {
  const before = new Map(sent.map((node) => [node.id, node]))
  return saved.map((node) => {
    const known = before.get(node.id)
    return known && JSON.stringify(known) === JSON.stringify(node) ? known : node
  })
}
