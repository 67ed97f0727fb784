/** The limits of a node's JavaScript: milliseconds of processor time, and MB of memory in the sandbox. */
export const DEFAULT_CODE_MS = 10_000
export const MAX_CODE_MS = 60_000
export const DEFAULT_MEMORY_MB = 64
export const MIN_MEMORY_MB = 8
export const MAX_MEMORY_MB = 256
