import { useSyncExternalStore } from 'react'
import type { Draft } from './model.ts'

export type Fault = {
  /** As the API said it: nodes[3].config.url. */
  path: string
  message: string
  warning?: true
  /** What it is about, as it was when the graph was sent. */
  nodeId?: string
  edge?: { source: string; target: string; sourceHandle: string | null }
  /** Relative to the node. */
  within?: string
}

/** Which versions the service has of the workflow, as it said last. */
export type Live = {
  active: boolean
  /** The version that `saved` is: the draft's, or the published one. */
  version: number
  publishedVersion: number
  draftVersion: number | null
  /** The version that was published when the draft began; null if that is not known. */
  draftBase: number | null
  /** When it said so, in milliseconds. */
  at: number
}

export type EditorState = {
  draft: Draft
  /** What the service has; undefined of a new workflow. */
  saved: Draft | undefined
  past: Draft[]
  future: Draft[]
  faults: Fault[]
  /** The act that was refused because of faults that are more than warnings. */
  refused: 'saved' | 'published' | 'switched on'
  /** The ids of nodes and notes. */
  selected: ReadonlySet<string>
  /** Whose settings are open: the workflow's, or those of the one node that is selected. */
  panel: 'node' | 'workflow' | undefined
  /** The tag of what the service has, for If-Match. */
  tag: string | null
  /** Null of a new workflow. */
  live: Live | null
}

export type EditorStore = ReturnType<typeof createStore>

const MAX_UNDO = 200
const MERGE_MS = 1_000

/** What the page edits, with its history. Readers are told of every change. */
export function createStore(
  draft: Draft,
  saved: Draft | undefined,
  { tag = null, live = null }: Partial<Pick<EditorState, 'tag' | 'live'>> = {},
) {
  let state: EditorState = {
    ...{ draft, saved, past: [], future: [], faults: [], refused: 'saved' },
    ...{ selected: new Set<string>(), panel: undefined, tag, live },
  }
  const readers = new Set<() => void>()
  let last = { key: '', at: 0 }
  const set = (next: Partial<EditorState>) => {
    state = settle({ ...state, ...next })
    for (const tell of readers) tell()
  }
  return {
    get: () => state,
    set,
    subscribe(tell: () => void) {
      readers.add(tell)
      return () => {
        readers.delete(tell)
      }
    },
    /** One step that can be undone; steps of the same key in short order are one. */
    edit(next: Draft, { key = '', ...also }: Partial<EditorState> & { key?: string } = {}) {
      if (next === state.draft) return set(also)
      const now = performance.now()
      const merges = key !== '' && key === last.key && now - last.at < MERGE_MS && state.past.length > 0
      last = { key, at: now }
      const past = merges ? state.past : [...state.past, state.draft].slice(-MAX_UNDO)
      set({ draft: next, past, future: [], ...also })
    },
    undo() {
      const before = state.past.at(-1)
      if (!before) return
      last = { key: '', at: 0 }
      set({ draft: before, past: state.past.slice(0, -1), future: [state.draft, ...state.future] })
    },
    redo() {
      const [next, ...future] = state.future
      if (!next) return
      last = { key: '', at: 0 }
      set({ draft: next, past: [...state.past, state.draft], future })
    },
  }
}

/** Only what the draft has is selected, and the panel never shows another node than that. */
function settle(state: EditorState): EditorState {
  const { draft, selected, panel } = state
  const known = new Set(selected.size > 0 ? [...draft.nodes, ...draft.notes].map(({ id }) => id) : [])
  const left = [...selected].filter((id) => known.has(id))
  const settled = left.length === selected.size ? state : { ...state, selected: new Set(left) }
  if (!panel || left.length === 0) return panel === 'node' ? { ...settled, panel: undefined } : settled
  const shown = left.length === 1 && draft.nodes.some(({ id }) => id === left[0]) ? 'node' : undefined
  return shown === panel ? settled : { ...settled, panel: shown }
}

/** The id of the node whose settings are open. */
export function findOpen({ panel, selected }: Pick<EditorState, 'panel' | 'selected'>): string | undefined {
  return panel === 'node' ? [...selected][0] : undefined
}

/** A part of the state; it must be the same object as long as nothing in it changed. */
export function useEditor<T>(store: EditorStore, pick: (state: EditorState) => T): T {
  return useSyncExternalStore(store.subscribe, () => pick(store.get()))
}

export function isDirty({ draft, saved }: EditorState): boolean {
  return draft !== saved
}
