import { createHttpClient, type HttpClient } from '../http/http.ts'
import { HttpError } from '../http/httperror.ts'
import { createDial, type Dial } from './dial.ts'
import { createEgress, type EgressOptions } from './egress.ts'
import type { EgressRules } from './egressrules.ts'

/** The ways out of the service, by the egress rules that hold for a team. */
export type Outside = { http: HttpClient; dial: Dial }

/** The one guarded door to the world: everything whose target a user can choose goes through it. */
export type Outsides = {
  /** The ways out for what a team does, by the rules that hold for it now. Ask anew for each call. */
  forTeam(teamId: string): Promise<Outside>
  /** Closes every connection of the HTTP clients; requests under way fail. */
  close(): Promise<void>
}

/** The HTTP client of nodes that are no attempts: they reach nothing. */
export const NOWHERE: HttpClient = {
  request: async () => {
    throw new HttpError('refused-address', 'only attempts of nodes may send requests')
  },
  close: async () => {},
}

/**
 * Opens the ways out of a process. `findRules` returns what the instance's admin has set for a team, if anything: it
 * is added to the options, and what either denies is denied.
 */
export function createOutsides(
  options: EgressOptions,
  findRules: (teamId: string) => Promise<EgressRules | undefined> = async () => undefined,
): Outsides {
  const usual = openOutside(options)
  const ofTeams = new Map<string, ReturnType<typeof openOutside>>()
  return {
    async forTeam(teamId) {
      const rules = await findRules(teamId)
      const known = ofTeams.get(teamId)
      if (rules) {
        const outside = known ?? openOutside(options)
        ofTeams.set(teamId, outside)
        outside.follow(rules)
        return outside
      }
      // Calls that began under rules of the team may still send requests.
      known?.follow(NO_RULES)
      ofTeams.delete(teamId)
      return usual
    },
    async close() {
      await Promise.all([usual, ...ofTeams.values()].map(({ http }) => http.close()))
    },
  }
}

const NO_RULES: EgressRules = { allow: [], deny: [] }

function openOutside(options: EgressOptions) {
  let key = JSON.stringify(NO_RULES)
  let egress = createEgress(options)
  const findEgress = () => egress
  return {
    http: createHttpClient(options, findEgress),
    dial: createDial(findEgress),
    /** Has these rules hold, besides those of the options, for every connection from now on. */
    follow({ allow, deny }: EgressRules) {
      const next = JSON.stringify({ allow, deny })
      if (next === key) return
      key = next
      egress = createEgress({
        ...options,
        allow: [...options.allow, ...allow],
        deny: [...(options.deny ?? []), ...deny],
      })
    },
  }
}
