import type { DetectorPool } from '../guardrails/pool.ts'
import type { JudgeDeps } from './judge.ts'

/** That of guardrails by default. */
const SENSITIVITY = 0.7
const KNOWN = 100

/**
 * Looks for injections in the threads of `pool`. What cannot be looked at in time is flagged: nobody knows that it is
 * clean. The last texts are remembered, as each is asked about once for every dimension.
 */
export function createInjectionCheck(pool: DetectorPool): JudgeDeps['isInjection'] {
  const known = new Map<string, Promise<boolean>>()
  const look = async (team: string, text: string) => {
    const job = { text, detection: { PROMPT_INJECTION: { sensitivity: SENSITIVITY } } }
    const [result] = await pool.hold(team, text.length, () => pool.run({ team, workflow: team }, job))
    return result?.findings === undefined || result.findings.length > 0
  }
  return (team, text) => {
    const key = `${team} ${text}`
    const found = known.get(key)
    if (found) return found
    const looking = look(team, text)
    looking.catch(() => known.delete(key))
    known.set(key, looking)
    if (known.size > KNOWN) known.delete(known.keys().next().value!)
    return looking
  }
}
