import { type Changes, type Cursor, writeCursor } from '../../db/executions/records/changes.ts'
import { isEnded } from '../../db/executions/status.ts'

type EventPlace = NonNullable<Cursor['after']>

/** Server-Sent Events as text, the cursor of a reader who has received them, and whether no more will come. */
export type EventPage = { text: string; next: Cursor; ended: boolean }

/** A place before every node record. */
const EPOCH: EventPlace = { startedAt: new Date(0).toISOString(), id: '00000000-0000-0000-0000-000000000000' }

/**
 * Writes changes as events. The id of each event is the cursor of a reader who has received it. The
 * execution's own event comes first while the execution is open; once it has ended, it comes last, followed
 * by `end`.
 */
export function writePage(changes: Changes, { from, after }: Cursor): EventPage {
  const { run, nodes, upTo, more, ended, status } = changes
  const events = nodes.map((data) => ({ event: 'node', data: data as object, place: data as EventPlace }))
  const own = run && { event: 'execution', data: run as object, place: EPOCH }
  if (own && ended) events.push(own)
  else if (own && !after && !isEnded(status)) events.unshift(own)
  const next: Cursor = more ? { from, to: upTo, after: placeOf(nodes.at(-1)!) } : { from: upTo }
  const lines = events.map(({ event, data, place }, at) => {
    const isLast = !more && at === events.length - 1
    return writeEvent(isLast ? next : { from, to: upTo, after: placeOf(place) }, event, data)
  })
  if (ended) lines.push(writeEvent({ from: upTo, ended: true }, 'end', { status }))
  return { text: lines.join(''), next, ended }
}

function placeOf({ startedAt, id }: EventPlace): EventPlace {
  return { startedAt, id }
}

function writeEvent(cursor: Cursor, event: string, data: object): string {
  return `id: ${writeCursor(cursor)}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
