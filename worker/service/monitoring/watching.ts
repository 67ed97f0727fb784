import type { Logger } from 'pino'
import { watchTeams } from '../../../activities/monitoring/alerts/watch.ts'
import type { Store } from '../../../db/scope.ts'
import { startLoop } from '../queue.ts'

const EVERY_MS = 15_000

/**
 * Evaluates the hours of the teams that want alerts, a minute after each. Returns the function that ends it; an hour that it
 * is at is given back.
 */
export function startWatching(
  { store, log }: { store: Store; log: Logger },
  { everyMs = EVERY_MS } = {},
): () => Promise<void> {
  const run = (signal: AbortSignal) => watchTeams({ store, log }, signal)
  return startLoop({ what: 'the hours of teams that are watched', everyMs, log, run }).stop
}
