import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bus } from '../../db/bus.ts'
import {
  CHUNKS_A_READ,
  type ReplyPiece,
  type ReplyState,
  readReplyChunks,
  readReplyStates,
  readTold,
} from '../../db/chat/chunks.ts'
import type { Store } from '../../db/scope.ts'
import { createReplyText, type ReplyText } from './assembly.ts'

/** The state of a reply in this process. All readers of the reply here share it. */
export type ReplyFeed = {
  executionId: string
  text: ReplyText
  /** Grows with each change. */
  changes: number
  /** How the reply ended, or that it is gone; undefined while it comes. */
  end: ReplyState | 'gone' | undefined
}

type Feed = ReplyFeed & {
  wakes: Set<() => void>
  loaded: PromiseWithResolvers<void>
  leaveBus?: () => void
  /** When what is missing is looked for next, and how long after that again. */
  gapAt: number
  gapPause: number
}

type Deps = {
  store: Store
  bus: Bus
  listWaiting: (executionId: string) => Iterable<ReplyPiece>
}

const PAUSE_MS = 20
const AWAY_MS = 1_000
const LEAST_GAP_MS = 100
const MAX_GAP_MS = 5_000

/** The interval at which all replies are read again, even without a notification. */
const LOOK_MS = 10_000

/** The replies that are read in this process, and what is still to be read of them. */
type State = Deps & {
  /** By execution. */
  feeds: Map<string, Feed>
  /** Those that the next query reads. */
  dirty: Set<Feed>
  /** Whether dirty ones are being read. */
  isReading: boolean
  timer: NodeJS.Timeout | undefined
}

/**
 * The replies that are read in this process. Text that is written in this process is heard at once; for the text that
 * others have stored there is one query for all of them together, after a notification.
 */
export function createReplyFeeds(deps: Deps) {
  const state: State = { ...deps, feeds: new Map(), dirty: new Set(), isReading: false, timer: undefined }
  const { feeds } = state
  deps.bus.onTold((text) => {
    const ids = text === null ? feeds.keys() : (readTold(text) ?? [])
    for (const id of ids) look(state, feeds.get(id))
  })
  return {
    /** Takes a piece that has come in this process. */
    hear: (executionId: string, piece: ReplyPiece) => hearPiece(state, executionId, piece),

    /** Waits until all who read here a reply that has ended were told its end, but no longer than `limitMs`. */
    tellEnds: (limitMs: number) => tellEnds(state, limitMs),

    /**
     * Joins those who read the reply of an execution. `wake` is called after each change. Rejects if PostgreSQL does
     * not tell what is stored.
     */
    join: (executionId: string, wake: () => void) => joinFeed(state, executionId, wake),
  }
}

function look(state: State, feed: Feed | undefined): void {
  if (!feed) return
  state.dirty.add(feed)
  if (!state.isReading) void readDirty(state)
}

async function readDirty(state: State): Promise<void> {
  const { feeds, dirty, bus } = state
  state.isReading = true
  while (dirty.size > 0 && !bus.stopping.aborted) {
    const taken = [...dirty].filter(({ executionId }) => feeds.has(executionId))
    dirty.clear()
    try {
      if (taken.length > 0) await readOnce(state, taken)
      await sleep(PAUSE_MS)
    } catch (error) {
      for (const feed of taken) {
        feed.loaded.reject(error)
        dirty.add(feed)
      }
      await sleep(AWAY_MS, undefined, { ref: false })
    }
  }
  state.isReading = false
}

async function readOnce({ store, dirty, listWaiting }: State, taken: Feed[]): Promise<void> {
  const ids = taken.map(({ executionId }) => executionId)
  const places = taken.map(({ executionId, text }) => ({ executionId, ...text.end() }))
  const chunks = Map.groupBy(await readReplyChunks(store, places), ({ executionId }) => executionId)
  const states = new Map((await readReplyStates(store, ids)).map((state) => [state.executionId, state]))
  for (const feed of taken) {
    const found = chunks.get(feed.executionId) ?? []
    const state = states.get(feed.executionId)
    for (const chunk of found) feed.text.take(chunk)
    if (found.length === CHUNKS_A_READ) dirty.add(feed)
    else if (state?.status === 'STREAMING')
      for (const piece of listWaiting(feed.executionId)) feed.text.take(piece)
    if (state?.status !== 'STREAMING') feed.end = state ?? 'gone'
    feed.loaded.resolve()
    noteChange(feed)
  }
}

function noteChange(feed: Feed): void {
  feed.changes++
  for (const wake of [...feed.wakes]) wake()
}

function hearPiece(state: State, executionId: string, piece: ReplyPiece): void {
  const feed = state.feeds.get(executionId)
  if (!feed) return
  if (feed.text.take(piece)) {
    feed.gapPause = LEAST_GAP_MS
    noteChange(feed)
    return
  }
  const now = performance.now()
  if (now < feed.gapAt) return
  feed.gapAt = now + feed.gapPause
  feed.gapPause = Math.min(MAX_GAP_MS, 2 * feed.gapPause)
  look(state, feed)
}

async function tellEnds(state: State, limitMs: number): Promise<void> {
  const { feeds, dirty } = state
  const giveUp = performance.now() + limitMs
  for (const feed of feeds.values()) look(state, feed)
  // A reader that was told the end leaves.
  const isTold = () => !state.isReading && dirty.size === 0 && [...feeds.values()].every((feed) => !feed.end)
  while (!isTold() && performance.now() < giveUp) await sleep(PAUSE_MS)
}

async function joinFeed(
  state: State,
  executionId: string,
  wake: () => void,
): Promise<{ feed: ReplyFeed; leave: () => void }> {
  const feed = state.feeds.get(executionId) ?? openFeed(state, executionId)
  const own = () => wake()
  feed.wakes.add(own)
  const leave = () => {
    if (feed.wakes.delete(own) && feed.wakes.size === 0) closeFeed(state, feed)
  }
  try {
    await feed.loaded.promise
  } catch (error) {
    leave()
    closeFeed(state, feed)
    throw error
  }
  return { feed, leave }
}

function openFeed(state: State, executionId: string): Feed {
  const { feeds, bus } = state
  const feed: Feed = {
    executionId,
    text: createReplyText(),
    changes: 0,
    end: undefined,
    wakes: new Set(),
    loaded: Promise.withResolvers(),
    gapAt: 0,
    gapPause: LEAST_GAP_MS,
  }
  feed.loaded.promise.catch(() => {})
  feeds.set(executionId, feed)
  const lookAtAll = () => {
    for (const each of [...feeds.values()]) look(state, each)
  }
  state.timer ??= setInterval(lookAtAll, LOOK_MS).unref()
  void bus
    .watch(executionId, () => look(state, feed))
    .then((leave) => {
      if (feeds.get(executionId) !== feed) return leave()
      feed.leaveBus = leave
      look(state, feed)
    })
  return feed
}

function closeFeed(state: State, feed: Feed): void {
  const { feeds } = state
  if (feeds.get(feed.executionId) !== feed) return
  feeds.delete(feed.executionId)
  feed.leaveBus?.()
  if (feeds.size > 0) return
  clearInterval(state.timer)
  state.timer = undefined
}

/** The hash of a text that grows. */
export function createTextHash() {
  const hash = createHash('sha256')
  return {
    add: (text: string) => void hash.update(text),
    /** The first 16 digits of the SHA-256 of what was added, in hexadecimal. */
    read: () => hash.copy().digest('hex').slice(0, 16),
  }
}
