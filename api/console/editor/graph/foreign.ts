import { notify, notifyError } from '../../kit/notices.tsx'
import { type ImportPlan, planImport } from '../../workflows/transfer/data.ts'
import type { Acts } from './acts.ts'
import type { EditorStore, Fault } from './store.ts'

/** Nodes of n8n, as its editor puts them on the clipboard; undefined if the text has none. */
function readForeign(text: string): object | undefined {
  if (!/"type"\s*:\s*"(@n8n\/)?n8n-nodes-/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Pastes what the canvas copied or, through the import, what n8n's editor copied: what differs there is marked on the
 * nodes.
 */
export async function pasteAny(store: EditorStore, acts: Acts, teamId: string, text: string): Promise<void> {
  const foreign = readForeign(text)
  if (!foreign) {
    if (!acts.paste(text)) notify('There are no nodes in the clipboard', 'bad')
    return
  }
  try {
    const plan = await planImport({ teamId, workflow: foreign, name: 'Pasted' })
    const { nodes, edges, settings, report } = plan
    const pasted = acts.paste(JSON.stringify({ nodes, edges, settings }))
    if (!pasted) return
    store.set({ faults: [...store.get().faults, ...tellReport(report, pasted)] })
    const { works, noted, stopped } = report.totals
    const rest = [noted && `${noted} with a note`, stopped && `${stopped} to be replaced`].filter(Boolean)
    notify(`Pasted from n8n: ${works} as they were${rest.length > 0 ? `, ${rest.join(', ')}` : ''}`)
  } catch (error) {
    notifyError(error)
  }
}

/** What the import says of the nodes, by the ids that they have got here. */
function tellReport(
  { mapped, problems }: ImportPlan['report'],
  renamed: ReadonlyMap<string, string>,
): Fault[] {
  const ids = new Map(mapped.map(({ node, id }) => [node, renamed.get(id) ?? id]))
  return problems
    .filter(({ kind }) => kind !== 'moved')
    .map(({ node, path, message }) => {
      const nodeId = node === null ? undefined : ids.get(node)
      return { path, message, warning: true as const, ...(nodeId ? { nodeId, within: '' } : {}) }
    })
}
