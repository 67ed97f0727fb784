import { createHash, randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Context, Hono } from 'hono'
import { Fault } from '../db/fault.ts'
import { buildConsole } from './consolebuild.ts'
import type { AppEnv } from './env.ts'
import { hasState } from './http/tags.ts'

const ICON = fileURLToPath(new URL('./console/icon.svg', import.meta.url))

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

type Asset = {
  body: Buffer<ArrayBuffer>
  packed: Buffer<ArrayBuffer> | undefined
  type: string
  tag: string
  /** The name changes with what is in it, so that browsers may keep it for ever. */
  fixed: boolean
}
type Console = { page: string; assets: Map<string, Asset> }

/**
 * The console: its page at / and its files under /console/, read once. They are not part of the API, and the
 * rate limits do not count them. Where it is not built yet, the first request waits for it.
 */
export function createConsoleRoutes() {
  let reading: Promise<Console> | undefined
  const read = () => {
    reading ??= readConsole()
    // A build that failed is tried again by the next request.
    reading.catch(() => {
      reading = undefined
    })
    return reading
  }
  return new Hono<AppEnv>()
    .get('/', async (c) => respondWithPage(c, (await read()).page))
    .get('/console/:name', async (c) => {
      return respondWithAsset(c, (await read()).assets.get(c.req.param('name')))
    })
}

async function readConsole(): Promise<Console> {
  const { folder, release } = await buildConsole()
  try {
    return await readFolder(folder)
  } finally {
    await release()
  }
}

async function readFolder(folder: string): Promise<Console> {
  const names = await readdir(join(folder, 'console'))
  const assets = await Promise.all(
    names.flatMap((name) => {
      const type = TYPES[extname(name)]
      return type ? [readAsset(join(folder, 'console', name), name, type, true)] : []
    }),
  )
  // Other pages of the service have the icon too, and know no name that changes.
  const icon = await readAsset(ICON, 'icon.svg', 'image/svg+xml', false)
  return { page: await readFile(join(folder, 'index.html'), 'utf8'), assets: new Map([...assets, icon]) }
}

async function readAsset(
  path: string,
  name: string,
  type: string,
  fixed: boolean,
): Promise<readonly [string, Asset]> {
  const body = await readFile(path)
  const packed = await readFile(`${path}.gz`).catch(() => undefined)
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  return [name, { body, packed, type, tag, fixed }]
}

/**
 * Stricter than for other pages: only scripts of this origin, no requests to other origins, and strings never
 * become markup (trusted types). The nonce is for the style elements that CodeMirror and the components make.
 */
function writePolicy(nonce: string): string {
  return [
    `default-src 'none'; script-src 'self' 'nonce-${nonce}'; style-src 'self' 'nonce-${nonce}'; img-src 'self'`,
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "require-trusted-types-for 'script'; trusted-types 'none'",
  ].join('; ')
}

function respondWithPage(c: Context<AppEnv>, page: string): Response {
  const nonce = randomBytes(16).toString('base64url')
  // Without a tag: a 304 would bring a new policy to a page that has an old nonce.
  c.header('Cache-Control', 'no-cache')
  c.header('Content-Security-Policy', writePolicy(nonce))
  return c.html(page.replaceAll('__NONCE__', nonce))
}

function respondWithAsset(c: Context<AppEnv>, asset: Asset | undefined): Response {
  if (!asset) throw new Fault('NOT_FOUND', 'There is nothing at this address')
  c.header('Cache-Control', asset.fixed ? 'public, max-age=31536000, immutable' : 'no-cache')
  c.header('ETag', asset.tag)
  c.header('Vary', 'Accept-Encoding')
  // A browser replaces the cached headers by those of a 304, so a 304 must carry the same ones.
  c.header('Content-Type', asset.type)
  c.header('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'")
  if (hasState(c, asset.tag)) return c.body(null, 304)
  if (!asset.packed || !/\bgzip\b/.test(c.req.header('accept-encoding') ?? '')) return c.body(asset.body)
  c.header('Content-Encoding', 'gzip')
  return c.body(asset.packed)
}
