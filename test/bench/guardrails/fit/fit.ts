import { parseArgs } from 'node:util'

/** Each line: what is fitted, and the function that reads the data of a folder and writes the weights. */
const fits: Record<string, () => Promise<(data: string) => Promise<void>>> = {
  content: async () => (await import('./content/content.ts')).fitContent,
  injection: async () => (await import('./injection/fit.ts')).fitInjection,
  semantic: async () => (await import('./semantic/fit.ts')).fitSemantic,
}

const { values, positionals } = parseArgs({ options: { data: { type: 'string' } }, allowPositionals: true })
const load = fits[positionals[0] ?? '']
if (!load || !values.data) {
  console.error(`Usage: npm run fit -- ${Object.keys(fits).join(' | ')} --data DIR`)
  process.exit(2)
}
const fitWeights = await load()
await fitWeights(values.data)
