import { useQuery } from '@tanstack/react-query'
import { api, queries, read } from '../data/client.ts'

export async function listCredentialTypes() {
  return read(api.api['credential-types'].$get())
}

export type CredentialType = Awaited<ReturnType<typeof listCredentialTypes>>[number]
export type CredentialKey = CredentialType['keys'][number]
export type CredentialUse = CredentialType['uses'][number]

/** The types of credentials; they stay the same while the service runs. */
export function useCredentialTypes(enabled: boolean) {
  return useQuery({
    queryKey: ['credential-types'],
    queryFn: listCredentialTypes,
    staleTime: Number.POSITIVE_INFINITY,
    enabled,
  })
}

type New = { teamId: string; name: string; type: CredentialType['type']; data: Record<string, unknown> }

export async function createCredential(json: New) {
  const made = await read(api.api.credentials.$post({ json }))
  await queries.invalidateQueries({ queryKey: ['credentials'] })
  return made
}

export async function testCredential(id: string, teamId: string) {
  const done = await read(api.api.credentials[':id'].test.$post({ param: { id }, query: { teamId } }))
  await queries.invalidateQueries({ queryKey: ['credentials'] })
  return done
}

/** Where the browser must go so that an OAuth 2 credential gets its tokens. */
export async function connectCredential(id: string): Promise<string> {
  const { url } = await read(api.api.credentials[':id'].connect.$post({ param: { id } }))
  // What the server says is an address that the credential names: nothing but HTTP is followed.
  if (!/^https?:\/\//i.test(url)) throw new Error('The authorization URL is no address of the web')
  return url
}
