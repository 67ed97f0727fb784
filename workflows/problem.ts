import type * as v from 'valibot'
import type { Problem } from './graph.ts'

/** How problems name a place: nodes[2].config.url */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  return path === '' ? key : `${path}.${key}`
}

/** Valibot's issues as problems, their paths beginning at `path`. */
export function describeIssues(issues: readonly v.BaseIssue<unknown>[], path: string): Problem[] {
  return issues.map((issue) => {
    const missing = issue.kind === 'schema' && issue.input === undefined
    return {
      path: (issue.path ?? []).reduce((to, item) => joinPath(to, item.key as string | number), path),
      message: missing ? 'is required' : issue.message,
    }
  })
}
