import { useState } from 'react'
import { JsonTree } from '../kit/code/jsontree.tsx'
import { LinkButton } from '../kit/controls/button.tsx'
import { Empty } from '../kit/states.tsx'
import { Drawing } from './drawing.tsx'
import type { DrawnEdge, DrawnNode } from './lines.ts'
import type { Mark } from './marks.ts'
import type { Note } from './notes.ts'
import '../workflows/workflows.css'

type GraphProps = {
  graph: { nodes: readonly DrawnNode[]; edges: readonly DrawnEdge[]; notes?: readonly Note[] | undefined }
  label: string
  edit?: string | null
  marks?: ReadonlyMap<string, Mark>
}

/** The graph, and beneath it the node that was picked. */
export function Graph({ graph, label, edit, marks }: GraphProps) {
  const [picked, setPicked] = useState<string | null>(null)
  if (graph.nodes.length === 0) {
    return (
      <Empty title="An empty graph" text="It has no nodes yet.">
        {edit && <LinkButton href={edit}>Add nodes</LinkButton>}
      </Empty>
    )
  }
  const node = graph.nodes.find((one) => one.id === picked)
  return (
    <div className="drawn">
      <Drawing
        graph={graph}
        label={label}
        picked={picked}
        onPick={(id) => setPicked(id === picked ? null : id)}
        {...(marks ? { marks } : {})}
      />
      <div aria-live="polite">
        {node && (
          <section className="panel picked" aria-label={`Node ${node.id}`}>
            <JsonTree label={`Node ${node.id}`} value={node} />
          </section>
        )}
      </div>
    </div>
  )
}
