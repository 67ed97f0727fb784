import { useEffect, useRef, useState } from 'react'
import type { Note } from '../graph/notes.ts'
import { Code } from '../kit/code/code.tsx'
import type { NodeTypes } from './graph/kinds.ts'
import { type Draft, place } from './graph/model.ts'
import { type EditorStore, useEditor } from './graph/store.ts'

const PAUSE_MS = 300

/** The whole graph as JSON: the other view of the same draft. A text that is not a graph stays until it is one. */
export function JsonView({
  store,
  types,
  readOnly,
}: {
  store: EditorStore
  types: NodeTypes
  readOnly: boolean
}) {
  const draft = useEditor(store, (state) => state.draft)
  const [text, setText] = useState(() => write(draft))
  const [wrong, setWrong] = useState('')
  const own = useRef(draft)
  const waiting = useRef({ timer: 0, flush: () => {} })
  useEffect(() => {
    // Undo, for one, changes the draft from elsewhere.
    if (own.current === draft) return
    own.current = draft
    setText(write(draft))
    setWrong('')
  }, [draft])
  const apply = (next: string) => {
    try {
      const read = readGraph(next, store.get().draft, types)
      own.current = read
      store.edit(read, { key: 'json' })
      setWrong('')
    } catch (error) {
      setWrong((error as Error).message)
    }
  }
  // Who goes back to the canvas at once finds what was typed there.
  useEffect(() => () => waiting.current.flush(), [])
  const change = (next: string) => {
    if (next === text) return
    setText(next)
    clearTimeout(waiting.current.timer)
    const flush = () => {
      clearTimeout(waiting.current.timer)
      waiting.current.flush = () => {}
      apply(next)
    }
    waiting.current = { timer: window.setTimeout(flush, PAUSE_MS), flush }
  }
  return (
    <div className="json-view">
      <p className="quiet">
        Nodes, edges and settings, as the API takes them. Nodes without a position are laid out.
      </p>
      {wrong && (
        <p className="refusal" role="alert">
          {wrong}
        </p>
      )}
      <Code value={text} onChange={change} label="Graph as JSON" readOnly={readOnly} lines={200} />
    </div>
  )
}

function write({ nodes, edges, notes, settings }: Draft): string {
  const { settings: all } = { settings: notes.length > 0 ? { ...settings, notes } : settings }
  return JSON.stringify({ nodes, edges, settings: all }, null, 2)
}

function readGraph(text: string, before: Draft, types: NodeTypes): Draft {
  const value = JSON.parse(text) as Partial<Draft>
  if (!Array.isArray(value?.nodes) || !Array.isArray(value.edges ?? [])) {
    throw new Error('The graph is an object with the lists nodes and edges')
  }
  const ids = new Set<string>()
  const nodes = value.nodes.map((node, at) => {
    if (typeof node?.type !== 'string') throw new Error(`nodes[${at}] has no type`)
    const id = node.id ?? node.type.toLowerCase()
    if (typeof id !== 'string') throw new Error(`nodes[${at}].id is no text`)
    if (ids.has(id)) throw new Error(`nodes[${at}].id: there is a node ${id} already`)
    ids.add(id)
    const { parentId, position, ...rest } = node
    return {
      ...{ ...rest, id, config: node.config ?? {} },
      ...(parentId ? { parentId } : {}),
      ...(position ? { position } : {}),
    }
  })
  const edges = (value.edges ?? []).map((edge, at) => {
    if (typeof edge?.source !== 'string' || typeof edge.target !== 'string') {
      throw new Error(`edges[${at}] needs a source and a target`)
    }
    return { ...edge, sourceHandle: edge.sourceHandle ?? null }
  })
  const { notes = [], ...settings } = (value.settings ?? before.settings) as { notes?: Note[] }
  return { ...before, nodes: place(nodes, edges, types), edges, notes, settings }
}
