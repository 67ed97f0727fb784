/** The value of an attribute that is kept. Texts are cut at MOST_TEXT; lists, objects and bytes are never read. */
export type AttributeValue = string | number | boolean

/** The parts of a span that are read from either encoding: of its attributes, only those in KEPT_ATTRIBUTES. */
export type RawSpan = {
  /** Lower-case hex as it came, not yet checked. */
  traceId: string
  spanId: string
  /** Unix time in milliseconds; 0 if the span has none. */
  startMs: number
  endMs: number
  /** Whether its status is an error. */
  failed: boolean
  attributes: Map<string, AttributeValue>
}

/** A span of which nothing has been read yet. */
export function createRawSpan(): RawSpan {
  return { traceId: '', spanId: '', startMs: 0, endMs: 0, failed: false, attributes: new Map() }
}

/** The service that a resource's attributes name; '' if they name none. */
export function readServiceName(resource: ReadonlyMap<string, AttributeValue>): string {
  const service = resource.get('service.name')
  return typeof service === 'string' ? service : ''
}

/** Takes spans as they are read, one at a time, so that nothing else of a batch need be held in memory. */
export type SpanTaker = {
  take(span: RawSpan): void
  /** Says which service has sent those that were taken since the last time; '' if it has no name. */
  name(service: string): void
}

/** A name is no longer. Longer texts are cut while they are read. */
export const MOST_TEXT = 200

/** The body is not what its type says. The message has nothing of it. */
export class MalformedBatch extends Error {}

/** The keys of attributes that are looked at are no longer, in bytes or UTF-16 units. */
export const MOST_KEY = 64

/** The number of bytes or characters that are read in one unit of work (workInTurns). */
const UNIT_LENGTH = 10
const LEAST_PIECE = 2_000

/** Tells, as a reader goes on, what to pay in units of work. A single piece never costs more than a turn has. */
export function createToll(mostUnits: number): (at: number) => number {
  let paid = 0
  return (at) => {
    if (at - paid < LEAST_PIECE) return 0
    const units = Math.min(mostUnits, Math.ceil((at - paid) / UNIT_LENGTH))
    paid = at
    return units
  }
}
