import { useState } from 'react'
import { Button } from '../../kit/controls/button.tsx'
import { Refused } from '../../kit/states.tsx'
import { isOpen, nameConstant, Pill, StatusSign } from '../../kit/status.tsx'
import { formatDuration, Time, Until } from '../../kit/time.tsx'
import { type NodeAttempt, type NodeRequest, type RecordState, useAttempts, useRequests } from '../records.ts'
import { OneRequest } from './request.tsx'

type AttemptsProps = { executionId: string; record: RecordState; hidden: boolean; now: number }

/** Every attempt of a node with its error and what it really sent over HTTP, and when the next one comes. */
export function Attempts({ executionId, record, hidden, now }: AttemptsProps) {
  const [page, setPage] = useState(0)
  const [sentPage, setSentPage] = useState(0)
  const live = isOpen(record.status)
  const sends = (record.nodeType === 'HTTP_REQUEST' || record.step !== null) && !hidden
  const sent = useRequests(executionId, record.id, { page: sentPage, enabled: sends, until: record })
  const requests = sent.data?.content ?? []
  const many = record.retryCount > 0 || record.nextAttemptAt !== null
  const shown = !hidden && (many || requests.length > 0)
  const { data, error } = useAttempts(executionId, record, { page, enabled: shown })
  if (!shown) return null
  const attempts = data?.content ?? []
  const planned = live && record.nextAttemptAt && page + 1 >= (data?.totalPages ?? 0)
  return (
    <section className="requests" aria-label="Attempts">
      <h3>{requests.length > 0 ? 'Attempts, and what was really sent' : 'Attempts'}</h3>
      <Refused error={error ?? sent.error} />
      <ol className="attempts">
        {attempts.map((one) => (
          <OneAttempt
            key={one.attempt}
            attempt={one}
            requests={requests.filter(({ attempt }) => attempt === one.attempt)}
          />
        ))}
        {planned && (
          <li className="attempt planned">
            <div className="attempt-head">
              <StatusSign status="PENDING" />
              <span className="name">Attempt {(data?.totalElements ?? record.retryCount + 1) + 1}</span>
              <span className="quiet">
                comes <Until at={record.nextAttemptAt!} now={now} />
              </span>
            </div>
          </li>
        )}
      </ol>
      <Pages label="attempts" page={page} total={data?.totalPages} onPage={setPage} />
      <Pages label="requests" page={sentPage} total={sent.data?.totalPages} onPage={setSentPage} />
    </section>
  )
}

/** How the console names the end of an attempt; those of Temporal's outages and the like do not count. */
const ENDS: Partial<Record<NodeAttempt['status'], string>> = {
  LOST: 'Its worker was lost, so nobody noted how it ended. It does not count.',
  UNKNOWN: 'Nothing was noted of it.',
}

function OneAttempt({ attempt, requests }: { attempt: NodeAttempt; requests: readonly NodeRequest[] }) {
  const { status, startedAt, durationMs, error, counted } = attempt
  return (
    <li className="attempt" data-attempt={attempt.attempt} data-end={status}>
      <div className="attempt-head">
        <StatusSign status={SIGNS[status] ?? status} />
        <span className="name">Attempt {attempt.attempt}</span>
        <span className="hidden">{nameConstant(status)}</span>
        {error?.type && <Pill tone="bad">{error.type}</Pill>}
        {status === 'LOST' && <Pill tone="warn">Lost</Pill>}
        {status === 'FAILED' && !counted && (
          <Pill tone="warn" title="The service was to blame, so it uses up none of the node's attempts">
            Does not count
          </Pill>
        )}
        <span className="quiet attempt-time">
          {startedAt && <Time at={startedAt} />}
          {durationMs !== null && <span>{formatDuration(durationMs)}</span>}
        </span>
      </div>
      {error && <p className="failure said">{error.message}</p>}
      {ENDS[status] && <p className="quiet">{ENDS[status]}</p>}
      {requests.map((request, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an attempt may send more than one
        <OneRequest key={at} request={request} />
      ))}
    </li>
  )
}

const SIGNS: Partial<Record<NodeAttempt['status'], string>> = { LOST: 'CANCELLED', UNKNOWN: 'PENDING' }

type PagesProps = { label: string; page: number; total: number | undefined; onPage: (page: number) => void }

function Pages({ label, page, total = 1, onPage }: PagesProps) {
  if (total <= 1) return null
  return (
    <div className="row">
      <Button small disabled={page === 0} onClick={() => onPage(page - 1)}>
        Earlier {label}
      </Button>
      <Button small disabled={page + 1 >= total} onClick={() => onPage(page + 1)}>
        Later {label}
      </Button>
    </div>
  )
}
