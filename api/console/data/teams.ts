import { useQuery } from '@tanstack/react-query'
import { api, queries, read } from './client.ts'

export function useTeamDetail(teamId: string) {
  return useQuery({
    queryKey: ['teams', teamId],
    queryFn: () => read(api.api.teams[':teamId'].$get({ param: { teamId } })),
    enabled: teamId !== '',
  })
}

export function useMembers(teamId: string) {
  return useQuery({
    queryKey: ['teams', teamId, 'members'],
    queryFn: () => read(api.api.teams[':teamId'].members.$get({ param: { teamId } })),
    enabled: teamId !== '',
  })
}

/** Its founder becomes its ADMIN, so who is signed in is read again. */
export async function createTeam(name: string) {
  const team = await read(api.api.teams.$post({ json: { name } }))
  await queries.invalidateQueries({ queryKey: ['me'] })
  return team
}
