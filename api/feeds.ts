import { setTimeout as sleep } from 'node:timers/promises'
import type { Bus } from '../db/bus.ts'
import {
  type Changes,
  type Cursor,
  type Place,
  readChanges,
  readSnapshot,
  writeCursor,
} from '../db/changes.ts'
import { isEnded } from '../db/executions.ts'
import type { Store } from '../db/scope.ts'

/** Events as Server-Sent Events' text, where the reader then stands, and whether there will be no more. */
type Page = { text: string; next: Cursor; ended: boolean }

/** One reader's way into the feed of a run. */
export type Seat = {
  isBehind(cursor: Cursor): boolean
  /** What comes next behind the cursor, at most 500 node records; null where the run is gone. */
  read(cursor: Cursor): Promise<Page | null>
  leave(): void
}

type Feed = {
  wakes: Set<() => void>
  /** Where those stand who have read all, and at which of the news it was read. */
  head: string
  headNews: number
  news: number
  ready: Promise<void>
  /** The step of the head under way; and the last one: who comes late to it needs no read of their own. */
  step?: Promise<Page | null> | undefined
  last?: { from: string; page: Page }
  reads: Map<string, Promise<Page | null>>
  restUntil: number
  leave?: () => void
}

const LEAST_PAUSE_MS = 100
const EPOCH: Place = { startedAt: new Date(0).toISOString(), id: '00000000-0000-0000-0000-000000000000' }

/**
 * Feeds of runs for any number of readers: those of one run share one watch, and one query for each change. A reader
 * who comes, or comes back, catches up to where the others stand and goes on with them.
 */
export function createFeeds({ store, bus }: { store: Store; bus: Bus }) {
  const feeds = new Map<string, Feed>()
  let readers = 0

  function open(id: string): Feed {
    const feed: Feed = {
      wakes: new Set(),
      head: '',
      headNews: 0,
      news: 0,
      ready: Promise.resolve(),
      reads: new Map(),
      restUntil: 0,
    }
    feed.ready = begin(id, feed)
    feeds.set(id, feed)
    return feed
  }

  async function begin(id: string, feed: Feed): Promise<void> {
    const leave = await bus.watch(id, () => {
      feed.news++
      for (const wake of [...feed.wakes]) wake()
    })
    feed.leave = leave
    if (feed.wakes.size === 0) return leave()
    feed.headNews = feed.news
    feed.head = await readSnapshot(store)
  }

  function read(id: string, feed: Feed, { from, to, after }: Cursor): Promise<Page | null> {
    if (to === undefined && from === feed.head) {
      feed.step ??= advance(id, feed, from).finally(() => {
        feed.step = undefined
      })
      return feed.step
    }
    if (to === undefined && feed.last?.from === from) return Promise.resolve(feed.last.page)
    const cursor = { from, to: to ?? feed.head, ...(after ? { after } : {}) }
    const key = writeCursor(cursor)
    const known = feed.reads.get(key)
    if (known) return known
    const page = readChanges(store, id, cursor)
      .then((changes) => changes && writePage(changes, cursor))
      .finally(() => feed.reads.delete(key))
    feed.reads.set(key, page)
    return page
  }

  async function advance(id: string, feed: Feed, from: string): Promise<Page | null> {
    const rest = feed.restUntil - performance.now()
    if (rest > 0) await sleep(rest)
    const { news } = feed
    const began = performance.now()
    try {
      const changes = await readChanges(store, id, { from })
      if (!changes) return null
      feed.head = changes.upTo
      feed.headNews = news
      const page = writePage(changes, { from })
      feed.last = { from, page }
      return page
    } finally {
      // What is slow to read is read less often.
      const took = performance.now() - began
      feed.restUntil = performance.now() + Math.max(LEAST_PAUSE_MS, 4 * took)
    }
  }

  return {
    /** How many readers there are. */
    count: () => readers,
    /** Joins the feed of a run; `wake` is called when there may be something to read. */
    async join(id: string, wake: () => void): Promise<Seat> {
      const feed = feeds.get(id) ?? open(id)
      feed.wakes.add(wake)
      readers++
      const leave = () => {
        if (!feed.wakes.delete(wake)) return
        readers--
        if (feed.wakes.size > 0) return
        if (feeds.get(id) === feed) feeds.delete(id)
        feed.leave?.()
      }
      try {
        await feed.ready
      } catch (error) {
        if (feeds.get(id) === feed) feeds.delete(id)
        leave()
        throw error
      }
      return {
        isBehind: ({ from, to }) => to !== undefined || from !== feed.head || feed.news > feed.headNews,
        read: (cursor) => read(id, feed, cursor),
        leave,
      }
    },
  }
}

export type Feeds = ReturnType<typeof createFeeds>

/** Of a run that is open its own state comes first, of one that has ended last, and then the end. */
function writePage(changes: Changes, { from, after }: Cursor): Page {
  const { run, nodes, upTo, more, ended, status } = changes
  const events = nodes.map((data) => ({ event: 'node', data: data as object, place: data as Place }))
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

function placeOf({ startedAt, id }: Place): Place {
  return { startedAt, id }
}

function writeEvent(cursor: Cursor, event: string, data: object): string {
  return `id: ${writeCursor(cursor)}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
