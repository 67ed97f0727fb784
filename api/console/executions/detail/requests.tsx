import { useState } from 'react'
import { type NodeRequest, type RecordState, useRequests } from '../../data/records.ts'
import { Button } from '../../kit/button.tsx'
import { JsonTree } from '../../kit/jsontree.tsx'
import { Refused } from '../../kit/states.tsx'
import { isOpen, Pill } from '../../kit/status.tsx'
import { formatDuration, Time } from '../../kit/time.tsx'
import type { FailedAttempt } from '../live.ts'

type AttemptsProps = {
  executionId: string
  record: RecordState
  /** What the stream told of failed attempts while somebody looked. */
  seen: readonly FailedAttempt[]
  hidden: boolean
}

/** Every attempt of a node: of those that send over HTTP what was really sent and what came back. */
export function Attempts({ executionId, record, seen, hidden }: AttemptsProps) {
  const [page, setPage] = useState(0)
  const sends = (record.nodeType === 'HTTP_REQUEST' || record.step !== null) && !hidden
  const live = isOpen(record.status)
  const { data, error } = useRequests(executionId, record.id, { page, enabled: sends, until: record })
  const requests = data?.content ?? []
  const noted = new Set(requests.map(({ attempt }) => attempt))
  // The last error is the record's own; those before it are known where somebody looked, or something was sent.
  const others = seen.filter(({ attempt }) => !noted.has(attempt) && (live || attempt <= record.retryCount))
  if (requests.length === 0 && others.length === 0 && record.retryCount === 0 && !error) return null
  return (
    <section className="requests" aria-label="Attempts">
      <h3>{requests.length > 0 ? 'Attempts, and what was really sent' : 'Attempts'}</h3>
      <Refused error={error} />
      {others.map(({ attempt, message, at, next }) => (
        <div className="attempt" key={attempt}>
          <Pill tone="bad">Attempt {attempt}</Pill> <Time at={at} />
          <p className="failure">{message}</p>
          {next && live && attempt === record.retryCount + 1 && record.nextAttemptAt && (
            <p className="quiet">
              The next one comes at <Time at={next} />
            </p>
          )}
        </div>
      ))}
      {requests.map((request, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an attempt may send more than one
        <OneRequest key={`${request.attempt} ${at}`} request={request} />
      ))}
      {requests.length === 0 && others.length === 0 && record.retryCount > 0 && (
        <p className="quiet">
          {record.retryCount + 1} attempts so far; the errors of those before the last one are not kept.
        </p>
      )}
      {data && data.totalPages > 1 && (
        <div className="row">
          <Button small disabled={page === 0} onClick={() => setPage(page - 1)}>
            Earlier
          </Button>
          <Button small disabled={page + 1 >= data.totalPages} onClick={() => setPage(page + 1)}>
            Later
          </Button>
        </div>
      )}
    </section>
  )
}

function OneRequest({ request }: { request: NodeRequest }) {
  const { attempt, method, url, startedAt, durationMs, redirects, response, error } = request
  const came = response
    ? `${response.status} ${response.statusText}`.trim()
    : error
      ? 'no response'
      : 'under way'
  const bad = error !== null || (response !== null && response.status >= 400)
  return (
    <details className="attempt">
      <summary>
        <Pill tone={bad ? 'bad' : response ? 'good' : 'busy'}>Attempt {attempt}</Pill>{' '}
        <span className="said">
          {method} {url}, {came}
        </span>
      </summary>
      <p className="quiet">
        <Time at={startedAt} />
        {durationMs !== null && `, ${formatDuration(durationMs)}`}
      </p>
      {error && <p className="failure">{error}</p>}
      {redirects.map((hop) => (
        <p className="quiet" key={`${hop.status} ${hop.url}`}>
          {hop.status}: {hop.method} {hop.url}
        </p>
      ))}
      <JsonTree label="Request" value={readPart(request)} />
      {response && <JsonTree label="Response" value={readPart(response)} />}
    </details>
  )
}

type Part = Pick<NodeRequest, 'headers' | 'body' | 'bodyBytes' | 'bodyCut'>

/** The headers and the body, as the value that it is where that is JSON. */
function readPart({ headers, body, bodyBytes, bodyCut }: Part): Record<string, unknown> {
  if (body === null)
    return { headers, ...(bodyBytes > 0 ? { body: `${bodyBytes} bytes that are no text` } : {}) }
  if (bodyCut) return { headers, body, cut: `the beginning of ${bodyBytes} bytes` }
  try {
    return { headers, body: JSON.parse(body) as unknown }
  } catch {
    return { headers, body }
  }
}
