import { createDial, type Dial } from './dial.ts'
import type { EgressOptions } from './egress.ts'
import { createHttpClient, type HttpClient } from './http.ts'
import { HttpError } from './httperror.ts'

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

/** Opens the ways out of a process. */
export function createOutsides(options: EgressOptions): Outsides {
  const usual = { http: createHttpClient(options), dial: createDial(options) }
  return { forTeam: async () => usual, close: usual.http.close }
}
