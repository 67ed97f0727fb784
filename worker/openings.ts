import type { Config } from './config.ts'

const FOR_NOW = 'until a request comes through a proxy'

/**
 * The parts that are open to strangers and to workflows, in words, with the setting that opened each. Operators see
 * them at each start.
 */
export function listOpenings({ signUp, openByDefault, egress }: Config): string[] {
  const openings: string[] = []
  if (signUp === 'open')
    openings.push(`sign-up for everybody (${openByDefault.signUp ? FOR_NOW : 'SIGNUP=open'})`)
  if (egress.allow.includes('0.0.0.0/0')) openings.push('all addresses for workflows (EGRESS=any)')
  else {
    if (openByDefault.loopback) openings.push(`this machine's loopback addresses for workflows (${FOR_NOW})`)
    if (egress.allow.length > 0) openings.push(`${egress.allow.join(', ')} for workflows (EGRESS_ALLOW)`)
  }
  return openings
}
