import { countCharacters, type Stretch, sliceText } from '../../activities/agentchat/assembly.ts'
import { createTextHash, type ReplyFeed } from '../../activities/agentchat/readers.ts'
import { type ReplyState, readReplyChunks, readSavedReply } from '../../db/agentchat/chunks.ts'
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

/** The cursor of an event's id; the start if no event ever had that id. */
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

/**
 * Reads the text of a reply from a cursor on, at the pace of one client. While the reply comes, it is read from memory;
 * a client that is far behind reads the stored chunks, and once the reply is saved, that.
 */
export function createReplyReader(
  store: Store,
  feed: ReplyFeed,
  from: Exclude<ReplyCursor, { ended: true }>,
) {
  let seen = -1
  let isIdle = false
  let at = 0
  let hash = createTextHash()
  let cuts = feed.text.cutCount()
  /** The text that the client has already: it is passed over, to see whether it is the same. */
  let target = 'hash' in from && from.at > 0 ? from : undefined
  /** From here on the saved reply is read; `ahead` is what was read of it and is not told yet. */
  let savedFrom = 'saved' in from && from.at > 0 ? from.at : undefined
  let ahead = ''

  async function next(): Promise<ReplyNews | null> {
    seen = feed.changes
    isIdle = false
    for (;;) {
      const { end } = feed
      const news = end ? await readEnd(end) : savedFrom === undefined ? await readLive() : null
      if (news !== 'again') {
        isIdle = news === null
        return news
      }
    }
  }

  function reset(): ReplyNews {
    at = 0
    hash = createTextHash()
    cuts = feed.text.cutCount()
    target = undefined
    savedFrom = undefined
    ahead = ''
    return { kind: 'reset' }
  }

  async function readLive(): Promise<ReplyNews | 'again' | null> {
    const { text } = feed
    const kept = text.keptSince(cuts)
    cuts = text.cutCount()
    if (kept < (target?.at ?? at) || (target && text.attemptOf(target.step) > target.attempt)) return reset()
    const most = target ? Math.min(MOST, target.at - at) : MOST
    const found = text.read(at, most)
    if (found === null) return null
    const stretch = found ?? (await readStored(most))
    // A newer attempt may have taken the text away meanwhile.
    if (text.keptSince(cuts) < at + most) return 'again'
    if (!stretch) return null
    return take(stretch)
  }

  async function readStored(most: number): Promise<Stretch | null> {
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

  function take({ text, to, step, attempt }: Stretch): ReplyNews | 'again' {
    at = to
    hash.add(text)
    if (!target) return { kind: 'text', text, cursor: { at, hash: hash.read(), step, attempt } }
    if (at < target.at) return 'again'
    const fits = hash.read() === target.hash
    target = undefined
    return fits ? 'again' : reset()
  }

  async function readEnd(end: ReplyState | 'gone'): Promise<ReplyNews | 'again'> {
    if (end === 'gone' || end.status === 'FAILED') return { kind: 'end', state: end }
    const had = savedFrom ?? target?.at ?? at
    // Text that was shown may be lost with the process that wrote it, before it was stored.
    if (had > end.length) return reset()
    if (had >= end.length && savedFrom !== undefined) return { kind: 'end', state: end }
    if (ahead === '') {
      const known = savedFrom === undefined && had > 0 ? (target?.hash ?? hash.read()) : null
      const saved = await readSavedReply(store, feed.executionId, { at: had, count: MOST_SAVED, hash: known })
      if (!saved) return { kind: 'end', state: 'gone' }
      if (!saved.fits) return reset()
      ahead = saved.text
      savedFrom = had
      target = undefined
      if (ahead === '') return { kind: 'end', state: end }
    }
    const text = sliceText(ahead, 0, MOST)
    ahead = ahead.slice(text.length)
    savedFrom = had + countCharacters(text)
    return { kind: 'text', text, cursor: { at: savedFrom, saved: true } }
  }

  return { isBehind: () => !isIdle || feed.changes !== seen, next }
}
