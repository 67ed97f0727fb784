/** Unwraps a body whose only key is `data`, since requests that start executions have their data there. */
export function unwrapData(body: unknown): unknown {
  const keys = Object.keys(Object(body))
  return keys.length === 1 && keys[0] === 'data' ? (body as { data: unknown }).data : body
}
