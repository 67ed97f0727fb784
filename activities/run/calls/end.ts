import type { Context } from '@temporalio/activity'

/** The end of an attempt before its call has ended. */
export type AttemptEnd = {
  signal: AbortSignal
  /**
   * Once `signal` is aborted. STOP: this process stops. LOST: the attempt is over for Temporal, which has lost sight
   * of it. CANCEL: its result is not wanted.
   */
  why(): 'STOP' | 'LOST' | 'CANCEL'
  /** The attempt is over. */
  leave(): void
}

/** Watches for the end of an attempt, which comes from Temporal, or from this process by `putDown`. */
export function watchEnd(activity: Context, putDown: AbortSignal | undefined): AttemptEnd {
  const { cancellationSignal } = activity
  const ending = new AbortController()
  const end = ({ reason }: AbortSignal) => ending.abort(reason)
  const sources = [cancellationSignal, ...(putDown ? [putDown] : [])]
  const leaves = sources.map((source) => {
    const listener = () => end(source)
    if (source.aborted) listener()
    source.addEventListener('abort', listener, { once: true })
    return () => source.removeEventListener('abort', listener)
  })
  return {
    signal: ending.signal,
    why() {
      const { notFound, timedOut, workerShutdown } = activity.cancellationDetails ?? {}
      if (workerShutdown || !cancellationSignal.aborted) return 'STOP'
      return notFound || timedOut ? 'LOST' : 'CANCEL'
    },
    leave() {
      for (const leave of leaves) leave()
    },
  }
}
