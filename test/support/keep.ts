import { afterAll } from 'vitest'

/** Waits for something that all tests of a file use, and stops it after the last test. */
export async function keep<T extends { stop(): Promise<unknown> }>(starting: Promise<T>): Promise<T> {
  const kept = await starting
  afterAll(() => kept.stop())
  return kept
}
