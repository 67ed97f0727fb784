import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useQueryState } from '../../kit/address.ts'
import { isOpen } from '../../kit/status.tsx'
import type { RecordState } from '../records.ts'
import { iterationKey, listRows, type Pick } from '../rows.ts'
import { findLoop, placeOf, type Tree } from '../tree.ts'

const STATE = { view: 'graph', node: '', at: '', step: '', failed: '' }

type State = typeof STATE
type Chosen = { nodeId: string; iteration: string | null; step?: number | null }

/** The view, the record and the filter that the address of an execution's page names, and what changes them. */
export function useChosen(tree: Tree) {
  const [state, setState] = useQueryState(STATE)
  const record = useMemo(() => findRecord(tree, state), [tree, state])
  const change = useCallback((next: Partial<State>) => setState(next, { replace: true }), [setState])
  return {
    node: state.node,
    record,
    failedOnly: state.failed === '1',
    view: ['timeline', 'steps'].includes(state.view) ? state.view : 'graph',
    choose: useCallback(
      ({ nodeId, iteration, step }: Chosen) =>
        change({ node: nodeId, at: iteration ?? '', step: step ? String(step) : '' }),
      [change],
    ),
    /** If the node ran more than once, the page finds the record. */
    chooseNode: (node: string) => change({ node, at: '', step: '' }),
    close: useCallback(() => change({ node: '', at: '', step: '' }), [change]),
    filter: (on: boolean) => change({ failed: on ? '1' : '' }),
    show: (view: string) => change({ view }),
  }
}

function findRecord(tree: Tree, { node, at, step }: State): RecordState | undefined {
  if (!node) return undefined
  if (step) {
    const steps = tree.steps.get(placeOf({ nodeId: node, iteration: at || null }))
    return steps?.find((one) => String(one.step) === step)
  }
  const all = tree.byNode.get(node) ?? []
  if (at) return all.find(({ iteration }) => iteration === at)
  // If the node ran more than once, a failed record comes first, then one that goes on.
  return all.find(({ status }) => status === 'FAILED') ?? all.find(({ status }) => isOpen(status)) ?? all[0]
}

/** The rows of the lists, which loops are open in them, and which of their iterations are picked. */
export function useRows(tree: Tree, { record, failedOnly, view }: ReturnType<typeof useChosen>) {
  const [folds, setFolds] = useState<ReadonlyMap<string, boolean>>(new Map())
  const [picks, setPicks] = useState<ReadonlyMap<string, Pick>>(new Map())
  const rows = useMemo(
    () => listRows(tree, { open: folds, picks, failedOnly, tools: view !== 'timeline' }),
    [tree, folds, picks, failedOnly, view],
  )
  // The chosen record is not folded away, unless the user folds it then.
  const chosenPlace = record ? `${placeOf(record)} ${record.step ?? ''}` : ''
  const latest = useRef({ tree, record })
  latest.current = { tree, record }
  useEffect(() => {
    const { tree, record } = latest.current
    if (chosenPlace === '' || !record) return
    const keys: string[] = record.step === null ? [] : [placeOf(record)]
    let loop = findLoop(record, tree.parents)
    while (loop) {
      keys.push(loop.place, iterationKey(loop.place, loop.number))
      loop = findLoop(loop, tree.parents)
    }
    if (keys.length > 0)
      setFolds((before) => new Map([...before, ...keys.map((key) => [key, true] as const)]))
  }, [chosenPlace])
  return {
    rows,
    picks,
    fold: (key: string, next: boolean) => setFolds((before) => new Map(before).set(key, next)),
    pick: (place: string, next: Pick) => setPicks((before) => new Map(before).set(place, next)),
  }
}
