import type { Measures, Size } from '../../graph/place.ts'

/** On the canvas, a loop's room above and around what it holds. */
export const LOOP_HEAD = 56
export const LOOP_PAD = 28
export const EMPTY_LOOP: Size = { width: 260, height: 132 }

/** How the canvas places nodes. Authors may have drawn smaller ones, so theirs are stretched rather than given up. */
export const CANVAS: Omit<Measures<never>, 'sizeOf'> = {
  gap: { width: 84, height: 36 },
  lane: 36,
  label: 48,
  apart: -14,
  stretches: [1, 1.25, 1.5, 2],
  // To the right there is room for what a node leads to.
  loop: { head: LOOP_HEAD, pad: LOOP_PAD, right: 2 * LOOP_PAD, least: EMPTY_LOOP, bends: false },
}
