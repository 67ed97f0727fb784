import type { Client } from '@temporalio/client'
import proto from '@temporalio/proto'
import type { RunHistory } from '../../db/executions/projection/history.ts'
import { type Opener, openPayload } from './codec.ts'
import { type RawEvent, readEvent } from './events.ts'
import {
  createPages,
  fetchBack,
  fetchStart,
  type HistorySource,
  isFullPage,
  type Pages,
  type StartAttributes,
  startOf,
} from './pages.ts'
import type { Sealer } from './sealer.ts'

const { EventType } = proto.temporal.api.enums.v1

type Position = { runId: string; lastEventId: number }

/**
 * The histories of an execution's continue-as-new chain, in parts, oldest first, with payloads opened. Only one
 * page of one history and the newest one's first are held in memory at a time.
 */
export type Histories<K> = { known: K | null; parts: AsyncGenerator<RunHistory> }

/** A part has at most about this many bytes of payloads, or this many events. */
const PART_BYTES = 256_000
const PART_EVENTS = 200

/**
 * Opens the histories of an execution's whole chain; null if Temporal does not know the execution, or has dropped it.
 * With `untilClosed`, reading waits for a while for the close event, by long polls. `findKnown` is asked where not
 * all must be read: if the chain has several runs, if the only one is long, or (`when: 'gone'`) only if Temporal no
 * longer has the beginning. Then reading begins with the run that it names, or with the oldest that there is.
 */
export async function openHistories<K extends Position>(
  source: HistorySource,
  untilClosed: boolean,
  findKnown?: (when: 'long' | 'gone') => Promise<K | null>,
): Promise<Histories<K> | null> {
  const pages = createPages(source, '', untilClosed)
  const first = await pages.next()
  const start = startOf(first)
  if (!first || !start) return null
  const long = start.continuedExecutionRunId || isFullPage(first)
  let known = (long && (await findKnown?.('long'))) || null
  const { ids, gone } = await listBefore(source, start, known?.runId)
  if (gone && !known) known = (await findKnown?.('gone')) ?? null
  return { known, parts: readParts(source, ids, start, first, pages, untilClosed) }
}

/** Reads whole histories, for those who need no more. */
export async function* readHistories(
  client: Client,
  sealer: Sealer,
  executionId: string,
  { untilClosed }: { untilClosed: boolean },
): AsyncGenerator<RunHistory> {
  const found = await openHistories({ client, sealer, executionId }, untilClosed)
  if (found) yield* found.parts
}

/**
 * Opens what has happened since an event that was read: only new events are fetched, from the end back to that
 * one. Null if Temporal no longer has that run, or if it was terminated: then another one may have replaced it.
 */
export async function openNews(
  source: HistorySource,
  since: Position & { next: string | null },
  untilClosed: boolean,
): Promise<AsyncGenerator<RunHistory> | null> {
  const news = await fetchBack(source, since, untilClosed)
  const last = news?.at(-1)
  if (!news || last?.eventType === EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED) return null
  return readNews(source, since, news, untilClosed)
}

async function* readNews(
  source: HistorySource,
  since: Position & { next: string | null },
  news: RawEvent[],
  untilClosed: boolean,
): AsyncGenerator<RunHistory> {
  yield* read(source, since.runId, news)
  yield* readNext(source, news.length > 0 ? nextOf(news.at(-1)) : since.next, untilClosed)
}

/** Reads a run that goes on after another, and those after it. */
async function* readNext(
  source: HistorySource,
  first: string | null,
  untilClosed: boolean,
): AsyncGenerator<RunHistory> {
  for (let next = first; next; ) {
    const pages = createPages(source, next, untilClosed)
    let last: RawEvent | undefined
    for (let page = await pages.next(); page; page = await pages.next()) {
      yield* read(source, next, page)
      last = page.at(-1) ?? last
    }
    next = nextOf(last)
  }
}

function nextOf(last: RawEvent | undefined): string | null {
  return last?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId || null
}

async function* readParts(
  source: HistorySource,
  ids: string[],
  start: StartAttributes,
  first: RawEvent[],
  newest: Pages,
  untilClosed: boolean,
): AsyncGenerator<RunHistory> {
  for (const runId of ids) {
    const pages = createPages(source, runId, false)
    let original = ''
    for (let page = await pages.next(); page; page = await pages.next()) {
      original ||= startOf(page)?.originalExecutionRunId ?? runId
      yield* read(source, original, page)
    }
  }
  const runId = start.originalExecutionRunId ?? ''
  let last: RawEvent | undefined
  for (let page: RawEvent[] | undefined = first; page; page = await newest.next()) {
    yield* read(source, runId, page)
    last = page.at(-1) ?? last
  }
  // It may have gone on as another run while it was read.
  yield* readNext(source, nextOf(last), untilClosed)
}

/** Opens the payloads of events, a part at a time: a page of large ones would take too long. */
async function* read(
  { client, sealer, executionId }: HistorySource,
  runId: string,
  raw: RawEvent[],
): AsyncGenerator<RunHistory> {
  const place = { namespace: client.options.namespace, workflowId: executionId }
  const open: Opener = (payload) => openPayload(sealer, place, payload)
  let events: RunHistory['events'] = []
  let bytes = 0
  for (const event of raw) {
    events.push(await readEvent(open, event))
    bytes += sizeOf(event)
    if (bytes < PART_BYTES && events.length < PART_EVENTS) continue
    yield { runId, events }
    events = []
    bytes = 0
  }
  if (events.length > 0) yield { runId, events }
}

/** The bytes of what segments and attempts returned; other payloads are small. */
function sizeOf(event: RawEvent): number {
  const { markerRecordedEventAttributes: marker, activityTaskCompletedEventAttributes: completed } = event
  const { payloads } = marker?.details?.result ?? completed?.result ?? {}
  return payloads?.[0]?.data?.length ?? 0
}

/** The ids of the runs before this one, oldest first, as far as Temporal has them, back to `known`. */
async function listBefore(
  source: HistorySource,
  start: StartAttributes,
  known: string | undefined,
): Promise<{ ids: string[]; gone: boolean }> {
  const ids: string[] = []
  for (let next = start; next.originalExecutionRunId !== known; ) {
    const runId = next.continuedExecutionRunId
    if (!runId) break
    const before = await fetchStart(source, runId)
    if (!before) return { ids, gone: true }
    ids.unshift(runId)
    next = before
  }
  return { ids, gone: false }
}
