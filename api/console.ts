import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { type Context, Hono } from 'hono'
import { Fault } from '../db/fault.ts'
import type { AppEnv } from './env.ts'

const FOLDER = new URL('./console/', import.meta.url)

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

// Stricter than for other pages: only scripts of this origin, no requests to other origins, and strings never
// become markup (trusted types).
const POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'",
  "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
].join('; ')

type Asset = { body: Buffer<ArrayBuffer>; type: string; tag: string }

/**
 * The console: its page at / and its files under /console/, read once. They are not part of the API, and the
 * rate limits do not count them.
 */
export function createConsoleRoutes() {
  const assets = new Map(
    readdirSync(FOLDER).flatMap((name) => {
      const type = TYPES[extname(name)]
      return type ? [[name, readAsset(name, type)] as const] : []
    }),
  )
  return new Hono<AppEnv>()
    .get('/', (c) => respondWithAsset(c, assets.get('index.html')))
    .get('/console/:name', (c) => respondWithAsset(c, assets.get(c.req.param('name'))))
}

function readAsset(name: string, type: string): Asset {
  const body = Buffer.from(readFileSync(new URL(name, FOLDER)))
  return { body, type, tag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` }
}

async function respondWithAsset(c: Context<AppEnv>, asset: Asset | undefined): Promise<Response> {
  if (!asset) throw new Fault('NOT_FOUND', 'There is nothing at this address')
  // Browsers cache these but revalidate each time, so that after an update old files never run with new ones.
  c.header('Cache-Control', 'no-cache')
  c.header('ETag', asset.tag)
  // A browser replaces the cached headers by those of a 304, so a 304 must carry the same ones.
  c.header('Content-Type', asset.type)
  c.header('Content-Security-Policy', POLICY)
  const known = (c.req.header('if-none-match') ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  if (known.includes(asset.tag) || known.includes('*')) return c.body(null, 304)
  return c.body(asset.body)
}
