import { invalidConfig } from './kit/failure.ts'
import type { NodeRunner } from './kit/node.ts'

const MAX_WAIT_MS = 366 * 86_400_000
const ISO_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})$/

/** WAIT: passes its input on when the time has come; at once if the time is in the past. */
export const runWait: NodeRunner = async ({ config, input, bindings, evaluator }) => {
  const now = Date.now()
  if (config.durationMs !== undefined) {
    const duration = await evaluator.render(config.durationMs, bindings)
    return { output: input, until: now + readDuration(duration) }
  }
  const until = readInstant(await evaluator.render(config.until, bindings))
  if (until - now > MAX_WAIT_MS) throw invalidConfig('until', 'must be at most 366 days away')
  return { output: input, until: Math.max(until, now) }
}

// A string of digits counts as a number: queries, headers and mixed templates give strings.
function readDuration(value: unknown): number {
  const duration = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  if (typeof duration !== 'number' || !Number.isFinite(duration)) {
    throw invalidConfig('durationMs', `must be a number of milliseconds, not ${show(value)}`)
  }
  if (duration < 0) throw invalidConfig('durationMs', `must not be negative: ${duration}`)
  if (duration > MAX_WAIT_MS) throw invalidConfig('durationMs', 'must be at most 366 days')
  return Math.round(duration)
}

function readInstant(value: unknown): number {
  const instant = typeof value === 'string' && ISO_TIME.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isNaN(instant)) {
    throw invalidConfig('until', `must be an ISO 8601 time with its zone, not ${show(value)}`)
  }
  return instant
}

function show(value: unknown): string {
  if (typeof value !== 'string')
    return value === null || typeof value === 'number' ? String(value) : typeof value
  return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}...` : value)
}
