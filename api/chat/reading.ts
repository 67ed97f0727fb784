import { countCharacters, type Stretch, sliceText } from '../../activities/chat/assembly.ts'
import { createTextHash, type ReplyFeed } from '../../activities/chat/readers.ts'
import { type ReplyState, readReplyChunks, readSavedReply } from '../../db/chat/chunks.ts'
import type { Store } from '../../db/scope.ts'

/** The most characters of one event, and of a saved reply that are read at once. */
const MOST = 16_384
const MOST_SAVED = 65_536

/**
 * Up to where a client has the text of a reply, in characters. While the reply comes, `hash` is that of the text up to
 * there, and the attempt of the step is the one that it is from: text that an attempt began anew does not go on from
 * there. `saved`: the text is that of the saved reply, which changes no more.
 */
export type ReplyCursor =
  | { at: number; hash: string; step: number; attempt: number }
  | { at: number; saved: true }
  | { ended: true }

export const START = { at: 0, saved: true } satisfies ReplyCursor

/** The id of the event after which a client is there. */
export function writeReplyCursor(cursor: ReplyCursor): string {
  if ('ended' in cursor) return 'end'
  if ('saved' in cursor) return `${cursor.at}-saved`
  return `${cursor.at}-${cursor.hash}-${cursor.step}-${cursor.attempt}`
}

/** The cursor of an event's id; the start for an id that was never sent. */
export function readReplyCursor(id: string): ReplyCursor {
  if (id === 'end') return { ended: true }
  const saved = /^(\d{1,9})-saved$/.exec(id)
  if (saved) return { at: Number(saved[1]), saved: true }
  const [, at, hash, step, attempt] = /^(\d{1,9})-([\da-f]{16})-(\d{1,9})-(\d{1,9})$/.exec(id) ?? []
  if (!hash) return START
  return { at: Number(at), hash, step: Number(step), attempt: Number(attempt) }
}

/** The news for a reader: text that follows on, that all text so far is void, or that no more will come. */
export type ReplyNews =
  | { kind: 'text'; text: string; cursor: ReplyCursor }
  | { kind: 'reset' }
  | { kind: 'end'; state: ReplyState | 'gone' }

/** How far one client has read a reply. */
type Reading = {
  store: Store
  feed: ReplyFeed
  /** The feed's changes that were seen, and whether there was nothing more to tell of them. */
  seen: number
  isIdle: boolean
  /** Up to where the text was read, in characters, and its hash. */
  at: number
  hash: ReturnType<typeof createTextHash>
  /** How often the text had been cut. */
  cuts: number
  /** What the client has already: its text is passed over, to see whether it is the same. */
  target: Exclude<ReplyCursor, { ended: true } | { saved: true }> | undefined
  /** From here on the saved reply is read; `ahead` is what was read of it and is not told yet. */
  savedFrom: number | undefined
  ahead: string
}

/**
 * Reads the text of a reply from a cursor on, at the pace of one client. While the reply comes, it is read from memory;
 * a client that is far behind reads the stored chunks, and once the reply is saved, that.
 */
export function createReplyReader(
  store: Store,
  feed: ReplyFeed,
  from: Exclude<ReplyCursor, { ended: true }>,
) {
  const reading: Reading = {
    ...{ store, feed, seen: -1, isIdle: false, at: 0, hash: createTextHash(), cuts: feed.text.cutCount() },
    target: 'hash' in from && from.at > 0 ? from : undefined,
    savedFrom: 'saved' in from && from.at > 0 ? from.at : undefined,
    ahead: '',
  }
  return {
    isBehind: () => !reading.isIdle || feed.changes !== reading.seen,
    next: () => readNext(reading),
  }
}

async function readNext(reading: Reading): Promise<ReplyNews | null> {
  const { feed } = reading
  reading.seen = feed.changes
  reading.isIdle = false
  for (;;) {
    const { end } = feed
    const news = end
      ? await readEnd(reading, end)
      : reading.savedFrom === undefined
        ? await readLive(reading)
        : null
    if (news !== 'again') {
      reading.isIdle = news === null
      return news
    }
  }
}

function reset(reading: Reading): ReplyNews {
  reading.at = 0
  reading.hash = createTextHash()
  reading.cuts = reading.feed.text.cutCount()
  reading.target = undefined
  reading.savedFrom = undefined
  reading.ahead = ''
  return { kind: 'reset' }
}

async function readLive(reading: Reading): Promise<ReplyNews | 'again' | null> {
  const { text } = reading.feed
  const { at, target } = reading
  const kept = text.keptSince(reading.cuts)
  reading.cuts = text.cutCount()
  if (kept < (target?.at ?? at) || (target && text.attemptOf(target.step) > target.attempt))
    return reset(reading)
  const most = target ? Math.min(MOST, target.at - at) : MOST
  const found = text.read(at, most)
  if (found === null) return null
  const stretch = found ?? (await readStored(reading, most))
  // What comes meanwhile may have taken the text away again.
  if (text.keptSince(reading.cuts) < at + most) return 'again'
  if (!stretch) return null
  return takeStretch(reading, stretch)
}

async function readStored({ store, feed, at }: Reading, most: number): Promise<Stretch | null> {
  const place = feed.text.locate(at)
  if (!place) return null
  const chunks = await readReplyChunks(store, [{ executionId: feed.executionId, ...place }])
  const first = chunks.find(
    ({ step, attempt, position, text }) =>
      step === place.step &&
      attempt === place.attempt &&
      position <= place.position &&
      position + countCharacters(text) > place.position,
  )
  if (!first) return null
  const text = sliceText(first.text, place.position - first.position, most)
  return { text, to: at + countCharacters(text), step: place.step, attempt: place.attempt }
}

function takeStretch(reading: Reading, { text, to, step, attempt }: Stretch): ReplyNews | 'again' {
  const { hash, target } = reading
  reading.at = to
  hash.add(text)
  if (!target) return { kind: 'text', text, cursor: { at: to, hash: hash.read(), step, attempt } }
  if (to < target.at) return 'again'
  const fits = hash.read() === target.hash
  reading.target = undefined
  return fits ? 'again' : reset(reading)
}

async function readEnd(reading: Reading, end: ReplyState | 'gone'): Promise<ReplyNews | 'again'> {
  if (end === 'gone' || end.status === 'FAILED') return { kind: 'end', state: end }
  const { store, feed, at, hash, target, savedFrom } = reading
  const had = savedFrom ?? target?.at ?? at
  // What has come may be lost with the process that wrote it, before it was stored.
  if (had > end.length) return reset(reading)
  if (had >= end.length && savedFrom !== undefined) return { kind: 'end', state: end }
  if (reading.ahead === '') {
    const known = savedFrom === undefined && had > 0 ? (target?.hash ?? hash.read()) : null
    const saved = await readSavedReply(store, feed.executionId, { at: had, count: MOST_SAVED, hash: known })
    if (!saved) return { kind: 'end', state: 'gone' }
    if (!saved.fits) return reset(reading)
    reading.ahead = saved.text
    reading.savedFrom = had
    reading.target = undefined
    if (reading.ahead === '') return { kind: 'end', state: end }
  }
  const text = sliceText(reading.ahead, 0, MOST)
  reading.ahead = reading.ahead.slice(text.length)
  reading.savedFrom = had + countCharacters(text)
  return { kind: 'text', text, cursor: { at: reading.savedFrom, saved: true } }
}
