import type { Bindings } from '../../activities/expressions/bindings.ts'
import { createEvaluator } from '../../activities/expressions/evaluator.ts'

const ROUNDS = 50
const ITEMS = 10_000

const CASES: [name: string, text: string][] = [
  ['JSONata, a path in place', '{{ $input.name }}'],
  ['JSONata, light, in place', '{{ $uppercase($input.name) & "!" }}'],
  ['JSONata, in a process', '{{ $map([1..3], function($n) { $n * $input.n }) }}'],
  ['JavaScript, a path in place', '={{ $json.name }}'],
  ['JavaScript, in the sandbox', '={{ $json.name.toUpperCase() + "!" }}'],
  ["JavaScript, with n8n's methods", '={{ $json.name.toTitleCase() }}'],
  ['JavaScript, with dates', '={{ $now.plus({ days: $json.n }).toISODate() }}'],
]

/** What an expression costs, alone and for each of many items: in JSONata and in JavaScript, in place and not. */
export async function measureExpressions(): Promise<void> {
  const evaluator = createEvaluator()
  const own = evaluator.under({ rules: 2, strict: false })
  const input = { name: 'ada lovelace', n: 3 }
  const execution = { id: 'e', workflowId: 'w', timezone: 'Europe/Berlin' }
  const bindings: Bindings = { input, nodes: {}, trigger: {}, vars: {}, execution }
  const items = Array.from({ length: ITEMS }, (_, n) => ({ ...input, n }))
  console.log(`expression${' '.repeat(26)}one (ms)   ${ITEMS} items (ms)`)
  try {
    for (const [name, text] of CASES) {
      await own.render(text, bindings)
      const began = performance.now()
      for (let i = 0; i < ROUNDS; i++) await own.render(text, bindings)
      const one = (performance.now() - began) / ROUNDS
      const each = text.replaceAll('$input', '$item')
      const before = performance.now()
      await own.map(items, each, bindings)
      const all = performance.now() - before
      console.log(`${name.padEnd(36)}${one.toFixed(3).padStart(8)}${all.toFixed(0).padStart(12)}`)
    }
  } finally {
    await evaluator.close()
  }
}
