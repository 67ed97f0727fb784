import { useQuery } from '@tanstack/react-query'
import { api, read } from './client.ts'

export async function listCredentials(teamId: string) {
  return read(api.api.credentials.$get({ query: { teamId } }))
}

/** A team's credentials, without their secrets. */
export function useCredentials(teamId: string) {
  return useQuery({
    queryKey: ['credentials', teamId],
    queryFn: () => listCredentials(teamId),
    enabled: teamId !== '',
  })
}
