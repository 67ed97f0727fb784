import { api, queries, read } from './client.ts'

type AccountPatch = {
  firstName?: string
  lastName?: string
  email?: string
  currentPassword?: string
  /** null withdraws a change of the e-mail. */
  pendingEmail?: null
}

/** Changes the caller's own account; a new e-mail needs the password, and counts once it is confirmed. */
export async function updateAccount(json: AccountPatch) {
  const account = await read(api.api.auth.me.$put({ json }))
  await queries.invalidateQueries({ queryKey: ['me'] })
  return account
}

export async function changePassword(json: { currentPassword: string; newPassword: string }): Promise<void> {
  await read(api.api.auth.password.$post({ json }))
}
