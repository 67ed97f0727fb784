import { createContext, type RefObject, useContext } from 'react'
import type { CredentialType } from '../credentials/data.ts'
import type { GraphEdge, GraphNode, NodeFault } from './contract.ts'
import type { ReadPlace } from './run.ts'

/** An editor that takes what is chosen in the tree of the input. */
export type Taker = { insert(path: string): void }

/** What every field of a node's form knows of the node and of the run it reads. */
export type FormScope = {
  teamId: string
  workflowId: string | undefined
  node: GraphNode
  graph: { nodes: GraphNode[]; edges: GraphEdge[] }
  faults: readonly NodeFault[]
  readOnly: boolean
  /** What its credential must be good for. */
  uses: CredentialType['uses']
  place: ReadPlace | undefined
  /** The expression that had the focus last. */
  taker: RefObject<Taker | null>
}

export const FormContext = createContext<FormScope | null>(null)

export function useForm(): FormScope {
  return useContext(FormContext)!
}

/** The same path, however its indexes are written. */
function flatten(path: string): string {
  return path.replaceAll(/\[(\d+)\]/g, '.$1')
}

/** The faults at a path and below it, but for those of the fields within that show their own. */
export function faultsAt(
  faults: readonly NodeFault[],
  path: string,
  within: readonly string[] = [],
): NodeFault[] {
  const covers = (outer: string, inner: string) => inner === outer || inner.startsWith(`${outer}.`)
  const own = flatten(path)
  return faults.filter((fault) => {
    const at = flatten(fault.path)
    return covers(own, at) && !within.some((key) => covers(`${own}.${key}`, at))
  })
}

/** What a field says is wrong with it. */
export function tellFaults(faults: readonly NodeFault[]): string | undefined {
  return faults.length === 0 ? undefined : [...new Set(faults.map(({ message }) => message))].join('; ')
}
