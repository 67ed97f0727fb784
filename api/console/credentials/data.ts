import { useQuery } from '@tanstack/react-query'
import { api, queries, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const { refresh, useRead, write } = resource('credentials')

export async function listCredentials(teamId: string) {
  return read(api.api.credentials.$get({ query: { teamId } }))
}

/** A team's credentials, without their secrets. */
export function useCredentials(teamId: string) {
  return useRead([teamId], () => listCredentials(teamId))
}

export type CredentialItem = Awaited<ReturnType<typeof listCredentials>>[number]

async function listCredentialTypes() {
  return read(api.api['credential-types'].$get())
}

export type CredentialType = Awaited<ReturnType<typeof listCredentialTypes>>[number]
export type CredentialKey = CredentialType['keys'][number]

/** The types of credentials with the keys of their data; they stay the same while the service runs. */
export function useCredentialTypes() {
  return useQuery({
    queryKey: ['credential-types'],
    queryFn: listCredentialTypes,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

async function readCredential(id: string) {
  return read(api.api.credentials[':id'].$get({ param: { id } }))
}

export type Credential = Awaited<ReturnType<typeof readCredential>>

export function useCredential(id: string) {
  return useRead(['one', id], () => readCredential(id), { enabled: id !== '', staleTime: 0 })
}

/** How many workflows a list of those that use a credential shows. */
const USED = 50

/** The workflows that name a credential, those of now first. */
export function useCredentialUsage(id: string) {
  return useRead(
    ['one', id, 'usage'],
    () => read(api.api.credentials[':id'].usage.$get({ param: { id }, query: { size: String(USED) } })),
    { staleTime: 0 },
  )
}

type CredentialData = Record<string, unknown>

export async function createCredential(json: {
  teamId: string
  name: string
  type: string
  data: CredentialData
}) {
  return write(read(api.api.credentials.$post({ json })))
}

/** Keys of the data that are missing stay as they are; null removes one. */
export async function updateCredential(id: string, json: { name: string; data: CredentialData }) {
  return write(read(api.api.credentials[':id'].$put({ param: { id }, json })))
}

export async function deleteCredential(id: string, force: boolean): Promise<void> {
  await read(api.api.credentials[':id'].$delete({ param: { id }, query: force ? { force: 'true' } : {} }))
  queries.removeQueries({ queryKey: ['credentials', 'one', id] })
  await refresh()
}

export async function testCredential(teamId: string, id: string) {
  return write(read(api.api.credentials[':id'].test.$post({ param: { id }, query: { teamId } })))
}

/** The address of the authorization server that the browser is to go to; it sends it back to the service. */
export async function connectCredential(id: string): Promise<string> {
  const { url } = await read(api.api.credentials[':id'].connect.$post({ param: { id } }))
  // The credential names the address that comes back: nothing but HTTP is followed.
  if (!/^https?:\/\//i.test(url)) throw new Error('The authorization URL is no address of the web')
  return url
}
