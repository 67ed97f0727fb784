import type * as v from 'valibot'

/**
 * One thing that is wrong with an input, and its path (`nodes[2].config.url`). If it is a part of a text: the line
 * and column where it begins, both from 1, and that line with carets under the part in a line of its own.
 */
export type Problem = {
  path: string
  message: string
  line?: number
  column?: number
  excerpt?: [string, string]
}

/** The keys that lead to a value within a config. */
export type Path = (string | number)[]

/** Extends a path as problems write it: a number becomes `[2]`, a string becomes `.url`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  return path === '' ? key : `${path}.${key}`
}

/** Turns Valibot's issues into problems, with `path` in front of their paths. */
export function describeIssues(issues: readonly v.BaseIssue<unknown>[], path: string): Problem[] {
  return issues.map((issue) => ({
    path: (issue.path ?? []).reduce((to, item) => joinPath(to, item.key as string | number), path),
    message: describeIssue(issue),
  }))
}

/** Says what is expected and what was found instead: "must be a string, not a number". */
export function describeIssue(issue: v.BaseIssue<unknown>): string {
  const { kind, input, message } = issue
  if (kind === 'schema' && input === undefined) return 'is required'
  // The message of a union may come from one of its options, which has already added what was found.
  const found = /, not |must not/.test(message) ? undefined : describeFound(issue)
  return found === undefined || message.includes(found) ? message : `${message}, not ${found}`
}

const MAX_QUOTED = 40

/** Names what was found; undefined if that would say no more than the message does. */
function describeFound({ kind, type, input, received }: v.BaseIssue<unknown>): string | undefined {
  if (kind === 'validation') {
    if (typeof input === 'number') return String(input)
    if (type === 'uuid') return quoteShort(String(input))
    return type === 'min_length' || type === 'max_length' ? received : undefined
  }
  if (kind !== 'schema') return undefined
  if (typeof input !== 'string') return nameType(input)
  if (type === 'picklist' || type === 'variant') return quoteShort(input)
  return type === 'union' || type === 'string' ? undefined : 'a string'
}

/** Quotes a string for a message, cut to 40 characters. */
export function quoteShort(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}...` : text)
}

/** Names a value's type with its article, for a message: "an array". */
export function nameType(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
