/** The IANA name of a time zone, as Temporal knows it; undefined for other names and offsets (+01:00). */
export function findTimezone(name: string): string | undefined {
  if (!/^[A-Za-z]/.test(name)) return undefined
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

/** The clocks of a zone change: `at` is the first instant with the offset `after`. All in milliseconds, east of UTC. */
export type ClockChange = { at: number; before: number; after: number }

const DAY_MS = 86_400_000
/** Clocks that change stay so for longer than this. */
const STEP_MS = 3 * DAY_MS

const formats = new Map<string, Intl.DateTimeFormat>()
/** By zone and year. There are some 600 zones, and few years that are asked for. */
const changes = new Map<string, ClockChange[]>()

/** The offset of a zone from UTC at an instant, in milliseconds. */
export function findOffset(zone: string, at: number): number {
  let format = formats.get(zone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset', year: 'numeric' })
    formats.set(zone, format)
  }
  const [, sign, hours, minutes, seconds] =
    /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(format.format(at)) ?? []
  if (sign === undefined) return 0
  const offset = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds ?? 0)) * 1_000
  return sign === '-' ? -offset : offset
}

/** The changes of a zone's clocks from one instant (inclusive) to another (exclusive), in their order. */
export function listClockChanges(zone: string, from: number, to: number): ClockChange[] {
  const found: ClockChange[] = []
  const last = new Date(to).getUTCFullYear()
  for (let year = new Date(from).getUTCFullYear(); year <= last; year++) found.push(...readYear(zone, year))
  return found.filter(({ at }) => at >= from && at < to)
}

function readYear(zone: string, year: number): ClockChange[] {
  const key = `${zone} ${year}`
  const known = changes.get(key)
  if (known) return known
  const found: ClockChange[] = []
  const end = Date.UTC(year + 1)
  let before = findOffset(zone, Date.UTC(year) - 1)
  for (let from = Date.UTC(year) - 1; from < end - 1; from += STEP_MS) {
    const to = Math.min(from + STEP_MS, end - 1)
    const after = findOffset(zone, to)
    if (after !== before) found.push({ at: bisect(zone, from, to, before), before, after })
    before = after
  }
  changes.set(key, found)
  return found
}

/** The first instant after `from` whose offset is not `before`. */
function bisect(zone: string, from: number, to: number, before: number): number {
  let [low, high] = [from, to]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (findOffset(zone, middle) === before) low = middle
    else high = middle
  }
  return high
}
