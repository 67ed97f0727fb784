import { FILES_KEY, withoutFiles } from '../../workflows/itemfiles.ts'
import type { ScriptPath } from '../../workflows/javascript/paths.ts'
import type { Bindings } from '../expressions/bindings.ts'
import { describeOwner } from '../expressions/watch/misses.ts'
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
  return isUnavailable(start) ? start : follow(path.names, showStart(path, start))
}

/** What a path begins with, as expressions see it: an item without its files. */
function showStart(path: ScriptPath, start: unknown): unknown {
  if (!('from' in path)) return start
  const [first] = path.names
  return first === undefined || first === FILES_KEY ? withoutFiles(start) : start
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

/**
 * The fault of a path that leads nowhere, in one sentence; undefined if it leads to something, or if the value that
 * it begins with is unavailable. A path that JavaScript's own objects have, such as `.length`, leads to something.
 */
export function findScriptMiss(path: ScriptPath, bindings: Bindings): string | undefined {
  if ('value' in path) return undefined
  const start = findStart(path, bindings)
  if (isUnavailable(start)) return undefined
  let value = showStart(path, start)
  let shown = showHead(path)
  for (const name of path.names) {
    const owner = value
    value = follow([name], owner)
    const before = shown
    shown += /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
    if (value !== undefined) {
      if (value === NOT_PLAIN) return undefined
      continue
    }
    if ('root' in path && path.root === 'vars') return `\`${shown}\`: the team has no such variable`
    if (owner === undefined) return `\`${before}\`: there is none here`
    return `\`${shown}\`: no such field; ${describeOwner(owner, before)}`
  }
  return undefined
}

/** What a path begins with, as it is written in JavaScript. */
function showHead(path: Exclude<ScriptPath, { value: unknown }>): string {
  if ('root' in path) return path.root === 'loopItem' ? '$item' : `$${path.root}`
  const { from, node } = path
  if (from === 'same') return `$node[${JSON.stringify(node)}].json`
  if (node === undefined && from === 'item') return '$json'
  const of = node === undefined ? '$input' : `$('${node}')`
  return `${of}.${from === 'item' ? 'item' : `${from}()`}.json`
}
