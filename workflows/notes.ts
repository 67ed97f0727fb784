import type { NodeNotes } from './run/records.ts'

/** The most that a record's notes have, in bytes of JSON. */
const MAX_NOTES_BYTES = 16_000

/** The most characters of one entry: longer ones are cut. */
const MAX_ENTRY = 4_000

/** The room for the entries that tell how many others were left out. */
const ROOM = 300

/**
 * Adds notes to others, as far as there is room; the last entry says if others were left out. A warning is kept once.
 * Gives undefined if there are none.
 */
export function mergeNodeNotes(
  before: NodeNotes | undefined,
  more: NodeNotes | undefined,
): NodeNotes | undefined {
  if (!more) return before
  const notes: NodeNotes = { ...before }
  let left = MAX_NOTES_BYTES - ROOM - (before ? bytesOf(before) : 0)
  const fits = (entry: object) => {
    const bytes = bytesOf(entry) + 1
    if (left >= bytes) left -= bytes
    else left = 0
    return left > 0
  }
  const known = new Set(before?.warnings?.map(keyOf))
  const warnings = [...(before?.warnings ?? [])]
  const isFull = known.has(keyOf(NO_MORE_WARNINGS))
  for (const { path, message } of isFull ? [] : (more.warnings ?? [])) {
    const entry = { path: cut(path), message: cut(message) }
    if (known.has(keyOf(entry))) continue
    if (!fits(entry)) {
      warnings.push(NO_MORE_WARNINGS)
      break
    }
    known.add(keyOf(entry))
    warnings.push(entry)
  }
  const lines = [...(before?.console ?? [])]
  const isOver = lines.at(-1)?.text === NO_MORE_LINES.text
  for (const { level, text } of isOver ? [] : (more.console ?? [])) {
    const entry = { level: cut(level), text: cut(text) }
    if (!fits(entry)) {
      lines.push(NO_MORE_LINES)
      break
    }
    lines.push(entry)
  }
  if (warnings.length > 0) notes.warnings = warnings
  if (lines.length > 0) notes.console = lines
  return warnings.length + lines.length > 0 ? notes : undefined
}

const NO_MORE_WARNINGS = { path: '', message: 'There are more warnings than a record keeps' }
const NO_MORE_LINES = { level: 'warn', text: 'There are more lines than a record keeps' }

function keyOf({ path, message }: { path: string; message: string }): string {
  return `${path}\n${message}`
}

function cut(text: string): string {
  return text.length > MAX_ENTRY ? `${text.slice(0, MAX_ENTRY)}...` : text
}

function bytesOf(value: object): number {
  return new TextEncoder().encode(JSON.stringify(value)).length
}

/** Reads notes from what others may have written. Undefined if it has not their form. */
export function readNodeNotes(given: unknown): NodeNotes | undefined {
  const { warnings = [], console: lines = [] } = Object(given) as NodeNotes
  const isList = (list: unknown, keys: string[]) =>
    Array.isArray(list) && list.every((entry) => keys.every((key) => typeof Object(entry)[key] === 'string'))
  if (!isList(warnings, ['path', 'message']) || !isList(lines, ['level', 'text'])) return undefined
  return mergeNodeNotes(undefined, { warnings, console: lines })
}
