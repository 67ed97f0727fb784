import type { MiddlewareHandler } from 'hono'
import type { RouterRoute } from 'hono/types'
import type { AppEnv } from '../env.ts'

/**
 * Makes a path that ends with a name hide one that ends with a parameter for every method: GET /api/workflows/import
 * is a 405, not a look-up of the id `import`. `read` returns all routes, once they are registered.
 */
export function guardStaticPaths(read: () => RouterRoute[]): MiddlewareHandler<AppEnv> {
  let find: ReturnType<typeof createStaticPaths> | undefined
  return async (c, next) => {
    // A preflight is answered by CORS, or by the 404 handler.
    if (c.req.method === 'OPTIONS') return next()
    find ??= createStaticPaths(read())
    const methods = find(c.req.path)
    const method = c.req.method === 'HEAD' ? 'GET' : c.req.method
    return !methods || methods.has(method) ? next() : c.notFound()
  }
}

/** Finds the methods of the routes that a path names by its last part; undefined without such routes. */
export function createStaticPaths(routes: RouterRoute[]): (path: string) => Set<string> | undefined {
  const byName = new Map<string, { parts: string[]; method: string }[]>()
  for (const { method, path } of routes) {
    const parts = path.split('/')
    const name = parts.at(-1)!
    // ALL marks middleware, and routes that check the method themselves.
    if (method === 'ALL' || /[:*]/.test(name)) continue
    const known = byName.get(name) ?? []
    byName.set(name, [...known, { parts, method }])
  }
  return (path) => {
    const parts = path.split('/')
    const named = byName.get(parts.at(-1)!)?.filter((route) => fits(route.parts, parts)) ?? []
    return named.length > 0 ? new Set(named.map(({ method }) => method)) : undefined
  }
}

function fits(route: string[], path: string[]): boolean {
  return route.length === path.length && route.every((part, at) => part.startsWith(':') || part === path[at])
}
