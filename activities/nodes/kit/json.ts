import type { createPacer } from '../../expressions/pace.ts'
import { weighValue } from '../../expressions/weight.ts'
import { MAX_DEPTH, tooDeep } from '../../reading/json.ts'
import { NodeFailure } from './failure.ts'

type Pace = ReturnType<typeof createPacer>

/** Values up to this weight are written at once, which takes a few milliseconds. */
const LIGHT = 100_000
const MAX_CHARS = 8_000_000

export type JsonStyle = {
  /** How many spaces each level is indented by; 0 writes everything in one line. */
  indent?: number
  /** The same text for equal values, whatever the order of their keys. */
  sorted?: boolean
}

/** A container that is being written: what is left of it, and the end of its line. */
type Level = { value: object; keys: string[] | undefined; next: number; line: string }

/**
 * Writes a value as JSON.stringify does, but lets timers and sockets have their turn in between, and stops at
 * 8 MB: a megabyte of brackets becomes 13 with an indent of 10. Throws a NodeFailure: OutputTooLarge, or
 * InvalidInput for a value that is nested too deeply.
 */
export async function writeJson(root: unknown, pace: Pace, style: JsonStyle = {}): Promise<string> {
  const { indent = 0, sorted = false } = style
  const isPlain = indent === 0 && !sorted
  const parts: string[] = []
  const levels: Level[] = []
  let chars = 0
  const put = (text: string) => {
    chars += text.length
    if (chars > MAX_CHARS) {
      throw new NodeFailure('The output would be larger than 8 MB', { type: 'OutputTooLarge' })
    }
    parts.push(text)
  }
  const lineOf = (depth: number) => (indent === 0 ? '' : `\n${' '.repeat(indent * depth)}`)
  const open = (value: unknown) => {
    if (typeof value !== 'object' || value === null || (isPlain && weighValue(value, LIGHT) <= LIGHT)) {
      put(JSON.stringify(value) ?? 'null')
      return
    }
    if (levels.length >= MAX_DEPTH) throw tooDeep()
    const keys = Array.isArray(value) ? undefined : listKeys(value, sorted)
    const isEmpty = (keys ?? (value as unknown[])).length === 0
    put(keys ? (isEmpty ? '{}' : '{') : isEmpty ? '[]' : '[')
    if (!isEmpty) levels.push({ value, keys, next: 0, line: lineOf(levels.length + 1) })
  }
  open(root)
  for (let level = levels.at(-1); level; level = levels.at(-1)) {
    await pace()
    const { value, keys, line } = level
    const at = level.next++
    if (at === (keys ?? (value as unknown[])).length) {
      levels.pop()
      put(lineOf(levels.length) + (keys ? '}' : ']'))
      continue
    }
    const key = keys?.[at]
    const name = key === undefined ? '' : `${JSON.stringify(key)}:${indent === 0 ? '' : ' '}`
    put(`${at === 0 ? '' : ','}${line}${name}`)
    open(key === undefined ? (value as unknown[])[at] : (value as Record<string, unknown>)[key])
  }
  return parts.join('')
}

/** Keys whose value JSON leaves out are left out. */
function listKeys(value: object, sorted: boolean): string[] {
  const keys = Object.keys(value).filter((key) => (value as Record<string, unknown>)[key] !== undefined)
  return sorted ? keys.sort() : keys
}
