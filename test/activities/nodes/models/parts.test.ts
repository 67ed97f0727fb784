import fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupTexts, splitText } from '../../../../activities/nodes/models/parts.ts'

const bare = (text: string) => text.replace(/\s+/gu, '')

test('parts have at most that size, are not empty, and lose nothing but spaces', () => {
  const pieces = fc.array(fc.constantFrom('a', 'word ', 'End. ', '\n', '\n\n', '😀', ' '), { maxLength: 400 })
  fc.assert(
    fc.property(pieces, fc.integer({ min: 2, max: 60 }), (list, size) => {
      const text = list.join('')
      const parts = splitText(text, size)
      expect(parts.every((part) => part.length > 0 && part.length <= size && part.isWellFormed())).toBe(true)
      expect(bare(parts.join(''))).toBe(bare(text))
    }),
  )
})

test('a text is cut at the best border of the second half of a part', () => {
  expect(splitText('One two. Three.\n\nFour five. Six seven.', 24)).toEqual([
    'One two. Three.',
    'Four five. Six seven.',
  ])
  expect(splitText('One two. Three four five six.', 14)).toEqual(['One two.', 'Three four', 'five six.'])
  expect(splitText('abcdefghij', 4)).toEqual(['abcd', 'efgh', 'ij'])
  expect(splitText('   ')).toEqual([])
})

test('groups of summaries keep their order, and are always fewer than the summaries', () => {
  const texts = fc.array(fc.string({ minLength: 1, maxLength: 30 }), { minLength: 2, maxLength: 60 })
  fc.assert(
    fc.property(texts, (list) => {
      const groups = groupTexts(list, 40)
      expect(groups.flat()).toEqual(list)
      expect(groups.length).toBeLessThanOrEqual(list.length / 2)
    }),
  )
})
