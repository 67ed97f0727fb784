import { api, queries, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const teams = resource('teams')
const tokens = resource('tokens')

const one = api.api.teams[':teamId']

export function useTeamDetail(teamId: string) {
  return teams.useRead([teamId], () => read(one.$get({ param: { teamId } })))
}

export function useMembers(teamId: string) {
  return teams.useRead([teamId, 'members'], () => read(one.members.$get({ param: { teamId } })))
}

/** Its founder becomes its ADMIN, so who is signed in is read again. */
export async function createTeam(name: string) {
  const team = await read(api.api.teams.$post({ json: { name } }))
  await queries.invalidateQueries({ queryKey: ['me'] })
  return team
}

type TeamPatch = Parameters<typeof one.$put>[0]['json']

export async function updateTeam(teamId: string, json: TeamPatch) {
  const team = await read(one.$put({ param: { teamId }, json }))
  await forget()
  return team
}

export async function deleteTeam(teamId: string): Promise<void> {
  await read(one.$delete({ param: { teamId } }))
  queries.removeQueries({ queryKey: ['teams', teamId] })
  await queries.invalidateQueries({ queryKey: ['me'] })
}

export type Member = NonNullable<ReturnType<typeof useMembers>['data']>[number]

export async function addMember(teamId: string, json: { email: string; role: Member['role'] }) {
  const member = await read(one.members.$post({ param: { teamId }, json }))
  await forget()
  return member
}

export async function changeRole(teamId: string, userId: string, role: Member['role']): Promise<void> {
  const param = { teamId, userId }
  await read(one.members[':userId'].$put({ param, json: { role } }))
  await forget()
}

export async function removeMember(teamId: string, userId: string): Promise<void> {
  await read(one.members[':userId'].$delete({ param: { teamId, userId } }))
  await forget()
}

/** The caller's own role or the name of the team may be another now, so who is signed in is read again too. */
async function forget(): Promise<void> {
  await queries.invalidateQueries({ queryKey: ['me'] })
  await teams.refresh()
}

/** How many requests the team has sent in this minute, as the answer to one of them says. */
export function useRateUse(teamId: string) {
  return teams.useRead(
    [teamId, 'rate'],
    async () => {
      const { headers } = await one.$get({ param: { teamId } })
      const limit = Number(headers.get('x-ratelimit-limit'))
      return { limit, used: limit - Number(headers.get('x-ratelimit-remaining')) }
    },
    { refetchInterval: 15_000 },
  )
}

const sdkTokens = one['sdk-tokens']

async function listTokens(teamId: string) {
  return read(sdkTokens.$get({ param: { teamId } }))
}

export type SdkToken = Awaited<ReturnType<typeof listTokens>>[number]

/** A team's SDK tokens, the newest first, without the tokens themselves. */
export function useTokens(teamId: string) {
  return tokens.useRead([teamId], () => listTokens(teamId))
}

type NewToken = Parameters<typeof sdkTokens.$post>[0]['json']

/** The new token; nothing else ever shows it. */
export async function createToken(teamId: string, json: NewToken) {
  return tokens.write(read(sdkTokens.$post({ param: { teamId }, json })))
}

export async function revokeToken(teamId: string, id: string): Promise<void> {
  await tokens.write(read(sdkTokens[':id'].$delete({ param: { teamId, id } })))
}
