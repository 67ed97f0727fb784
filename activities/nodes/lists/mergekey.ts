import { isObject, setOwn } from '../../../workflows/json.ts'
import type { MergeConfig } from '../../../workflows/nodes/merge.ts'
import { getField } from '../kit/paths.ts'
import type { Placed } from './matches.ts'

/**
 * Items of the left list with the fields of the last item on the right that has the same key. Keys are strings
 * and numbers, compared as texts. With `join` keepMatches the left items that have a partner are kept as they
 * are, with remove those that have none.
 */
export function mergeByKey(
  { on = [], join, overwrite }: MergeConfig,
  left: Placed[],
  right: Placed[],
): Placed[] {
  const pair = on[0] ?? { left: '', right: '' }
  if (right.length === 0 || pair.left === '' || pair.right === '') return join === 'keepMatches' ? [] : left
  const partners = new Map<string, Placed>()
  for (const one of right) {
    const key = getField(one.item, pair.right)
    if (key) partners.set(String(key), one)
  }
  return left.flatMap((one): Placed[] => {
    const key = getField(one.item, pair.left)
    const isComparable = key === null || typeof key === 'string' || typeof key === 'number'
    const partner = isComparable ? partners.get(String(key)) : undefined
    if (join === 'remove') return partner && key !== null ? [] : [one]
    if (join === 'keepMatches') return partner ? [one] : []
    if (!isComparable) return []
    if (!partner) return [one]
    return [
      {
        item: fillFields(one.item, partner.item, pair.right, overwrite),
        from: [...one.from, ...partner.from],
      },
    ]
  })
}

function fillFields(
  item: unknown,
  other: unknown,
  key: string,
  overwrite: MergeConfig['overwrite'] = 'always',
): unknown {
  const filled: Record<string, unknown> = isObject(item) ? { ...item } : {}
  for (const [name, value] of Object.entries(Object(other))) {
    if (name === key) continue
    const has = Object.hasOwn(filled, name)
    const isBlank = !has || filled[name] === null || filled[name] === ''
    if (overwrite === 'always' || (overwrite === 'undefined' ? !has : isBlank)) setOwn(filled, name, value)
  }
  return filled
}
