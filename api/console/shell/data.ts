import { useQuery } from '@tanstack/react-query'
import { api, queries, read, session } from '../data/client.ts'
import { isRefused } from '../data/refusal.ts'

/** The user who is signed in, with their teams; null without a sign-in. */
export async function readMe() {
  try {
    return await read(api.api.auth.me.$get())
  } catch (error) {
    if (isRefused(error, 401)) return null
    throw error
  }
}

export type User = NonNullable<Awaited<ReturnType<typeof readMe>>>

/**
 * Who is signed in. Asked again when the page is looked at again: another tab may have signed out or in as another
 * user, which ends the session of this page, and roles change.
 */
export function useMe() {
  return useQuery({
    queryKey: ['me'],
    queryFn: readMeAgain,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: 'always',
  })
}

async function readMeAgain(): Promise<User | null> {
  const next = await readMe()
  const known = queries.getQueryData<User | null>(['me'])
  if (!known || next?.id === known.id) return next
  session.onEnd()
  return known
}

/** `emailToken` is that of the link in a mail, which opens a new account. */
export async function signIn(email: string, password: string, emailToken?: string): Promise<User | null> {
  const opening = emailToken ? { emailToken } : {}
  await read(api.api.auth.login.$post({ json: { email, password, ...opening } }))
  return readMe()
}

export async function signOut(): Promise<void> {
  await read(api.api.auth.logout.$post())
  queries.clear()
}

export async function resendConfirmation() {
  return read(api.api.auth.email.resend.$post())
}

export async function confirmEmail(token: string) {
  const account = await read(api.api.auth.email.confirm.$post({ json: { token } }))
  await queries.invalidateQueries({ queryKey: ['me'] })
  return account
}
