import { api, keepRows, queries, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const { useRead, write } = resource('instance')

const { auth, admin } = api.api

type AccountPatch = Parameters<typeof auth.me.$put>[0]['json']

/**
 * Changes the caller's own account; a new e-mail needs the password, and counts once it is confirmed. A `pendingEmail`
 * of null withdraws it.
 */
export async function updateAccount(json: AccountPatch) {
  const account = await read(auth.me.$put({ json }))
  await queries.invalidateQueries({ queryKey: ['me'] })
  return account
}

export async function changePassword(json: { currentPassword: string; newPassword: string }): Promise<void> {
  await read(auth.password.$post({ json }))
}

async function readMasking() {
  return read(admin.masking.$get())
}

export type Masking = Awaited<ReturnType<typeof readMasking>>

/** What exports and audit entries mask, for all teams; for the instance's admin. */
export function useMasking() {
  return useRead(['masking'], readMasking)
}

export async function updateMasking(json: Omit<Masking, 'updatedAt'>): Promise<void> {
  await write(read(admin.masking.$put({ json })))
}

async function readEgress(teamId: string) {
  return read(admin.teams[':teamId'].egress.$get({ param: { teamId } }))
}

export type Egress = Awaited<ReturnType<typeof readEgress>>

/** Where the calls of a team may lead, besides what the instance allows and denies. */
export function useEgress(teamId: string) {
  return useRead(['egress', teamId], () => readEgress(teamId), { enabled: teamId !== '' })
}

export async function updateEgress(teamId: string, json: Pick<Egress, 'allow' | 'deny'>): Promise<void> {
  await write(read(admin.teams[':teamId'].egress.$put({ param: { teamId }, json })))
}

/** Who has sent requests in this minute, the busiest first. */
export function useRateLimits(page: number) {
  return useRead(
    ['rate-limits', page],
    () => read(admin['rate-limits'].$get({ query: { page: String(page), size: '10' } })),
    { refetchInterval: 10_000, ...keepRows },
  )
}

export async function confirmUser(email: string) {
  return read(admin.users.confirm.$post({ json: { email } }))
}
