import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { validate as isUuid } from 'uuid'
import {
  isSealKey,
  noteBoundSince,
  noteSealKeys,
  readBoundSince,
  wasAcceptedBefore,
} from '../../db/operation/seals.ts'
import type { Store } from '../../db/scope.ts'
import type { Keys } from '../../db/seal.ts'

/** The facts about seals that a process keeps, so that the codec opens and seals payloads without any I/O. */
export type Sealer = {
  keys: Keys
  /** Whether this process binds what it seals to the run. */
  binds(): boolean
  /** Whether payloads of this Temporal workflow may be unbound. Asked only about those that are. */
  mayBeUnbound(workflowId: string): Promise<boolean>
  /** Whether another process may have the key that this one lacks. */
  isKey(keyId: string): Promise<boolean>
  /** Logs that a payload was refused, once in a while for each run and reason. */
  note(workflowId: string, reason: string): void
  /** Says that whatever is sealed once and opened again and again, the schedules, is bound. */
  settle(): Promise<void>
  stop(): void
}

/**
 * Other processes learn of the first one that binds in this time; their runs begin with unbound payloads
 * until then, and their firings with those of schedules that the reconciler replaces within minutes.
 */
const NOTICE_MINUTES = 10
const LOOK_EVERY_MS = 15_000

/**
 * Binding begins in two steps, because processes of the release before cannot open what is bound. At first
 * every process only opens it. With `binds` (SEAL_VERSION=2) this one seals that way too, and once all
 * schedules are written anew it notes the time in the database: every process binds as soon as it reads that,
 * and refuses unbound payloads in runs that begin later. A new database has that time from the beginning.
 */
export async function openSealer(options: {
  store: Store
  binds: boolean
  log: Logger
  /** Look for that time every few seconds until it is there. Commands do not live that long. */
  watches?: boolean
}): Promise<Sealer> {
  const { store, log } = options
  await noteSealKeys(store)
  let since = await readBoundSince(store)
  const timer = setInterval(look, LOOK_EVERY_MS).unref()
  if (since !== null || options.watches === false) clearInterval(timer)

  function look(): void {
    readBoundSince(store).then(found, (error) => log.debug({ err: error }, 'the seals could not be read'))
  }

  function found(time: number | null): void {
    if (time === null) return
    since = time
    clearInterval(timer)
  }

  const early = new LRUCache<string, boolean>({ max: 10_000 })
  const keys = new LRUCache<string, boolean>({ max: 100, ttl: LOOK_EVERY_MS })
  const noted = new LRUCache<string, true>({ max: 1_000, ttl: 60_000 })

  return {
    keys: store.keys,
    binds: () => options.binds || since !== null,
    async mayBeUnbound(workflowId) {
      if (since === null) return true
      const slot = readFiringSlot(workflowId)
      if (slot) return Date.parse(slot) < since
      if (!isUuid(workflowId)) return false
      const known = early.get(workflowId) ?? (await wasAcceptedBefore(store, workflowId, since))
      early.set(workflowId, known)
      return known
    },
    async isKey(keyId) {
      const known = keys.get(keyId) ?? (await isSealKey(store, keyId))
      keys.set(keyId, known)
      return known
    },
    note(workflowId, reason) {
      const key = `${workflowId} ${reason}`
      if (noted.has(key)) return
      noted.set(key, true)
      log.warn({ workflowId, reason }, 'a payload in Temporal is refused')
    },
    async settle() {
      if (since !== null || !options.binds) return
      await noteBoundSince(store, NOTICE_MINUTES)
      found(await readBoundSince(store))
    },
    stop: () => clearInterval(timer),
  }
}

const SLOT = /-(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)$/

/** The instant for which a schedule fired, from the id of the Temporal workflow that it started. */
function readFiringSlot(workflowId: string): string | undefined {
  return workflowId.startsWith('schedule:') ? SLOT.exec(workflowId)?.[1] : undefined
}

/** What the payloads of a Temporal workflow are bound to: for a firing its schedule, else the workflow itself. */
export function nameSealed(workflowId: string): string {
  return readFiringSlot(workflowId) ? workflowId.replace(SLOT, '') : workflowId
}
