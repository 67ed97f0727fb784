import type { Client } from '@temporalio/client'
import proto from '@temporalio/proto'
import type { RawEvent } from './events.ts'
import type { Sealer } from './sealer.ts'

const { EventType, HistoryEventFilterType } = proto.temporal.api.enums.v1

/** Which execution's histories are read, and with what. */
export type HistorySource = { client: Client; sealer: Sealer; executionId: string }

export type StartAttributes = NonNullable<RawEvent['workflowExecutionStartedEventAttributes']>

export function startOf(events: RawEvent[] | undefined): StartAttributes | undefined {
  return events?.[0]?.workflowExecutionStartedEventAttributes ?? undefined
}

/** How long to wait for a close event. A run that should have closed by then is left to the sweeper. */
const MAX_WAIT_MS = 30_000
const PAGE_EVENTS = 500

/** A page of a history read backwards: news are few. */
const BACK_EVENTS = 100

/** A history up to this event is rather read again as a whole: that is one call and waits for the close too. */
const SHORT_EVENTS = 100

export type Pages = {
  /** The events of the next page; undefined after the last one, or if Temporal does not know the run. */
  next(): Promise<RawEvent[] | undefined>
}

export function isFullPage(events: RawEvent[]): boolean {
  return events.length >= PAGE_EVENTS
}

/** Reads the events of a run (the newest run for '') forward. With `waits`, waits for a while for its close. */
export function createPages(source: HistorySource, runId: string, waits: boolean): Pages {
  const giveUp = Date.now() + MAX_WAIT_MS
  let token: Uint8Array | null | undefined
  return {
    async next() {
      if (token === undefined) token = null
      else if (token === null || (waits && Date.now() > giveUp)) return undefined
      const page = await fetchPage(source, runId, {
        ...(token ? { nextPageToken: token } : {}),
        waitNewEvent: waits,
        maximumPageSize: PAGE_EVENTS,
      })
      token = page?.nextPageToken?.length ? page.nextPageToken : null
      return page?.history?.events ? dropTransient(page.history.events) : undefined
    },
  }
}

/** The start of a run; undefined if Temporal does not know it. */
export async function fetchStart(source: HistorySource, runId: string): Promise<StartAttributes | undefined> {
  const page = await fetchPage(source, runId, { maximumPageSize: 1 })
  return startOf(page?.history?.events ?? [])
}

/** The events of a run after the one that is known, oldest first; undefined if Temporal does not know the run. */
export async function fetchBack(
  source: HistorySource,
  known: { runId: string; lastEventId: number },
  untilClosed: boolean,
): Promise<RawEvent[] | undefined> {
  if (untilClosed && known.lastEventId < SHORT_EVENTS) return fetchShort(source, known)
  if (untilClosed && !(await awaitClose(source, known.runId))) return undefined
  const { workflowService, options } = source.client
  const news: RawEvent[] = []
  let nextPageToken: Uint8Array | undefined
  do {
    const token = nextPageToken
    const page = await unlessGone(() =>
      workflowService.getWorkflowExecutionHistoryReverse({
        namespace: options.namespace,
        execution: { workflowId: source.executionId, runId: known.runId },
        maximumPageSize: BACK_EVENTS,
        ...(token ? { nextPageToken: token } : {}),
      }),
    )
    if (!page) return undefined
    for (const event of page.history?.events ?? []) {
      if (Number(event.eventId) <= known.lastEventId) return dropTransient(news.reverse())
      news.push(event)
    }
    nextPageToken = page.nextPageToken?.length ? page.nextPageToken : undefined
  } while (nextPageToken)
  return dropTransient(news.reverse())
}

/**
 * Leaves out the events of a workflow task that is being tried again: Temporal shows them at the end of a history
 * before they are part of it, and gives their ids to others if the run is terminated meanwhile.
 */
function dropTransient(events: RawEvent[]): RawEvent[] {
  const at = events.findLastIndex((event) => event.workflowTaskScheduledEventAttributes)
  if (at < 0 || (events[at]!.workflowTaskScheduledEventAttributes!.attempt ?? 1) <= 1) return events
  const isTail = events.slice(at + 1).every((event) => event.workflowTaskStartedEventAttributes)
  return isTail ? events.slice(0, at) : events
}

async function fetchShort(
  source: HistorySource,
  known: { runId: string; lastEventId: number },
): Promise<RawEvent[] | undefined> {
  const pages = createPages(source, known.runId, true)
  let news: RawEvent[] | undefined
  for (let page = await pages.next(); page; page = await pages.next()) {
    news ??= []
    news.push(...page.filter(({ eventId }) => Number(eventId) > known.lastEventId))
  }
  return news
}

/** Waits for a while for the close of a run; false if Temporal does not know the run. */
async function awaitClose(source: HistorySource, runId: string): Promise<boolean> {
  const giveUp = Date.now() + MAX_WAIT_MS
  let nextPageToken: Uint8Array | undefined
  do {
    const page = await fetchPage(source, runId, {
      ...(nextPageToken ? { nextPageToken } : {}),
      waitNewEvent: true,
      maximumPageSize: 1,
      historyEventFilterType: HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
    })
    if (!page) return false
    nextPageToken = page.nextPageToken?.length ? page.nextPageToken : undefined
    if (page.history?.events?.some(({ eventType }) => eventType !== EventType.EVENT_TYPE_UNSPECIFIED)) break
  } while (nextPageToken && Date.now() < giveUp)
  return true
}

type PageOptions = {
  nextPageToken?: Uint8Array
  waitNewEvent?: boolean
  maximumPageSize: number
  historyEventFilterType?: proto.temporal.api.enums.v1.HistoryEventFilterType
}

function fetchPage({ client, executionId }: HistorySource, runId: string, page: PageOptions) {
  const { workflowService, options } = client
  return unlessGone(() =>
    workflowService.getWorkflowExecutionHistory({
      namespace: options.namespace,
      execution: { workflowId: executionId, runId },
      ...page,
    }),
  )
}

const NOT_FOUND = 5

async function unlessGone<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask()
  } catch (error) {
    if ((error as { code?: number }).code === NOT_FOUND) return undefined
    throw error
  }
}
