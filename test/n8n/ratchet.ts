import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Verdict } from './compare.ts'

/**
 * What the import is held to: the cases that have been equal once stay so, and no more than `silent` cases differ
 * without a word. `npm run n8n -- note` writes it anew.
 */
export type Ratchet = { silent: string[]; equal: string[] }

const FILE = fileURLToPath(new URL('./noted.json', import.meta.url))

export const readRatchet = (): Ratchet => JSON.parse(readFileSync(FILE, 'utf8'))

const namesOf = (verdicts: Verdict[], wanted: Verdict['verdict']) =>
  verdicts.filter(({ verdict }) => verdict === wanted).map(({ name }) => name)

export function writeRatchet(verdicts: Verdict[]): void {
  const noted: Ratchet = { silent: namesOf(verdicts, 'silent'), equal: namesOf(verdicts, 'equal') }
  writeFileSync(FILE, `${JSON.stringify(noted, null, 2)}\n`)
}

/** What is worse than what is noted, as sentences; nothing if all is as well as it was. */
export function findSetbacks(verdicts: Verdict[], noted: Ratchet): string[] {
  const equal = new Set(noted.equal)
  const lost = verdicts.filter(({ name, verdict }) => equal.has(name) && verdict !== 'equal')
  const silent = namesOf(verdicts, 'silent')
  const known = new Set(noted.silent)
  const fresh = silent.filter((name) => !known.has(name) && !equal.has(name))
  return [
    ...lost.map(({ name, verdict, where }) => `${name} was equal and is ${verdict}: ${where}`),
    ...fresh.map((name) => `${name} differs, and nothing says so`),
  ]
}
