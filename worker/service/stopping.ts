import type { Logger } from 'pino'

/**
 * The wishes of a user who stops this process. `asked`: it stops. `quick`: the user waits for that. `hurry`: work under
 * way is put down at once.
 */
export type Stopping = Record<'asked' | 'quick' | 'hurry', AbortSignal>

/**
 * One signal may come several times, from a terminal, npm and the process that guards a worker. Only a later one means
 * that the user does not want to wait.
 */
const SAME_SIGNAL_MS = 2_000

/**
 * Listens to SIGTERM, which lets calls end that would be paid for again, however long they may take, and to the signals
 * of a user who waits: then `hurry` comes `graceMs` later. A second signal is in a hurry at once.
 */
export function listenToSignals(graceMs: number, ofWaiting: NodeJS.Signals[] = ['SIGINT']): Stopping {
  const [asked, quick, hurry] = [new AbortController(), new AbortController(), new AbortController()]
  let since: number | undefined
  const end = (signal: NodeJS.Signals) => {
    since ??= performance.now()
    const again = performance.now() - since > SAME_SIGNAL_MS
    if (again || ofWaiting.includes(signal)) {
      quick.abort()
      setTimeout(() => hurry.abort(), again ? 0 : graceMs).unref()
    }
    asked.abort()
  }
  for (const signal of ['SIGTERM', ...ofWaiting] as const) process.on(signal, end)
  return { asked: asked.signal, quick: quick.signal, hurry: hurry.signal }
}

export function onAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

const SLOW_MS = 2_000

/** Waits for `work` while a process stops, and logs that it does if that takes long. */
export async function tellIfSlow<T>(log: Logger, what: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => log.info(`the stop waits for ${what}`), SLOW_MS)
  try {
    return await work
  } finally {
    clearTimeout(timer)
  }
}
