import fc from 'fast-check'
import { expect, test } from 'vitest'
import { replaceSpans, resolveOverlaps } from '../../../db/detection/spans.ts'

const found = (start: number, end: number, kind = 'a') => ({ start, end, kind, confidence: 1, rule: 'test' })

test('of findings that overlap the longest stays, then the kind that comes first, then the first', () => {
  expect(resolveOverlaps([found(0, 5), found(3, 12), found(12, 14)])).toEqual([found(3, 12), found(12, 14)])
  expect(resolveOverlaps([found(0, 5, 'b'), found(0, 5, 'a')], ['a', 'b'])).toEqual([found(0, 5, 'a')])
  expect(resolveOverlaps([found(3, 8), found(0, 5)])).toEqual([found(0, 5)])
  expect(resolveOverlaps([found(2, 2), found(5_000, 5_004)])).toEqual([found(5_000, 5_004)])
})

test('what stays does not overlap, is sorted, and leaves nothing out that would still fit', () => {
  const spans = fc.array(
    fc.tuple(fc.nat(60), fc.integer({ min: 1, max: 15 })).map(([start, size]) => found(start, start + size)),
  )
  fc.assert(
    fc.property(spans, (findings) => {
      const kept = resolveOverlaps(findings)
      const apart = kept.every((one, i) => i === 0 || kept[i - 1]!.end <= one.start)
      const whole = findings.every((one) => kept.some(({ start, end }) => start < one.end && one.start < end))
      return apart && whole
    }),
  )
})

test('spans are replaced where they stand', () => {
  expect(replaceSpans('😀 ab cd', [found(3, 5), found(6, 8)], ({ start }) => `<${start}>`)).toBe('😀 <3> <6>')
  expect(replaceSpans('ab', [], () => 'x')).toBe('ab')
})
