import type { CallToolResult } from '@modelcontextprotocol/server'
import { readFault } from '../http/errors.ts'

/** More characters of JSON are for no model: they are read over HTTP. */
const MAX_CHARACTERS = 1_000_000

/** What a tool says that has done its work: as JSON for models, and as an object for programs. */
export function tell(value: Record<string, unknown>): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value }
}

/** What a tool says that could not do it, so that the model can do something about it. */
export function refuseCall(message: string, more?: Record<string, unknown>): CallToolResult {
  const content = [{ type: 'text' as const, text: message }]
  return { isError: true, content, ...(more ? { structuredContent: more } : {}) }
}

/** Whether a text is too large to be a tool's answer. */
export function isTooLarge(text: string): boolean {
  return text.length > MAX_CHARACTERS
}

/** The answer of a tool to something thrown; undefined for a fault of the service itself. */
export function refuseThrown(thrown: unknown): CallToolResult | undefined {
  const fault = readFault(thrown)
  return fault && refuseCall(writeRefusal(fault.message, fault.problems, fault.retryAfter))
}

/** A message with each problem in a line of its own, and when to try again, in seconds. */
export function writeRefusal(
  message: string,
  problems: readonly { path: string; message: string }[] = [],
  retryAfter?: number,
): string {
  const lines = problems.map((problem) => `- ${problem.path}: ${problem.message}`)
  const later = retryAfter === undefined ? [] : [`Try again in ${Math.max(1, Math.ceil(retryAfter))} s.`]
  return [message, ...lines, ...later].join('\n')
}
