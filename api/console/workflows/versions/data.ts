import { api, keepRows, read, readTagged } from '../../data/client.ts'
import { resource } from '../../data/resource.ts'
import { changeTagged, type Workflow } from '../data.ts'

const { useRead, write } = resource('workflows')

/** The graph of one version of a workflow: a version never changes. */
export function useGraph(workflowId: string | undefined, version: number | undefined) {
  return useRead(
    ['version', workflowId, version],
    () =>
      read(
        api.api.workflows[':id'].versions[':version'].$get({
          param: { id: workflowId!, version: String(version) },
        }),
      ),
    { enabled: workflowId !== undefined && version !== undefined, staleTime: Number.POSITIVE_INFINITY },
  )
}

export type VersionGraph = Pick<NonNullable<ReturnType<typeof useGraph>['data']>, 'nodes' | 'edges'>

async function listVersions(id: string, page: number) {
  const query = { page: String(page), size: '10' }
  return read(api.api.workflows[':id'].versions.$get({ param: { id }, query }))
}

export function useVersions(id: string, page: number) {
  return useRead(['one', id, 'versions', page], () => listVersions(id, page), keepRows)
}

export type VersionItem = Awaited<ReturnType<typeof listVersions>>['content'][number]

export function useVersion(id: string, version: number | undefined) {
  return useRead(
    ['one', id, 'version', version],
    () =>
      read(api.api.workflows[':id'].versions[':version'].$get({ param: { id, version: String(version) } })),
    { enabled: version !== undefined },
  )
}

async function compareVersions(id: string, from: number, to: number) {
  const param = { id, version: String(from), other: String(to) }
  return read(api.api.workflows[':id'].versions[':version'].diff[':other'].$get({ param }))
}

export type VersionDiff = Awaited<ReturnType<typeof compareVersions>>

/** What changed from one version to the other. */
export function useDiff(id: string, from: number | undefined, to: number | undefined) {
  return useRead(['one', id, 'diff', from, to], () => compareVersions(id, from!, to!), {
    enabled: from !== undefined && to !== undefined,
  })
}

/** What is published, and which version is the draft; with the tag of that state. */
export function useStanding(id: string) {
  return useRead(
    ['one', id, 'standing'],
    () => readTagged(api.api.workflows[':id'].$get({ param: { id }, query: {} })),
    { gcTime: 0, staleTime: 0 },
  )
}

/** Whether another version was published after the draft began. */
export function hasMovedOn({
  draftVersion,
  draftBase,
  publishedVersion,
}: Pick<Workflow, 'draftVersion' | 'draftBase' | 'publishedVersion'>): boolean {
  if (draftVersion === null) return false
  return draftBase === null ? publishedVersion > draftVersion : publishedVersion !== draftBase
}

type Publication = { version?: number; note?: string | null; active?: boolean }

/** Publishes the draft or the given version, if the workflow still has this tag: 412 otherwise. */
export async function publishVersion(id: string, json: Publication, tag: string | null) {
  const asked = api.api.workflows[':id'].publish.$post(
    { param: { id }, json },
    tag ? { headers: { 'If-Match': tag } } : {},
  )
  return changeTagged(readTagged(asked))
}

export type Published = Awaited<ReturnType<typeof publishVersion>>

export async function deleteVersion(id: string, version: number) {
  const param = { id, version: String(version) }
  await write(read(api.api.workflows[':id'].versions[':version'].$delete({ param })), 'one', id)
}
