import type { Sentence } from './tokens.ts'

/** A stretch of whole sentences that is judged as one: places in the list of tokens, and its first and last sentence. */
export type Window = Sentence & { first: number; last: number }

const LONGEST = 40
const STEP = 10

/**
 * Stretches of at most 40 tokens (one sentence is never longer), each as many sentences as fit; the next one begins at
 * a sentence at least 10 tokens further on, so that a token is in five at most. A short text is one window.
 */
export function listWindows(sentences: readonly Sentence[]): Window[] {
  const windows: Window[] = []
  let last = -Infinity
  let end = 0
  for (const [index, { from }] of sentences.entries()) {
    if (from < last + STEP) continue
    while (end < sentences.length && (end <= index || sentences[end]!.to - from <= LONGEST)) end++
    const to = sentences[end - 1]!.to
    if (windows.at(-1)?.to !== to || windows.length === 0)
      windows.push({ from, to, first: index, last: end - 1 })
    last = from
  }
  return windows
}
