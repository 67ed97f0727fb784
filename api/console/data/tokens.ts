import { useQuery } from '@tanstack/react-query'
import { api, queries, read } from './client.ts'

const tokens = api.api.teams[':teamId']['sdk-tokens']

async function listTokens(teamId: string) {
  return read(tokens.$get({ param: { teamId } }))
}

export type SdkToken = Awaited<ReturnType<typeof listTokens>>[number]

/** A team's SDK tokens, the newest first, without the tokens themselves. */
export function useTokens(teamId: string) {
  return useQuery({ queryKey: ['tokens', teamId], queryFn: () => listTokens(teamId), enabled: teamId !== '' })
}

type NewToken = { name: string; role: string; expiresAt: string | null }

/** The new token; nothing else ever shows it. */
export async function createToken(teamId: string, json: NewToken) {
  const made = await read(tokens.$post({ param: { teamId }, json }))
  await queries.invalidateQueries({ queryKey: ['tokens'] })
  return made
}

export async function revokeToken(teamId: string, id: string): Promise<void> {
  await read(tokens[':id'].$delete({ param: { teamId, id } }))
  await queries.invalidateQueries({ queryKey: ['tokens'] })
}
