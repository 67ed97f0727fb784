export type Problem = { path: string; message: string; excerpt?: string[] }

/** What the API refused, in its own words; `problems` field by field. Status 0: it could not be reached. */
export class Refusal extends Error {
  readonly status: number
  readonly problems: Problem[]
  /** In seconds. */
  readonly retryAfter: number

  constructor(status: number, message: string, problems: Problem[] = [], retryAfter = 0) {
    super(message)
    this.status = status
    this.problems = problems
    this.retryAfter = retryAfter
  }
}

export function tellError(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export function problemsOf(error: unknown): Problem[] {
  return error instanceof Refusal ? error.problems : []
}

/** The problem of one field: the API's message for its path, or for a path inside it. */
export function problemAt(error: unknown, path: string): string | undefined {
  const found = problemsOf(error).filter((one) => one.path === path || one.path.startsWith(`${path}.`))
  return found.length === 0 ? undefined : found.map(({ message }) => message).join('; ')
}

/** Whether this status came back: 404, 409 ... */
export function isRefused(error: unknown, status: number): boolean {
  return error instanceof Refusal && error.status === status
}
