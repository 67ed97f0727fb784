import type { RecordState } from './records.ts'
import { type Iteration, placeOf, type Tree } from './tree.ts'

export type Row =
  | {
      kind: 'record'
      key: string
      depth: number
      record: RecordState
      loop: Iteration[] | null
      steps: number
      open: boolean | null
    }
  | { kind: 'tools'; key: string; depth: number; place: string; loop: Iteration[] }
  | { kind: 'iteration'; key: string; depth: number; place: string; iteration: Iteration; open: boolean }

/** The part of a loop that is shown: one iteration, or those with failures. */
export type Pick = { at: number | null; failed: boolean }

export type Folds = {
  /** The rows that the user has opened or closed, by key. */
  open: ReadonlyMap<string, boolean>
  picks: ReadonlyMap<string, Pick>
  failedOnly: boolean
  /** Whether an open loop has a row of tools. */
  tools: boolean
}

export const ALL: Pick = { at: null, failed: false }
const FEW_STEPS = 20

export function iterationKey(place: string, number: number): string {
  return `${place}@${number}`
}

/** The rows that lists show: loops and their iterations are folded until the user opens them. */
export function listRows(tree: Tree, { open, picks, failedOnly, tools }: Folds): Row[] {
  const rows: Row[] = []
  const addAll = (records: readonly RecordState[], depth: number) => {
    for (const record of records) add(record, depth)
  }
  const add = (record: RecordState, depth: number) => {
    const place = placeOf(record)
    if (failedOnly && !tree.failed.has(place)) return
    const loop = tree.loops.get(place) ?? null
    const steps = tree.steps.get(place) ?? []
    const folds = loop !== null || steps.length > 0
    const isOpen = folds && (open.get(place) ?? (loop ? failedOnly : steps.length <= FEW_STEPS))
    const key = record.id
    rows.push({ kind: 'record', key, depth, record, loop, steps: steps.length, open: folds ? isOpen : null })
    if (!isOpen) return
    for (const step of steps) {
      if (failedOnly && step.status !== 'FAILED') continue
      rows.push({
        kind: 'record',
        key: step.id,
        depth: depth + 1,
        record: step,
        loop: null,
        steps: 0,
        open: null,
      })
    }
    if (loop) addLoop(place, loop, depth + 1)
  }
  const addLoop = (place: string, loop: Iteration[], depth: number) => {
    const { at, failed } = picks.get(place) ?? ALL
    if (tools) rows.push({ kind: 'tools', key: `${place} tools`, depth, place, loop })
    for (const iteration of loop) {
      if (at !== null && iteration.number !== at) continue
      const failures = iteration.records.some((one) => tree.failed.has(placeOf(one)))
      if ((failed || failedOnly) && !failures) continue
      const key = iterationKey(place, iteration.number)
      const isOpen = open.get(key) ?? (at !== null || failedOnly)
      rows.push({ kind: 'iteration', key, depth, place, iteration, open: isOpen })
      if (isOpen) addAll(iteration.records, depth + 1)
    }
  }
  addAll(tree.roots, 0)
  return rows
}
