import type { HostCall } from './host.ts'

/**
 * What a part of the library gets in the sandbox. A part is a function that names nothing of its module: its text
 * is evaluated there. It puts what scripts see on the global object, with `define` and `read`.
 */
export type Kit = {
  /** Calls the host (host.ts): argument and result are JSON. Throws an Error with the message of the host's. */
  host(call: HostCall, argument: unknown): unknown
  /** The values of the bindings that the sources read, by variable without `$`. Read it each time. */
  readonly roots: Record<string, unknown>
  /** The items of the job, undefined if it has none. */
  readonly items: unknown[] | undefined
  /** The item that is being worked on, and its index; in a loop's body those of the iteration; else undefined. */
  readonly item: unknown
  readonly index: number | undefined
  /** Makes a global variable with a value. */
  define(name: string, value: unknown): void
  /** Makes a global variable that is read anew each time. Scripts may give it another value. */
  read(name: string, read: () => unknown): void
  /** Calls the function after `ms` milliseconds. Returns what `cancelTimer` takes. */
  addTimer(call: () => void, ms: number): number
  cancelTimer(id: number): void
}

export type PreludeFunction = (kit: Kit) => void
