import { checkText } from '../guardrails/check.ts'
import type { DetectorPool } from '../guardrails/pool.ts'
import type { JudgeDeps } from './judge.ts'

/** That of guardrails by default. */
const SENSITIVITY = 0.7
const KNOWN = 100

/**
 * Looks for injections in the threads of `pool`. A text that cannot be looked at in time is flagged, as it
 * may have one. The last texts are remembered, as each is asked about once for every dimension.
 */
export function createInjectionCheck(pool: DetectorPool): JudgeDeps['isInjection'] {
  const known = new Map<string, Promise<boolean>>()
  const look = async (team: string, text: string) => {
    const detection = { PROMPT_INJECTION: { sensitivity: SENSITIVITY } }
    const request = { team, workflow: team, text, detection, onViolation: 'BLOCKED' } as const
    return !(await checkText({ pool, onError: 'closed' }, request)).passed
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
