import { api, keepRows, read } from '../../data/client.ts'
import { resource } from '../../data/resource.ts'

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

export async function restoreVersion(id: string, version: number) {
  const param = { id, version: String(version) }
  return write(read(api.api.workflows[':id'].versions[':version'].restore.$post({ param })))
}

export async function deleteVersion(id: string, version: number) {
  const param = { id, version: String(version) }
  await write(read(api.api.workflows[':id'].versions[':version'].$delete({ param })), 'one', id)
}
