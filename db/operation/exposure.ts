import { sql } from 'kysely'
import type { Bus } from '../bus.ts'
import { changeInstance } from '../change.ts'
import type { Tx } from '../connection.ts'
import type { Scope, Store } from '../scope.ts'

/**
 * Whether others than this machine's users can reach the service. Some features are open by default only because they
 * cannot. Once a process finds out that they can, all processes close these features, until all have been started anew,
 * or until the operator decides that proxies close nothing.
 */
export type Exposure = {
  /** Why the service counts as reachable by others, in words that follow "since"; null as long as it does not. */
  why(): string | null
  /** Notes that it is by its settings, which no decision of the operator changes, and tells all other processes. */
  note(why: string): void
  /** Notes that a request has come through a proxy that was not announced, as this header of it shows. */
  noteProxy(header: string): void
}

type Options = {
  bus: Bus
  /** Whether the operator's decision holds that proxies close nothing. */
  isDecided: () => Promise<boolean>
  /**
   * Called in each process with the reason whenever it closes what is open by default, and with null when that is open
   * again.
   */
  onChange: (why: string | null) => void
}

const ASK = 'exposed?'
const TELL = 'exposed:'
const DECIDED = 'exposure decided'
const MAX_LENGTH = 200

/** A reason that begins so is about a proxy. Processes tell each other nothing but the reason. */
const PROXY = 'a request came through a proxy'

/** How long to wait before the decision is read again that could not be read. */
const AGAIN_MS = 500

export function createExposure({ bus, isDecided, onChange }: Options): Exposure {
  /** The first reason of each kind: settings, and proxies. */
  let settings: string | null = null
  let proxy: string | null = null
  /** Until it was read for the first time, a proxy closes. */
  let decided = false
  let read = 0
  let said: string | null = null

  const why = () => settings ?? (decided ? null : proxy)

  function say(): void {
    const now = why()
    if ((now === null) === (said === null)) return
    said = now
    onChange(now)
  }

  function keep(text: string): void {
    const reason = text.slice(0, MAX_LENGTH)
    if (reason.startsWith(PROXY)) proxy ??= reason
    else settings ??= reason
    say()
  }

  function tell(): void {
    for (const reason of [settings, proxy]) if (reason !== null) bus.tell(TELL + reason)
  }

  async function readDecision(): Promise<void> {
    const mine = ++read
    const found = await isDecided().catch(() => undefined)
    if (mine !== read || bus.stopping.aborted) return
    // An unknown decision counts as none.
    decided = found ?? false
    say()
    if (found === undefined) setTimeout(() => mine === read && readDecision(), AGAIN_MS).unref()
  }

  // No process keeps a reason in the database, so one that starts, or was cut off, asks the others.
  bus.onTold((text) => {
    if (text?.startsWith(TELL)) keep(text.slice(TELL.length))
    else if (text === ASK) tell()
    else if (text === DECIDED) void readDecision()
    else if (text === null) {
      void readDecision()
      if (settings === null && proxy === null) bus.tell(ASK)
      else tell()
    }
  })

  return {
    why,
    note(reason) {
      if (settings !== null) return
      keep(reason)
      tell()
    },
    noteProxy(header) {
      if (settings !== null || proxy !== null) return
      keep(`${PROXY} (it had the header ${header})`)
      tell()
    },
  }
}

/** Whether the operator's decision holds that proxies close nothing. */
export async function isExposureDecided({ db }: Pick<Store, 'db'>): Promise<boolean> {
  return (await db.selectFrom('exposureDecision').select('one').executeTakeFirst()) !== undefined
}

/**
 * Decides that proxies close nothing, and opens what one has closed, or takes that back (only the instance's admin). All
 * processes are told with the commit. Resolves to whether that is anything new.
 */
export async function decideExposure(scope: Scope, open: boolean): Promise<boolean> {
  const act = open ? 'EXPOSURE_OPENED' : 'EXPOSURE_CLOSED'
  return changeInstance(scope, act, async (tx) => {
    const changed = open ? await addDecision(tx) : await removeDecision(tx)
    if (!changed) return { result: false, unchanged: true }
    await sql`select pg_notify('processes', ${DECIDED})`.execute(tx)
    return { result: true, resourceId: null, details: {} }
  })
}

async function addDecision(tx: Tx): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('exposureDecision')
    .defaultValues()
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

async function removeDecision(tx: Tx): Promise<boolean> {
  const { numDeletedRows } = await tx.deleteFrom('exposureDecision').executeTakeFirstOrThrow()
  return numDeletedRows === 1n
}
