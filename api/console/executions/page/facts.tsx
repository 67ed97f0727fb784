import { CopyButton } from '../../kit/controls/copy.tsx'
import { Facts } from '../../kit/header.tsx'
import { isOpen, nameConstant } from '../../kit/status.tsx'
import { formatDuration, Time } from '../../kit/time.tsx'
import { ExecutionLink } from '../list.tsx'
import type { Run } from '../live.ts'
import { tellStarter } from '../starter.tsx'
import { tellUsage } from '../usage.ts'

type FactsProps = { run: Run; newest: number | undefined; now: number }

/** When an execution ran, what started it, and by which names it is known. */
export function RunFacts({ run, newest, now }: FactsProps) {
  const length = isOpen(run.status) ? now - Date.parse(run.startedAt ?? run.createdAt) : run.durationMs
  return (
    <Facts
      facts={[
        ['Trigger', nameConstant(run.trigger)],
        ['Started', run.startedAt ? <Time key="s" at={run.startedAt} /> : 'Not yet'],
        ['Ended', run.completedAt && <Time key="e" at={run.completedAt} />],
        ['Duration', formatDuration(length)],
        [
          'Version',
          newest !== undefined && newest !== run.workflowVersion
            ? `${run.workflowVersion}; published is ${newest}`
            : run.workflowVersion,
        ],
        ['Models', run.usage && tellUsage(run.usage)],
        ['Waits', run.status === 'PENDING' && run.queuedAt && 'for a place at its limit'],
        ['Only node', run.onlyNode && <code key="o">{run.onlyNode}</code>],
        ['Until node', run.until && <code key="u">{run.until}</code>],
        [
          run.recovery === 'RERUN' ? 'Again from' : 'Retry of',
          run.retriedFrom && <ExecutionLink key="r" id={run.retriedFrom} />,
        ],
        ['Taken up by', run.retries.length > 0 && <Links key="t" ids={run.retries} />],
        [
          'Started by',
          run.parentExecutionId ? (
            <span key="p">
              <ExecutionLink id={run.parentExecutionId} />
              {run.parentNodeId && ` at ${run.parentNodeId}`}
            </span>
          ) : (
            tellStarter(run.startedBy, run.trigger)
          ),
        ],
        ['Callback', run.callback && tellCallback(run.callback)],
        [
          'Temporal',
          run.temporal && (
            <span key="temporal" className="row">
              <a href={run.temporal.url} target="_blank" rel="noreferrer">
                History
              </a>
              <a href={run.temporal.runsUrl} target="_blank" rel="noreferrer">
                All runs
              </a>
            </span>
          ),
        ],
        [
          'Id',
          <span key="id" className="id row" title={run.id}>
            {run.id.slice(-12)}
            <CopyButton text={run.id} label="Copy the id, which is the workflow id in Temporal too" />
          </span>,
        ],
      ]}
    />
  )
}

function Links({ ids }: { ids: readonly string[] }) {
  return (
    <span className="row">
      {ids.slice(0, 5).map((id) => (
        <ExecutionLink key={id} id={id} />
      ))}
      {ids.length > 5 && <span className="quiet">{ids.length - 5} more</span>}
    </span>
  )
}

/** The receiver that the service calls at the end, and whether it has. */
function tellCallback({ url, status, attempts, lastError }: NonNullable<Run['callback']>): string {
  const tried = attempts > 1 ? ` (${attempts} attempts)` : ''
  return `${status.toLowerCase()}${tried}: ${url}${lastError ? `, ${lastError}` : ''}`
}
