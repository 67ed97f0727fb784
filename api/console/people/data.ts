import { useQuery } from '@tanstack/react-query'
import { api, queries, read } from '../data/client.ts'

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

type TeamPatch = { name?: string; description?: string | null; chatRetentionDays?: number | null }

export async function updateTeam(teamId: string, json: TeamPatch) {
  const team = await read(api.api.teams[':teamId'].$put({ param: { teamId }, json }))
  await forget()
  return team
}

export async function deleteTeam(teamId: string): Promise<void> {
  await read(api.api.teams[':teamId'].$delete({ param: { teamId } }))
  queries.removeQueries({ queryKey: ['teams', teamId] })
  await queries.invalidateQueries({ queryKey: ['me'] })
}

export type Member = NonNullable<ReturnType<typeof useMembers>['data']>[number]

export async function addMember(teamId: string, json: { email: string; role: Member['role'] }) {
  const member = await read(api.api.teams[':teamId'].members.$post({ param: { teamId }, json }))
  await forget()
  return member
}

export async function changeRole(teamId: string, userId: string, role: Member['role']): Promise<void> {
  const param = { teamId, userId }
  await read(api.api.teams[':teamId'].members[':userId'].$put({ param, json: { role } }))
  await forget()
}

export async function removeMember(teamId: string, userId: string): Promise<void> {
  await read(api.api.teams[':teamId'].members[':userId'].$delete({ param: { teamId, userId } }))
  await forget()
}

/** The caller's own role or the name of the team may be another now, so who is signed in is read again too. */
async function forget(): Promise<void> {
  await queries.invalidateQueries({ queryKey: ['me'] })
  await queries.invalidateQueries({ queryKey: ['teams'] })
}

/** How many requests the team has sent in this minute, as the answer to one of them says. */
export function useRateUse(teamId: string) {
  return useQuery({
    queryKey: ['teams', teamId, 'rate'],
    queryFn: async () => {
      const { headers } = await api.api.teams[':teamId'].$get({ param: { teamId } })
      const limit = Number(headers.get('x-ratelimit-limit'))
      return { limit, used: limit - Number(headers.get('x-ratelimit-remaining')) }
    },
    enabled: teamId !== '',
    refetchInterval: 15_000,
  })
}

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
