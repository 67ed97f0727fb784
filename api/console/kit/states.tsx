import { type ReactNode, useEffect, useRef } from 'react'
import { problemsOf, tellError } from '../data/refusal.ts'
import './states.css'

/** What a list says when it is empty; children are ways on. */
export function Empty({ title, text, children }: { title: string; text?: ReactNode; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {text && <p>{text}</p>}
      {children && <div className="row">{children}</div>}
    </div>
  )
}

export function Loading({ text = 'Loading…' }: { text?: string }) {
  return (
    <div className="loading" role="status">
      {text}
    </div>
  )
}

/** Where a list will be. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
        <i key={at} />
      ))}
    </div>
  )
}

/** A refusal, with every field's problem; `except` names the paths that fields show themselves. */
export function Refused({ error, except = [] }: { error: unknown; except?: string[] }) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (error) place.current?.scrollIntoView({ block: 'nearest' })
  }, [error])
  if (!error) return null
  const all = problemsOf(error)
  const problems = all.filter(({ path }) => !except.includes(path))
  // Its fields say all of it already.
  if (all.length > 0 && problems.length === 0) return null
  // A single problem is shown without the message, which says the same.
  return (
    <div className="refusal" role="alert" ref={place}>
      {problems.length !== 1 && <p>{tellError(error)}</p>}
      {problems.length > 0 && (
        <ul>
          {problems.map(({ path, message, excerpt }) => (
            <li key={`${path} ${message}`}>
              <code>{path}</code> {message}
              {excerpt && <pre>{excerpt.join('\n')}</pre>}
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

type Readable<T> = { data: T | undefined; error: unknown; isPending: boolean }

/** Shows what a query has read; until then a skeleton, or why it could not be read. */
export function Loaded<T>({
  query,
  children,
  rows,
}: {
  query: Readable<T>
  children: (data: T) => ReactNode
  rows?: number
}) {
  if (query.data !== undefined) return children(query.data)
  if (query.error) return <Refused error={query.error} />
  return <Skeleton {...(rows === undefined ? {} : { rows })} />
}

/**
 * Rows that one can act on. Those of the search before (`stale`) stay to be seen until the next ones have come, but nothing
 * can be done with them: what is chosen must be what was asked for.
 */
export function Rows({ stale, children }: { stale: boolean; children: ReactNode }) {
  return (
    <div className="rows" inert={stale} aria-busy={stale}>
      {children}
    </div>
  )
}
