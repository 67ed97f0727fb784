import { api, read } from '../../data/client.ts'
import { isRefused } from '../../data/refusal.ts'
import { resource } from '../../data/resource.ts'

const { refresh, useRead } = resource('workflows')

async function readReport(id: string) {
  try {
    return await read(api.api.workflows[':id']['import-report'].$get({ param: { id } }))
  } catch (error) {
    if (isRefused(error, 404)) return null
    throw error
  }
}

export type ImportReport = NonNullable<Awaited<ReturnType<typeof readReport>>>

/** What the import of a workflow said; null for one that was not imported. */
export function useImportReport(id: string) {
  return useRead(['one', id, 'report'], () => readReport(id), { staleTime: Number.POSITIVE_INFINITY })
}

type Given = { teamId: string; workflow: object; name?: string; credentials?: Record<string, string> }

/** What an import would make; nothing is made yet. */
export async function planImport(json: Given) {
  const query = { dryRun: 'true' as const }
  const plan = await read(api.api.workflows.import.$post({ query, json }))
  return plan as Extract<typeof plan, { nodes: unknown }>
}

export type ImportPlan = Awaited<ReturnType<typeof planImport>>

export async function importWorkflow(json: Given) {
  const made = await read(api.api.workflows.import.$post({ query: {}, json }))
  await refresh()
  return made as Extract<typeof made, { id: string }>
}

export async function exportWorkflow(id: string) {
  return read(api.api.workflows[':id'].export.$get({ param: { id } }))
}
