import { useMemo, useState } from 'react'
import { Drawing, keyOfEdge } from '../../graph/drawing.tsx'
import type { DrawnEdge, DrawnNode } from '../../graph/lines.ts'
import { nameOf } from '../../graph/lines.ts'
import type { Mark } from '../../graph/marks.ts'
import type { Note } from '../../graph/notes.ts'
import { Button } from '../../kit/controls/button.tsx'
import { Empty, Loaded } from '../../kit/states.tsx'
import { Pill } from '../../kit/status.tsx'
import { useDiff, useVersion, type VersionDiff } from './data.ts'

const ADDED: Mark = { tone: 'good', text: 'added', sign: '+' }
const REMOVED: Mark = { tone: 'bad', text: 'removed', sign: '−', dashed: true }
const CHANGED: Mark = { tone: 'warn', text: 'changed', sign: '~' }

/** What changed between two versions: marked on one drawing of both, and field by field. */
export function Difference({ id, from, to }: { id: string; from: number; to: number }) {
  const diff = useDiff(id, from, to)
  const newer = useVersion(id, to)
  const older = useVersion(id, from)
  return (
    <Loaded query={diff}>
      {(shown) =>
        newer.data && older.data ? (
          <Compared
            key={`${from} ${to}`}
            diff={shown}
            nodes={newer.data.nodes}
            edges={newer.data.edges}
            notes={newer.data.notes}
            before={older.data.nodes}
          />
        ) : null
      }
    </Loaded>
  )
}

type ComparedProps = {
  diff: VersionDiff
  nodes: readonly DrawnNode[]
  edges: readonly DrawnEdge[]
  notes: readonly Note[]
  before: readonly DrawnNode[]
}

function Compared({ diff: whole, nodes, edges, notes, before }: ComparedProps) {
  const { diff, moved } = useMemo(() => leaveOutMoves(whole), [whole])
  const [picked, setPicked] = useState<string | null>(null)
  const graph = useMemo(
    () => ({
      nodes: [...nodes, ...(diff.nodes.removed as DrawnNode[])],
      edges: [...edges, ...(diff.edges.removed as DrawnEdge[])],
      notes: [...notes, ...diff.notes.removed],
    }),
    [nodes, edges, notes, diff],
  )
  const { marks, edgeMarks, noteMarks } = useMemo(() => markGraph(diff), [diff])
  const { added, removed, changed } = diff.nodes
  const lines = diff.edges
  const noted = diff.notes
  const same =
    marks.size + edgeMarks.size + noteMarks.size === 0 &&
    !diff.expressions &&
    !diff.strict &&
    !diff.nodes.reordered &&
    !lines.reordered
  const said = moved > 0 ? `${moved} ${moved === 1 ? 'node is' : 'nodes are'} only at another place.` : ''
  if (same) return <Empty title="No difference" text={said || 'Both versions have the same graph.'} />
  return (
    <>
      <p className="row legend">
        <Pill tone="good">+ {added.length} added</Pill>
        <Pill tone="warn">~ {changed.length} changed</Pill>
        <Pill tone="bad">− {removed.length} removed</Pill>
        <span className="quiet">
          Edges: {lines.added.length} added, {lines.removed.length} removed
          {noteMarks.size > 0 &&
            `. Notes: ${noted.added.length} added, ${noted.changed.length} changed, ${noted.removed.length} removed`}
          {said && `. ${said}`}
        </span>
        {picked && (
          <Button small onClick={() => setPicked(null)}>
            Show all nodes
          </Button>
        )}
      </p>
      <Drawing
        graph={graph}
        label="Both versions, with what changed"
        marks={marks}
        edgeMarks={edgeMarks}
        noteMarks={noteMarks}
        picked={picked}
        onPick={(one) => setPicked(one === picked ? null : one)}
      />
      <Fields diff={diff} only={picked} before={before} />
    </>
  )
}

/** Where nodes are drawn is no change of what they do: it is only counted. */
function leaveOutMoves(diff: VersionDiff): { diff: VersionDiff; moved: number } {
  const all = diff.nodes.changed.map(({ changes, ...node }) => ({
    ...node,
    changes: changes.filter(({ path }) => path.split('.', 1)[0] !== 'position'),
  }))
  const changed = all.filter(({ changes }) => changes.length > 0)
  return { diff: { ...diff, nodes: { ...diff.nodes, changed } }, moved: all.length - changed.length }
}

