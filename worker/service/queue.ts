import type { Logger } from 'pino'

type LoopOptions = {
  /** A sentence's subject for the log, such as 'the notices that are due'. */
  what: string
  /** How long the loop rests after a run, unless it is woken. */
  everyMs: number
  log: Logger
  /** Tells the loop to run at once, such as `bus.onErrands`. Returns the function that ends this. */
  wokenBy?: (wake: () => void) => () => void
  /** Whether it rests before its first run too. */
  restsFirst?: boolean
  /**
   * Does what is due. If it resolves to true there is more, and it is called again at once. An error is logged, and it is
   * called again after the rest.
   */
  run: (signal: AbortSignal) => Promise<unknown>
}

type Loop = {
  /** Has `run` called at once. Resolves when a call that began afterwards has ended, and left nothing to do. */
  wake(): Promise<void>
  /** Aborts the signal of `run`, and waits for its end. */
  stop(): Promise<void>
}

/** Calls `run` whenever it is woken or has rested, one call at a time, until it is stopped. */
export function startLoop({ what, everyMs, log, wokenBy, restsFirst, run }: LoopOptions): Loop {
  const stopping = new AbortController()
  const { signal } = stopping
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let more = false

  async function wake(): Promise<void> {
    if (signal.aborted) return running
    clearTimeout(timer)
    more = true
    running ??= Promise.resolve().then(runAll)
    return running
  }

  function rest(): void {
    if (!signal.aborted) timer = setTimeout(wake, everyMs)
  }

  async function runAll(): Promise<void> {
    while (more && !signal.aborted) {
      more = false
      try {
        if ((await run(signal)) === true) more = true
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error }, `${what} could not be worked on; they are tried again`)
      }
    }
    // In the same turn as the look at `more`, so that no call of `wake` comes between.
    running = undefined
    rest()
  }

  const leave = wokenBy?.(wake)
  if (restsFirst) rest()
  else void wake()
  return {
    wake,
    async stop() {
      stopping.abort()
      clearTimeout(timer)
      leave?.()
      await running
    },
  }
}

type Item = { id: string; teamId?: string | null }

/** The room in a queue: how many items it may take, and how many it holds of each team. */
type Room = {
  limit: number
  teams: Map<string, number>
  /** The teams of which it holds as many as it may. */
  full: string[]
}

type QueueOptions<T> = Pick<LoopOptions, 'what' | 'everyMs' | 'log' | 'wokenBy'> & {
  /** How many items it holds at most; a function is asked before each claim. */
  atOnce: number | (() => number)
  /** How many of them are of one team at most. `claim` sees to it, by what its room says of teams. */
  ofTeam?: number
  /** Is done before each look for items, whether there is room or not. */
  prepare?: (signal: AbortSignal) => Promise<unknown>
  /** Claims items that are due, `limit` at most; none if there are no more. */
  claim: (room: Room, held: T[]) => Promise<T[]>
  /** Works on an item, until it is settled or given back. Once `signal` is aborted it gives the item back. */
  work: (item: T, signal: AbortSignal) => Promise<unknown>
  /** Whether the end of an item may make others due, because limits of the database held them back. */
  freesOthers?: boolean
  /** How long items under way may take when the queue stops, before they are broken off. */
  graceMs?: number
}

type Queue<T> = Loop & {
  /** The items under way. */
  held(): T[]
}

/**
 * Claims items when it is woken or has rested, until none is due or its room is taken, and works on each. If an item had
 * to wait for room, it is claimed as soon as another has ended. Stopping ends the claims first, then waits for the items.
 */
export function startQueue<T extends Item>(options: QueueOptions<T>): Queue<T> {
  const { what, everyMs, log, wokenBy, atOnce, ofTeam = Number.POSITIVE_INFINITY } = options
  const { freesOthers = false, graceMs = 0 } = options
  const breakingOff = new AbortController()
  const underWay = new Map<T, Promise<void>>()
  let wasFull = false
  let fullTeams: string[] = []

  function readRoom(held: T[]): Room {
    const teams = new Map<string, number>()
    for (const { teamId } of held) if (teamId) teams.set(teamId, (teams.get(teamId) ?? 0) + 1)
    const full = [...teams].filter(([, count]) => count >= ofTeam).map(([teamId]) => teamId)
    return { limit: (typeof atOnce === 'number' ? atOnce : atOnce()) - held.length, teams, full }
  }

  async function fill(signal: AbortSignal): Promise<boolean> {
    await options.prepare?.(signal)
    if (signal.aborted) return false
    const held = [...underWay.keys()]
    const room = readRoom(held)
    wasFull = room.limit <= 0
    fullTeams = room.full
    if (wasFull) return false
    const items = await options.claim(room, held)
    for (const item of items) begin(item)
    return items.length > 0
  }

  function begin(item: T): void {
    const done = (async () => options.work(item, breakingOff.signal))()
      .catch((error) => log.warn({ err: error, id: item.id }, `one of ${what} could not be worked on`))
      .then(() => {
        underWay.delete(item)
        const madeRoom = wasFull || (item.teamId && fullTeams.includes(item.teamId))
        if (madeRoom || freesOthers) void loop.wake()
      })
    underWay.set(item, done)
  }

  const loop = startLoop({ what, everyMs, log, ...(wokenBy ? { wokenBy } : {}), run: fill })
  return {
    wake: loop.wake,
    held: () => [...underWay.keys()],
    async stop() {
      if (graceMs === 0) breakingOff.abort()
      const claimed = loop.stop()
      const late = setTimeout(() => breakingOff.abort(), graceMs)
      await claimed
      await Promise.all(underWay.values())
      clearTimeout(late)
    },
  }
}
