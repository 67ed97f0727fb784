import { JsonTree } from '../../kit/code/jsontree.tsx'
import { formatDuration, Time } from '../../kit/time.tsx'
import type { NodeRequest } from '../records.ts'

/** One HTTP request of an attempt: what was sent, and what came back. */
export function OneRequest({ request }: { request: NodeRequest }) {
  const { method, url, startedAt, durationMs, redirects, response, error } = request
  const came = response
    ? `${response.status} ${response.statusText}`.trim()
    : error
      ? 'no response'
      : 'under way'
  return (
    <details className="sent">
      <summary>
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

type Part = Pick<NonNullable<NodeRequest['response']>, 'headers' | 'body' | 'bodyBytes' | 'bodyCut'>

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
