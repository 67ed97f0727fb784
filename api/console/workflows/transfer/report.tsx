import { useMemo } from 'react'
import { nameCause } from '../../../../workflows/n8n/report.ts'
import type { Mark } from '../../graph/marks.ts'
import { Pill, type Tone } from '../../kit/status.tsx'
import type { ImportReport } from './data.ts'
import { type Choosing, NeededCredentials } from './needed.tsx'

type Node = ImportReport['mapped'][number]

const LOOKS: Record<Node['state'], { tone: Tone; word: string; sign: string }> = {
  works: { tone: 'good', word: 'works', sign: '✓' },
  noted: { tone: 'warn', word: 'has a note', sign: '!' },
  stopped: { tone: 'bad', word: 'stops the execution', sign: '×' },
}

/** What the report says of each node, for the drawing. */
export function useReportMarks(report: ImportReport | null | undefined): ReadonlyMap<string, Mark> {
  return useMemo(() => {
    if (!report) return new Map<string, Mark>()
    const said = Map.groupBy(report.problems, ({ node }) => node)
    return new Map(
      report.mapped.map(({ id, node, state }): [string, Mark] => {
        const { tone, word, sign } = LOOKS[state]
        const problems = (said.get(node) ?? []).map(({ message }) => message)
        const text = [word, ...problems.slice(0, 3)].join('. ')
        return [id, { tone, text, ...(state === 'works' ? {} : { sign }) }]
      }),
    )
  }, [report])
}

/** A type of n8n without its package. */
const shorten = (type: string) => type.slice(type.lastIndexOf('.') + 1)

type Causes = NonNullable<ImportReport['groups'][number]['causes']>

/** Whether a problem is told together with others that differ only in names. */
function isShared(message: string, causes: Causes): boolean {
  return causes.some(({ cause, count }) => count > 1 && nameCause(cause) === nameCause(message))
}

type ReportProps = { report: ImportReport; choosing?: Choosing }

/**
 * What an import brought and what is left to do: totals, the credentials that are needed, and the problems by what there
 * is to do.
 */
export function Report({ report, choosing }: ReportProps) {
  const { totals, groups, problems, mapped, stickyNotes, credentials } = report
  const ids = new Map(mapped.map(({ node, id }) => [node, id]))
  return (
    <section className="report" aria-label="Report of the import">
      <p className="row">
        <strong>{totals.nodes} nodes</strong>
        {(['works', 'noted', 'stopped'] as const).map((state) => (
          <Pill key={state} tone={totals[state] > 0 ? LOOKS[state].tone : undefined}>
            {totals[state]}{' '}
            {totals[state] === 1 || state === 'works'
              ? { works: 'as it was', noted: 'has a note', stopped: 'stops' }[state]
              : { noted: 'have a note', stopped: 'stop' }[state]}
          </Pill>
        ))}
        {stickyNotes > 0 && (
          <span className="quiet">{stickyNotes === 1 ? 'A note' : `${stickyNotes} notes`} on the canvas</span>
        )}
      </p>
      <NeededCredentials needed={credentials} {...(choosing ? { choosing } : {})} />
      {groups.length === 0 && <p>Everything is as it was.</p>}
      {groups.map(({ kind, action, count, causes = [] }) => (
        <details key={kind} className="panel group" open={groups.length < 4 || kind === 'node'}>
          <summary>
            <strong>{action}</strong> <span className="quiet">{count}</span>
          </summary>
          <ul>
            {causes
              .filter((one) => one.count > 1)
              .map(({ cause, types, nodes, count }) => (
                <li key={cause}>
                  <strong>{nodes.length > 1 ? `${nodes.length} nodes` : `${count} times`}</strong>{' '}
                  {types.length > 0 && <code>{types.map(shorten).join(', ')}</code>}{' '}
                  <span className="said">{cause}</span> <span className="said quiet">{nodes.join(', ')}</span>
                </li>
              ))}
            {problems
              .filter((one) => one.kind === kind && !isShared(one.message, causes))
              .map(({ node, path, message }, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a report never changes
                <li key={at}>
                  {node && (
                    <strong title={ids.get(node)} className="said">
                      {node}
                    </strong>
                  )}{' '}
                  {path && <code>{path}</code>} <span className="said">{message}</span>
                </li>
              ))}
          </ul>
        </details>
      ))}
    </section>
  )
}
