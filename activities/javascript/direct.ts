import type { ScriptPath } from '../../workflows/javascript/paths.ts'
import type { Bindings } from '../expressions/bindings.ts'
import { findCurrent, findItems, findPair, type Unavailable } from './items.ts'

/** Only the sandbox can tell: the path reads what values inherit, such as a method. */
export const NOT_PLAIN = Symbol('not plain')

/**
 * The value of a plain path as n8n finds it: nothing where it leads nowhere. Returns NOT_PLAIN if only the
 * sandbox can find it, and an Unavailable if it must not be read.
 */
export function findPlainly(path: ScriptPath, bindings: Bindings): unknown {
  if ('value' in path) return path.value
  const start = findStart(path, bindings)
  return isUnavailable(start) ? start : follow(path.names, start)
}

const unavailable = new WeakSet<object>()

/** Whether what findPlainly returned says why there is no value. Values of users never are such objects. */
export function isUnavailable(value: unknown): value is Unavailable {
  return typeof value === 'object' && value !== null && unavailable.has(value)
}

function refuse(why: Unavailable): Unavailable {
  unavailable.add(why)
  return why
}

function findStart(path: Exclude<ScriptPath, { value: unknown }>, bindings: Bindings): unknown {
  if ('root' in path) return path.root === 'loopItem' ? bindings.item : bindings[path.root]
  const { from, node } = path
  const { items, item, index } = findCurrent(bindings)
  if (node === undefined) return (from === 'item' ? item : items.at(from === 'last' ? -1 : 0)) ?? {}
  if (from === 'item') {
    const pair = findPair(node, index, bindings)
    return 'item' in pair ? pair.item : refuse(pair)
  }
  const all = findItems(node, bindings)
  if (!Array.isArray(all)) return refuse(all)
  if (from === 'first' || from === 'last') return all.at(from === 'first' ? 0 : -1)
  if (index < all.length) return all[index]
  const message = `"${node}" node has ${all.length} item(s) but you're trying to access item ${index}`
  return refuse({ unavailable: message })
}

function follow(names: string[], start: unknown): unknown {
  let value = start
  for (const name of names) {
    if (value === undefined || value === null) return undefined
    if (typeof value === 'object' ? !Object.hasOwn(value, name) : !Object.hasOwn(Object(value), name))
      return name in Object(value) ? NOT_PLAIN : undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}
