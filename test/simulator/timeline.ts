/** Time that passes only when nothing is left to do at the moment. All that will happen stands in it. */
export type Timeline = {
  now(): number
  after(ms: number, happen: () => void | Promise<void>): void
  /** Lets the next thing happen. False if there is none. */
  step(): Promise<boolean>
  /** Lets all happen that happens within the next `ms` milliseconds. */
  pause(ms: number): Promise<void>
}

/** Begins at `start`, in epoch milliseconds. What happens at the same time happens in the order of `after`. */
export function createTimeline(start: number): Timeline {
  let clock = start
  let count = 0
  let events: { at: number; order: number; happen: () => void | Promise<void> }[] = []

  function findNext() {
    let next = events[0]
    for (const event of events) {
      if (event.at < next!.at || (event.at === next!.at && event.order < next!.order)) next = event
    }
    return next
  }

  async function step(): Promise<boolean> {
    const next = findNext()
    if (!next) return false
    events = events.filter((event) => event !== next)
    clock = Math.max(clock, next.at)
    await next.happen()
    return true
  }

  return {
    now: () => clock,
    after(ms, happen) {
      events.push({ at: clock + ms, order: count++, happen })
    },
    step,
    async pause(ms) {
      const until = clock + ms
      for (let next = findNext(); next && next.at <= until; next = findNext()) await step()
      clock = until
    },
  }
}
