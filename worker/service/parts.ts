import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { tellIfSlow } from './stopping.ts'

/** Ends a part of a process. Once `hurry` is aborted, what is under way is put down at once. */
type StopPart = (hurry: AbortSignal) => Promise<unknown> | unknown

/** What a process runs: how it starts, and how it stops. */
export type Part = {
  name: string
  start: () => Promise<StopPart> | StopPart
  /**
   * It is told to stop before all others, and given this long in its turn: what it is at may take longer, and is done again
   * later.
   */
  patienceMs?: number
}

/** Starts parts in order. Returns the function that stops them, the last one first; an error of one keeps none running. */
export async function startParts(parts: Part[], log: Logger): Promise<(hurry: AbortSignal) => Promise<void>> {
  const started: (Part & { stop: (hurry: AbortSignal) => Promise<unknown> })[] = []
  for (const part of parts) {
    const stop = await part.start()
    started.push({
      ...part,
      stop: async (hurry) => {
        try {
          await stop(hurry)
        } catch (error) {
          log.error({ err: error }, `${part.name} could not be stopped in order`)
        }
      },
    })
  }
  return async (hurry) => {
    const early = new Map(
      started.filter(({ patienceMs }) => patienceMs !== undefined).map((part) => [part, part.stop(hurry)]),
    )
    for (const part of started.toReversed()) {
      const stopped = early.get(part)
      await (stopped
        ? Promise.race([stopped, sleep(part.patienceMs)])
        : tellIfSlow(log, part.name, part.stop(hurry)))
    }
  }
}
