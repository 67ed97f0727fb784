/**
 * The rules of the language: how texts are read and what values count as. Each graph version is evaluated under those
 * that it was saved under, whatever changes later. Under 2, expressions that read nothing leave a warning,
 * `$not(nothing)` is true, and a text that begins with `=` is a JavaScript template.
 */
export const RULES = [1, 2] as const
export type Rules = (typeof RULES)[number]

/** The rules of graphs that are created anew. */
export const NEWEST_RULES: Rules = 2

/**
 * The meaning of expressions while a node is evaluated. `note` is told of paths that lead nowhere and of conditions
 * that are no booleans, by the text of the config that has the expression; `log` is told their output to the console.
 * Under the rules 1 nothing is noted.
 */
export type Reading = Language & {
  note?: (text: string, message: string) => void
  log?: (lines: { level: string; text: string }[]) => void
}

/** The meaning of expressions in a graph version. `strict`: one that reads a path which does not exist is an error. */
export type Language = { rules: Rules; strict: boolean }

export function isRules(value: unknown): value is Rules {
  return RULES.includes(value as Rules)
}

/**
 * How the texts at a path of a config are read: as they stand, with `$args`, the arguments of a tool's call, or with
 * what is known of the pages of an HTTP request: `$response`, `$pageCount` and `$request`.
 */
export type TextKind = 'plain' | 'args' | 'page'
