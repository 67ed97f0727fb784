import type { MiddlewareHandler } from 'hono'
import type { RouterRoute } from 'hono/types'
import type { AppEnv } from './app.ts'

/**
 * A path that is written out is not one with a parameter: /api/workflows/import is no workflow of that id, so a
 * method that it does not take is taken by nobody.
 */
export function keepLiteral(read: () => RouterRoute[]): MiddlewareHandler<AppEnv> {
  let known: Map<string, Set<string>> | undefined
  return async (c, next) => {
    known ??= listLiteral(read())
    const methods = known.get(c.req.path)
    const method = c.req.method === 'HEAD' ? 'GET' : c.req.method
    return !methods || methods.has(method) ? next() : c.notFound()
  }
}

/** By path, the methods of the routes without parameters. */
export function listLiteral(routes: RouterRoute[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const { method, path } of routes) {
    if (method === 'ALL' || /[:*]/.test(path)) continue
    found.set(path, (found.get(path) ?? new Set()).add(method))
  }
  return found
}
