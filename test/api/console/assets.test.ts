import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const host = await keep(startService())
const origin = await host.listen()

test('console files have a type, a strict policy and a tag; 304 has the same headers', async () => {
  const page = await host.request('/')
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page.headers.get('cache-control')).toBe('no-cache')
  const html = await page.text()
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script>|https?:/)
  const named = [...html.matchAll(/(?:src|href)="(console\/[^"]+)"/g)].map(([, path]) => `/${path}`)
  expect(named.length).toBeGreaterThan(3)
  for (const path of ['/', ...named, '/console/graph.js']) {
    const file = await host.request(path)
    expect([path, file.status]).toEqual([path, 200])
    const policy = file.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("require-trusted-types-for 'script'")
    expect(policy).not.toContain('unsafe')
    expect(file.headers.get('x-content-type-options')).toBe('nosniff')
    const tag = file.headers.get('etag')!
    const again = await host.request(path, { headers: { 'if-none-match': `"old", W/${tag}` } })
    expect([again.status, await again.text()]).toEqual([304, ''])
    for (const name of ['etag', 'content-security-policy', 'cache-control']) {
      expect(again.headers.get(name)).toBe(file.headers.get(name))
    }
  }
  const types = await Promise.all(
    ['main.js', 'base.css', 'icon.svg'].map((name) => host.request(`/console/${name}`)),
  )
  expect(types.map((file) => file.headers.get('content-type'))).toEqual([
    'text/javascript; charset=utf-8',
    'text/css; charset=utf-8',
    'image/svg+xml',
  ])
})

test('other files, in the folder or outside it, are not served', async () => {
  for (const name of ['jsconfig.json', 'nothing.js', '..%2fapp.ts', '%2e%2e%2fconsole.ts', '__proto__']) {
    expect([name, (await host.request(`/console/${name}`)).status]).toEqual([name, 404])
  }
  expect((await host.request('/console/main.js', { method: 'POST' })).status).toBe(405)
})

test('requests for console files do not count against the rate limits', async () => {
  const left = async (path: string) =>
    Number((await fetch(origin + path)).headers.get('x-ratelimit-remaining'))
  // If a new minute begins between two counted requests, the count is done again.
  await expect
    .poll(async () => {
      const before = await left('/api/nothing')
      for (const path of ['/', '/console/main.js', '/console/base.css']) await left(path)
      return before - (await left('/api/nothing'))
    })
    .toBe(1)
})

test('every example can be saved, and the data that it speaks of is JSON', async () => {
  const { EXAMPLES } = await import(new URL('../../../api/console/examples.js', import.meta.url).href)
  const { cookie } = await host.signUp('BUILDER')
  const { teamId } = host
  const demo = { teamId, name: 'Demo model', type: 'DEMO', data: {} }
  const { body } = await host.call('POST', '/api/credentials', cookie, demo)
  for (const { name, make } of EXAMPLES) {
    const draft = make(body.id)
    const made = await host.call('POST', '/api/workflows', cookie, { ...draft, teamId })
    expect([name, made.status, made.body.warnings]).toEqual([name, 201, undefined])
    const data = /\{.*\}/.exec(draft.description)?.[0]
    if (data !== undefined) expect([name, JSON.parse(data)]).toEqual([name, expect.any(Object)])
  }
})
