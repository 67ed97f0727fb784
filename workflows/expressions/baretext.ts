import type { Problem } from '../problem.ts'
import { locate } from './place.ts'

const ROOT = String.raw`\$(?:input|nodes|trigger|vars|execution|item|index|json)\b`

/** An expression in one pair of braces, also as in JavaScript's template literals. */
const SINGLE = new RegExp(String.raw`(?<!\{)\$?\{\s*(${ROOT}[^{}]{0,200})\}(?!\})`, 'g')

/** A text that is nothing but a path. */
const PATH = new RegExp(String.raw`^\s*${ROOT}(?:\.\w+|\[-?\d+\]|\.\x60[^\x60]{1,100}\x60)*\s*$`)

const MAX_NAMED = 3

/**
 * Warnings about a part of a text, at `from`, that is plain text but looks like an expression: one in a single pair of
 * braces, or a path without any.
 */
export function findBareText(part: string, text: string, from: number, path: string): Problem[] {
  if (part === text && PATH.test(part)) {
    const at = part.length - part.trimStart().length
    const name = part.trim()
    const message = `is the text "${name.slice(0, 100)}"; an expression stands in double braces: {{ ${name.slice(0, 100)} }}`
    return [{ path, message, ...locate(text, at, name.length) }]
  }
  return [...part.matchAll(SINGLE)].slice(0, MAX_NAMED).map(({ 0: found, 1: source = '', index }) => {
    const message = `is text here; an expression stands in double braces: {{ ${source.trim().slice(0, 100)} }}`
    return { path, message: `${found.slice(0, 100)} ${message}`, ...locate(text, from + index, found.length) }
  })
}

/** A warning about a text that begins with `=` and has no expression: under the rules 2 that `=` is cut off. */
export function findLostSign(text: string, path: string): Problem[] {
  if (!text.startsWith('=') || text.includes('{{')) return []
  const short = text.length > 60 ? `${text.slice(0, 60)}...` : text
  const message =
    `loses the = at its beginning, which marks a text with JavaScript in {{ }}; to keep it, write a ' ` +
    `in front: '${short}`
  return [{ path, message, ...locate(text, 0, 1) }]
}
