import { createContext, useContext } from 'react'
import type { User } from './data.ts'

export type Role = User['teams'][number]['role']

const RANK: Role[] = ['VIEWER', 'OPERATOR', 'BUILDER', 'ADMIN']

/** Whether a role includes what `least` may: for what to show; the API decides. */
function covers(role: Role | null, least: Role): boolean {
  return role !== null && RANK.indexOf(role) >= RANK.indexOf(least)
}

type Team = {
  /** '' where the user has no team. */
  teamId: string
  teamName: string
  role: Role | null
  user: User
  choose: (teamId: string) => void
}

export const TeamContext = createContext<Team | null>(null)

/** The chosen team, the user, and their role there. */
export function useTeam(): Team {
  const team = useContext(TeamContext)
  if (!team) throw new Error('There is no team outside of the shell')
  return team
}

/** What the user may in the chosen team, or in another one: `const may = useRole(); may('BUILDER')`. */
export function useRole(teamId?: string): (least: Role) => boolean {
  const { role, user } = useTeam()
  const here = teamId === undefined ? role : (user.teams.find((one) => one.teamId === teamId)?.role ?? null)
  return (least) => covers(here, least)
}
