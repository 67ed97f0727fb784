import { createPlaces, type Places } from './places.ts'
import { createReturns, type Returns } from './returns.ts'

/**
 * The parts of a worker that the teams share: its slots for attempts, for those in the queue of calls to models, and
 * for segments, and places for those of the segments that read large values. The processes are shared by the
 * evaluator itself; `processes` only says when segments that got none may come again.
 */
export type WorkerPlaces = {
  attempts: Places
  models: Places
  segments: Places
  large: Places
  processes: Returns
}

/**
 * A segment keeps what it reads, which may be tens of MB, until it ends. Slots are many, because most segments are short
 * and small: so many large ones would not fit into the process.
 */
const LARGE_SEGMENTS = 80

/**
 * The tasks of a team that come again without getting a place are less than 20 a second, all together: each of them
 * costs Temporal and the worker some work.
 */
export function createWorkerPlaces(slots: {
  attempts: number
  models: number
  segments: number
}): WorkerPlaces {
  return {
    attempts: createPlaces(slots.attempts, createReturns(8)),
    models: createPlaces(slots.models, createReturns(8)),
    segments: createPlaces(slots.segments, createReturns(5)),
    large: createPlaces(Math.min(LARGE_SEGMENTS, slots.segments), createReturns(5)),
    processes: createReturns(5),
  }
}
