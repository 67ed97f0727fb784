import { createFairQueue } from './fairqueue.ts'

/**
 * The bytes that values in flight may take in this process, all together. The caller that brings in a value of
 * unknown size takes a share for the most it can have, and gives back what it turns out not to need. A team never
 * holds more than half, whether others wait or not, and waiting teams are served in turn: a team that waits at its
 * half does not hold up the others.
 */
export type Budget = {
  /**
   * A share, as soon as there is room. Throws the signal's reason once that is aborted, and a RangeError for a
   * share that could never be had.
   */
  take(team: string, bytes: number, signal: AbortSignal): Promise<Share>
  read(): BudgetReading
}

/** `peak` is the most that was ever held at once; `waiting` is the number of shares that are waited for. */
export type BudgetReading = { most: number; held: number; peak: number; waiting: number }

export type Share = {
  /** Gives back all but this many bytes. */
  shrink(bytes: number): void
  /** Takes `bytes` more if the team may have them and no other has to wait for that; else returns false. */
  grow(bytes: number): boolean
  /** Gives back what is left. */
  release(): void
}

type Waiter = { team: string; bytes: number; grant: (share: Share) => void }

export function createBudget(most: number): Budget {
  const half = Math.floor(most / 2)
  const heldBy = new Map<string, number>()
  const queue = createFairQueue<Waiter>()
  let held = 0
  let peak = 0
  let waiting = 0

  function hold(team: string, bytes: number): void {
    held += bytes
    peak = Math.max(peak, held)
    const now = (heldBy.get(team) ?? 0) + bytes
    if (now === 0) heldBy.delete(team)
    else heldBy.set(team, now)
  }

  function serve(): void {
    let full = false
    // If a share that its team may have does not fit, no other goes before it: small ones in between would
    // keep a large one waiting for ever.
    const may = (team: string, { bytes }: Waiter) => {
      if (full || (heldBy.get(team) ?? 0) + bytes > half) return false
      full = held + bytes > most
      return !full
    }
    for (let next = queue.take(may); next; next = queue.take(may)) {
      waiting--
      hold(next.team, next.bytes)
      next.grant(createShare(next))
    }
  }

  function createShare({ team, bytes }: Waiter): Share {
    let left = bytes
    const shrink = (to: number) => {
      if (to >= left) return
      hold(team, to - left)
      left = to
      serve()
    }
    const grow = (more: number) => {
      const may = (heldBy.get(team) ?? 0) + more <= half && held + more <= most
      if (may) {
        hold(team, more)
        left += more
      }
      return may
    }
    return { shrink, grow, release: () => shrink(0) }
  }

  return {
    read: () => ({ most, held, peak, waiting }),
    async take(team, bytes, signal) {
      signal.throwIfAborted()
      if (bytes > half) {
        throw new RangeError(`${bytes} bytes are more than half of the budget of ${most} bytes`)
      }
      return new Promise((resolve, reject) => {
        const waiter: Waiter = { team, bytes, grant }
        function grant(share: Share): void {
          signal.removeEventListener('abort', giveUp)
          resolve(share)
        }
        function giveUp(): void {
          waiting--
          queue.remove(team, waiter)
          reject(signal.reason)
          // What waited behind it may fit now.
          serve()
        }
        signal.addEventListener('abort', giveUp, { once: true })
        waiting++
        queue.add(team, waiter)
        serve()
      })
    },
  }
}
