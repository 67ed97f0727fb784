import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readAnswers, readTopics } from './cases.ts'
import { compareAll, type Host, type Verdict } from './compare.ts'
import { startMock } from './mock.ts'
import { findSetbacks, readRatchet, writeRatchet } from './ratchet.ts'

const FILE = fileURLToPath(new URL('../../.perdure/n8n/verdicts.json', import.meta.url))
const SHOWN_CHARS = 600

/**
 * Compares the cases whose names begin with one of `wanted` (all if there is none), prints those that differ
 * silently, a table and what is worse than noted, and writes all to a file. Returns whether nothing is worse.
 */
export async function showComparison(host: Host, wanted: string[], note: boolean): Promise<boolean> {
  const topics = readTopics()
  const isWanted = ({ name }: { name: string }) =>
    wanted.length === 0 || wanted.some((part) => name.startsWith(part))
  const cases = topics.flatMap((topic) => topic.cases.filter(isWanted))
  const mock = await startMock()
  const since = performance.now()
  const verdicts = await compareAll(host, mock, cases, readAnswers()).finally(mock.stop)
  for (const verdict of verdicts.filter(({ verdict }) => verdict === 'silent')) printSilent(verdict)
  console.table(
    Object.fromEntries(
      [...topics.map(({ name }) => name), ''].flatMap((topic) => {
        const own = verdicts.filter(({ name }) => name.startsWith(topic === '' ? '' : `${topic}-`))
        return own.length === 0 ? [] : [[topic || 'all', countVerdicts(own)]]
      }),
    ),
  )
  mkdirSync(dirname(FILE), { recursive: true })
  writeFileSync(FILE, `${JSON.stringify(verdicts, null, 1)}\n`)
  const seconds = Math.round((performance.now() - since) / 1_000)
  console.log(`${verdicts.length} cases in ${seconds} s. All of them: ${FILE}`)
  if (note) {
    if (wanted.length > 0) throw new Error('Only a comparison of all cases can be noted')
    writeRatchet(verdicts)
    return true
  }
  const setbacks = findSetbacks(verdicts, readRatchet())
  for (const setback of setbacks) console.log(setback)
  return setbacks.length === 0
}

const shorten = (value: unknown) => {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}...` : text
}

function printSilent({ name, wrong, where, n8n, perdure }: Verdict): void {
  const brief = (side: unknown) => {
    const { nodes: _nodes, headers: _headers, ...answer } = Object(side)
    return shorten(answer)
  }
  console.log(`${name}, ${wrong ? 'wrong with SUCCESS' : 'failed or refused'}: ${where}`)
  console.log(`  n8n      ${brief(n8n)}\n  Perdure  ${brief(perdure)}`)
}

function countVerdicts(verdicts: Verdict[]) {
  const count = (holds: (one: Verdict) => boolean) => verdicts.filter(holds).length
  return {
    cases: verdicts.length,
    equal: count(({ verdict }) => verdict === 'equal'),
    '%': Math.round((count(({ verdict }) => verdict === 'equal') / verdicts.length) * 100),
    reported: count(({ verdict }) => verdict === 'reported'),
    silent: count(({ verdict }) => verdict === 'silent'),
    'of these with SUCCESS': count(({ wrong }) => wrong),
    'equal, though reported': count(({ verdict, problems }) => verdict === 'equal' && problems.length > 0),
    'equal, but not inside': count(({ verdict, inside }) => verdict === 'equal' && inside.length > 0),
  }
}
