import type { Work } from '../../workflows/turns.ts'

/** Does all of the work without a pause. */
export function atOnce<T>(work: Work<T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
  }
}
