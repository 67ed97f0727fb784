import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const host = await keep(startService())
const origin = await host.listen()

/** The page, and the addresses of the files that it names. */
async function readPage() {
  const page = await host.request('/')
  const html = await page.text()
  const files = [...html.matchAll(/(?:src|href)="\.\/(console\/[^"]+)"/g)].map(([, path]) => `/${path}`)
  return { page, html, files }
}

test('the page has a strict policy, and another nonce each time', async () => {
  const { page, html, files } = await readPage()
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toMatch(/^text\/html; charset=utf-8$/i)
  expect(page.headers.get('cache-control')).toBe('no-cache')
  // A 304 would bring a new nonce to an old page.
  expect(page.headers.get('etag')).toBeNull()
  const policy = page.headers.get('content-security-policy')!
  const nonce = /script-src 'self' 'nonce-([\w-]{20,})'/.exec(policy)?.[1]
  expect(policy).toContain(`style-src 'self' 'nonce-${nonce}'`)
  for (const part of ["default-src 'none'", "require-trusted-types-for 'script'; trusted-types 'none'"]) {
    expect(policy).toContain(part)
  }
  expect(policy).not.toMatch(/unsafe|data:|blob:|\*/)
  expect(page.headers.get('x-content-type-options')).toBe('nosniff')
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|https?:|__NONCE__/)
  const scripts = [...html.matchAll(/<script[^>]*>/g)].map(([tag]) => tag)
  expect(scripts.length).toBeGreaterThan(1)
  for (const tag of scripts) expect(tag).toContain(`nonce="${nonce}"`)
  expect(files.length).toBeGreaterThan(2)
  const again = await readPage()
  expect(again.html).not.toContain(nonce)
})

test('files are kept for ever, have a type and a tag, and come compressed', async () => {
  const { files } = await readPage()
  const types: Record<string, string> = {
    js: 'text/javascript; charset=utf-8',
    css: 'text/css; charset=utf-8',
    svg: 'image/svg+xml',
  }
  for (const path of files) {
    const file = await host.request(path)
    expect([path, file.status, file.headers.get('content-type')]).toEqual([
      path,
      200,
      types[path.split('.').pop()!],
    ])
    expect(file.headers.get('cache-control')).toContain('immutable')
    expect(file.headers.get('vary')).toContain('Accept-Encoding')
    const plain = Buffer.from(await file.arrayBuffer())
    const packed = await host.request(path, { headers: { 'accept-encoding': 'gzip, br' } })
    expect(packed.headers.get('content-encoding')).toBe('gzip')
    expect(gunzipSync(Buffer.from(await packed.arrayBuffer())).equals(plain)).toBe(true)
    const tag = file.headers.get('etag')!
    const again = await host.request(path, { headers: { 'if-none-match': `"old", W/${tag}` } })
    expect([again.status, await again.text()]).toEqual([304, ''])
    for (const name of ['etag', 'content-security-policy', 'cache-control']) {
      expect(again.headers.get(name)).toBe(file.headers.get(name))
    }
  }
})

test('what a browser loads at first is less than 300 KB', async () => {
  const { files } = await readPage()
  const sizes = await Promise.all(
    files.map(async (path) => {
      const file = await host.request(path, { headers: { 'accept-encoding': 'gzip' } })
      return (await file.arrayBuffer()).byteLength
    }),
  )
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(270_000)
})

test('other files, in the folder or outside it, are not served', async () => {
  for (const name of [
    'index.html',
    'sources.txt',
    'nothing.js',
    '..%2fapp.ts',
    '%2e%2e%2fconsole.ts',
    '__proto__',
  ]) {
    expect([name, (await host.request(`/console/${name}`)).status]).toEqual([name, 404])
  }
  const { files } = await readPage()
  expect((await host.request(files[0]!, { method: 'POST' })).status).toBe(405)
})

test('requests for console files do not count against the rate limits', async () => {
  const { files } = await readPage()
  const left = async (path: string) =>
    Number((await fetch(origin + path)).headers.get('x-ratelimit-remaining'))
  // If a new minute begins between two counted requests, the count is done again.
  await expect
    .poll(async () => {
      const before = await left('/api/nothing')
      for (const path of ['/', ...files]) await left(path)
      return before - (await left('/api/nothing'))
    })
    .toBe(1)
})
