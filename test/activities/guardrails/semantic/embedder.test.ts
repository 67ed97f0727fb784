import { expect, test } from 'vitest'
import { compareRows, loadEmbedder } from '../../../../activities/guardrails/semantic/embedder.ts'

test('of what is too long for a word only the beginning is read: it would take many times as long', async () => {
  const embed = await loadEmbedder()
  const code = Buffer.from('Nothing of this is a word to the model. '.repeat(5)).toString('base64')
  const rows = await embed([`Please read ${code}`, `Please read ${code.slice(0, 40)}`, 'Please read this.'])
  expect(compareRows(rows, 0, rows, 1)).toBeCloseTo(1, 3)
  expect(compareRows(rows, 0, rows, 2)).toBeLessThan(0.99)
})
