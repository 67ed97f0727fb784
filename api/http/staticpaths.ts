import type { MiddlewareHandler } from 'hono'
import type { RouterRoute } from 'hono/types'
import type { AppEnv } from '../env.ts'

/**
 * Makes a static path hide a path with a parameter for every method: GET /api/workflows/import is a 405, not
 * a look-up of the id `import`. `read` returns all routes, once they are registered.
 */
export function guardStaticPaths(read: () => RouterRoute[]): MiddlewareHandler<AppEnv> {
  let known: Map<string, Set<string>> | undefined
  return async (c, next) => {
    known ??= listStaticPaths(read())
    const methods = known.get(c.req.path)
    const method = c.req.method === 'HEAD' ? 'GET' : c.req.method
    return !methods || methods.has(method) ? next() : c.notFound()
  }
}

/** The methods of the routes whose paths have no parameters, by path. */
export function listStaticPaths(routes: RouterRoute[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const { method, path } of routes) {
    if (method === 'ALL' || /[:*]/.test(path)) continue
    found.set(path, (found.get(path) ?? new Set()).add(method))
  }
  return found
}