function markGraph({ nodes, edges, notes }: VersionDiff) {
  const marks = new Map<string, Mark>()
  for (const { id } of nodes.added) marks.set(id, ADDED)
  for (const { id } of nodes.removed) marks.set(id, REMOVED)
  for (const { id, changes } of nodes.changed) {
    marks.set(id, { ...CHANGED, text: `changed: ${changes.map(({ path }) => path).join(', ')}` })
  }
  const edgeMarks = new Map<string, Mark>()
  for (const edge of edges.added) edgeMarks.set(keyOfEdge(edge), ADDED)
  for (const edge of edges.removed) edgeMarks.set(keyOfEdge(edge), REMOVED)
  const noteMarks = new Map<string, Mark>()
  for (const { id } of notes.added) noteMarks.set(id, ADDED)
  for (const { id } of notes.removed) noteMarks.set(id, REMOVED)
  for (const { id } of notes.changed) noteMarks.set(id, CHANGED)
  return { marks, edgeMarks, noteMarks }
}

type FieldsProps = { diff: VersionDiff; only: string | null; before: readonly DrawnNode[] }

/** Each node that changed, and each of its fields: what it was, what it is. */
function Fields({ diff: { nodes, edges, notes, expressions, strict }, only, before }: FieldsProps) {
  const wanted = <N extends { id: string }>(list: readonly N[]) =>
    list.filter(({ id }) => only === null || id === only)
  const changed = wanted(nodes.changed)
  const moved =
    only !== null && changed.length + wanted(nodes.added).length + wanted(nodes.removed).length === 0
  return (
    <div className="changes">
      {moved && <p className="quiet">Nothing changed in {nameOfId(before, only)}.</p>}
      {wanted(nodes.added).map((node) => (
        <Whole key={node.id} mark="added" node={node} />
      ))}
      {changed.map(({ id, name, changes }) => (
        <section key={id} className="panel change" aria-label={`Changed: ${name || id}`}>
          <h2>
            <Pill tone="warn">changed</Pill> {name || id}
          </h2>
          <Values changes={changes} />
        </section>
      ))}
      {wanted(nodes.removed).map((node) => (
        <Whole key={node.id} mark="removed" node={node} />
      ))}
      {only === null && (
        <>
          {notes.changed.map(({ id, changes }) => (
            <section key={id} className="panel change" aria-label={`Changed: the note ${id}`}>
              <h2>
                <Pill tone="warn">changed</Pill> Note {id}
              </h2>
              <Values changes={changes} />
            </section>
          ))}
          <Edges mark="added" edges={edges.added} />
          <Edges mark="removed" edges={edges.removed} />
          {expressions && (
            <p>
              The rules for expressions: {expressions.from} before, {expressions.to} now.
            </p>
          )}
          {strict && <p>Strict expressions: {strict.to ? 'off before, on now' : 'on before, off now'}.</p>}
          {(nodes.reordered || edges.reordered) && (
            <p className="quiet">The order of what both have is another.</p>
          )}
        </>
      )}
    </div>
  )
}

type Change = { path: string; from?: unknown; to?: unknown }

function Values({ changes }: { changes: readonly Change[] }) {
  return (
    <dl>
      {changes.map((change) => (
        <div key={change.path}>
          <dt>
            <code>{change.path}</code>
          </dt>
          {'from' in change && (
            <dd className="old">
              <span className="hidden">was</span>
              {write(change.from)}
            </dd>
          )}
          {'to' in change && (
            <dd className="new">
              <span className="hidden">is</span>
              {write(change.to)}
            </dd>
          )}
        </div>
      ))}
    </dl>
  )
}

function Whole({ mark, node }: { mark: 'added' | 'removed'; node: DrawnNode }) {
  return (
    <section className="panel change" aria-label={`${mark}: ${nameOf(node)}`}>
      <h2>
        <Pill tone={mark === 'added' ? 'good' : 'bad'}>{mark}</Pill> {nameOf(node)}
      </h2>
      <details>
        <summary>The node</summary>
        <pre className={`code ${mark === 'added' ? 'new' : 'old'}`}>{JSON.stringify(node, null, 2)}</pre>
      </details>
    </section>
  )
}

function Edges({ mark, edges }: { mark: 'added' | 'removed'; edges: readonly DrawnEdge[] }) {
  if (edges.length === 0) return null
  return (
    <section className="panel change" aria-label={`Edges ${mark}`}>
      <h2>
        <Pill tone={mark === 'added' ? 'good' : 'bad'}>{mark}</Pill> edges
      </h2>
      <ul>
        {edges.map((edge) => (
          <li key={keyOfEdge(edge)}>
            <code>
              {edge.source}
              {edge.sourceHandle ? `:${edge.sourceHandle}` : ''} → {edge.target}
            </code>
          </li>
        ))}
      </ul>
    </section>
  )
}

function nameOfId(nodes: readonly DrawnNode[], id: string): string {
  const node = nodes.find((one) => one.id === id)
  return node ? nameOf(node) : id
}

function write(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing')
}
