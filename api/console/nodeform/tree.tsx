import { useState } from 'react'
import { itemsOf } from '../expressions/evaluate.ts'
import { JsonTree } from '../kit/code/jsontree.tsx'
import { notify } from '../kit/notices.tsx'
import { Refused } from '../kit/states.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { Age } from '../kit/time.tsx'
import { listBefore, nodePath, type ReadPlace, useSource } from './run.ts'
import { useForm } from './scope.ts'

type Source = { path: string; label: string; open?: boolean; read?: string }

/** What the last run gave: dragged into an expression, or put where the cursor was last. */
export function InputTree({ isPending, error }: { isPending: boolean; error: unknown }) {
  const { node, graph, place } = useForm()
  if (error) return <Refused error={error} />
  if (!place) {
    return (
      <p className="quiet tree-empty">
        {isPending
          ? 'Reading the last run…'
          : 'Run the workflow once: then its data stands here, to be used in expressions.'}
      </p>
    )
  }
  const items = itemsOf(node)
  const sources: Source[] = [
    { path: '$input', label: 'What comes in', open: true },
    ...(items ? [{ path: '$item', label: 'The first item', read: `$append([], ${items})[0]` }] : []),
    ...(node.parentId && !items ? [{ path: '$item', label: 'The item of the loop' }] : []),
    ...listBefore(node, graph).map((one) => ({ path: nodePath(one.id), label: one.name || one.type })),
    { path: '$trigger', label: 'What started it' },
    { path: '$vars', label: 'Variables of the team' },
    { path: '$execution', label: 'The execution' },
  ]
  return (
    <div className="sources">
      <p className="quiet tree-run">
        Of the last run: <StatusBadge status={place.status} /> <Age at={place.at} />
      </p>
      {sources.map((source) => (
        <OneSource key={source.path} source={source} place={place} />
      ))}
    </div>
  )
}

function OneSource({ source, place }: { source: Source; place: ReadPlace }) {
  const { taker, readOnly } = useForm()
  const [isOpen, setOpen] = useState(source.open ?? false)
  const { data, error, isPending } = useSource(place, source.read ?? source.path, isOpen)
  const pick = (path: string) => {
    if (taker.current) taker.current.insert(path)
    else notify('Put the cursor into a field first: it is inserted there', 'bad')
  }
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code>{source.path}</code> <span className="quiet">{source.label}</span>
      </summary>
      {isOpen && error && <Refused error={error} />}
      {isOpen && !error && isPending && <p className="quiet">Reading…</p>}
      {isOpen && data === null && <p className="quiet">Nothing: it was not there in this run.</p>}
      {isOpen && data !== null && data !== undefined && (
        <JsonTree
          label={source.path}
          value={data}
          root={source.path}
          draggable
          {...(readOnly ? {} : { onPick: pick })}
        />
      )}
    </details>
  )
}
