import type { SourceNode } from '../document.ts'

/** The outputs of a Loop Over Items node (splitInBatches): version 3 swapped them. */
export function readLoopOutputs(node: SourceNode): { loop: number; done: number } {
  return node.version >= 3 ? { loop: 1, done: 0 } : { loop: 0, done: 1 }
}

/** A Merge node that combines the items at the same position of its inputs. */
export function isMergeByPosition(node: SourceNode): boolean {
  const { mode, combineBy, combinationMode } = node.parameters
  return (
    mode === 'mergeByPosition' ||
    combinationMode === 'mergeByPosition' ||
    (mode === 'combine' && combineBy === 'combineByPosition')
  )
}

/** A node that makes a list out of a field of its item. */
export function isSplitOut(node: SourceNode): boolean {
  if (node.type === 'splitOut') return true
  return node.type === 'itemLists' && (node.parameters.operation ?? 'splitOutItems') === 'splitOutItems'
}
