import { useState } from 'react'
import { Button } from '../kit/controls/button.tsx'
import { Icon } from '../kit/controls/icon.tsx'
import { nameNode } from './graph/kinds.ts'
import { type EditorStore, useEditor } from './graph/store.ts'

type Props = { store: EditorStore; onJump: (id: string) => void }

/** What the service said of the graph when it was sent last; each leads to its node. */
export function Problems({ store, onJump }: Props) {
  const faults = useEditor(store, (state) => state.faults)
  const refused = useEditor(store, (state) => state.refused)
  const nodes = useEditor(store, (state) => state.draft.nodes)
  const [folded, setFolded] = useState(false)
  if (faults.length === 0) return null
  const names = new Map(nodes.map((node) => [node.id, nameNode(node)]))
  const wrong = faults.filter(({ warning }) => !warning).length
  const count = (n: number, word: string) => (n === 0 ? '' : `${n} ${word}${n === 1 ? '' : 's'}`)
  const said = [count(wrong, 'problem'), count(faults.length - wrong, 'warning')].filter(Boolean).join(', ')
  return (
    <section className="problem-list" aria-label="Problems" data-bad={wrong > 0 || undefined}>
      <div className="problem-head">
        <button type="button" aria-expanded={!folded} onClick={() => setFolded(!folded)}>
          <Icon name="warning" />
          {wrong > 0 ? `Not ${refused}: ${said}` : said}
        </button>
        <Button
          look="plain"
          small
          icon="close"
          aria-label="Close the problems"
          onClick={() => store.set({ faults: [] })}
        />
      </div>
      {!folded && (
        <ul>
          {faults.map(({ path, message, warning, nodeId, within, edge }) => {
            const known = nodeId !== undefined && names.has(nodeId)
            const place = edge ? 'connection' : within
            return (
              <li key={`${path} ${message}`} data-tone={warning ? 'warn' : 'bad'}>
                {known ? (
                  <button type="button" onClick={() => onJump(nodeId)}>
                    <strong>{names.get(nodeId)}</strong> {place && <code>{place}</code>} {message}
                  </button>
                ) : (
                  <span>
                    <code>{path}</code> {message}
                  </span>
                )}
              </li>
            )
          })}
        </ul>
      )}
    </section>
  )
}
