import type { RequestListener } from 'node:http'
import { describe, expect, test } from 'vitest'
import { demandHost } from '../../../activities/http/authority.ts'
import type { HttpRequest } from '../../../activities/http/http.ts'
import { expectKind, text, useLoopback } from '../../support/servers/loopback.ts'

const { local, serve } = useLoopback()

const echo: RequestListener = (req, res) => {
  const { method, url, headers } = req
  res.end(JSON.stringify({ method, url, headers }))
}

type Seen = { url: string; headers: Record<string, string> }

async function ask(req: Partial<HttpRequest> & { url: string }): Promise<Seen> {
  return JSON.parse(text((await local.request({ method: 'GET', ...req })).body))
}

const authorize = () => ({ headers: { 'X-Odd': 'canary-h' }, query: { 'a key': 'canary q&=' } })

describe('what a credential adds', () => {
  test('goes to its origin, in the place of what was there under the same name', async () => {
    const { url } = await serve(echo)
    const seen = await ask({
      url: `${url}/a%20b?x=%7e&a+key=own&y=1+2`,
      headers: { 'x-odd': 'own', 'x-other': 'stays' },
      authorize,
    })
    expect(seen.url).toBe('/a%20b?x=%7e&y=1+2&a%20key=canary%20q%26%3D')
    expect(seen.headers).toMatchObject({ 'x-odd': 'canary-h', 'x-other': 'stays' })
  })

  test('is asked for again at each redirect to the same origin', async () => {
    const { url } = await serve((req, res) => {
      const parameters = new URL(req.url ?? '', 'http://a').search
      // As many servers do, it copies the parameters into the location.
      if (req.url?.startsWith('/from')) res.writeHead(307, { location: `/to${parameters}` }).end()
      else echo(req, res)
    })
    const asked: string[] = []
    const seen = await ask({
      url: `${url}/from?x=1`,
      authorize: ({ method, url: { pathname } }) => {
        asked.push(`${method} ${pathname}`)
        return { headers: { 'x-odd': `for ${pathname}` }, query: { key: 'secret' } }
      },
    })
    expect(asked).toEqual(['GET /from', 'GET /to'])
    expect(seen).toMatchObject({ url: '/to?x=1&key=secret', headers: { 'x-odd': 'for /to' } })
  })

  test('never leaves its origin, and is not given again to one that leads back', async () => {
    const seen: Seen[] = []
    const home = await serve((req, res) => {
      seen.push({ url: req.url ?? '', headers: req.headers as Record<string, string> })
      const search = new URL(req.url ?? '', 'http://a').search
      if (req.url?.startsWith('/from')) res.writeHead(307, { location: `${away.url}/x${search}&z=1` }).end()
      else echo(req, res)
    })
    const away = await serve((req, res) => {
      seen.push({ url: req.url ?? '', headers: req.headers as Record<string, string> })
      res.writeHead(307, { location: `${home.url}/back` }).end()
    })
    await ask({ url: `${home.url}/from`, headers: { 'x-odd': 'own', 'x-plain': 'p' }, authorize })
    expect(seen.map(({ url }) => url)).toEqual(['/from?a%20key=canary%20q%26%3D', '/x?z=1', '/back'])
    expect(seen[0]?.headers).toMatchObject({ 'x-odd': 'canary-h' })
    for (const { headers } of seen.slice(1)) {
      expect(headers).toMatchObject({ 'x-plain': 'p' })
      expect(headers).not.toHaveProperty('x-odd')
    }
  })

  test('is masked for whoever watches', async () => {
    const { url } = await serve(echo)
    const sent: unknown[] = []
    await ask({ url, authorize, watch: { sent: (request) => sent.push(request), received() {} } })
    expect(sent).toMatchObject([
      { url: `${url}/?a%20key=%5Bredacted%5D`, headers: { 'x-odd': '[redacted]' } },
    ])
  })

  test('must be a header that can be sent', async () => {
    let hits = 0
    const { url } = await serve((_req, res) => res.end(String(++hits)))
    const bad = ['x-a: a\r\nb', 'a b: c', 'host: other', 'x-a: π']
    for (const [name = '', value = ''] of bad.map((header) => header.split(': ')))
      await expectKind(ask({ url, authorize: () => ({ headers: { [name]: value } }) }), 'bad-request')
    expect(hits).toBe(0)
  })
})

describe('a credential that is refused', () => {
  /** A server that takes only the token `good`, and what it was asked. */
  async function guard() {
    const seen: string[] = []
    const { url } = await serve(async (req, res) => {
      let body = ''
      for await (const part of req) body += part
      seen.push(`${req.method} ${req.headers.authorization ?? 'none'} ${body}`)
      res.statusCode = req.headers.authorization === 'good' ? 200 : 401
      res.end('x'.repeat(20_000))
    })
    return { url, seen }
  }

  const passOf = (tokens: string[]) => ({
    authorize: () => ({ headers: { authorization: tokens[0]! } }),
    renew: async () => {
      tokens.shift()
      return tokens.length > 0
    },
  })

  test('is renewed once, and the request is sent once more, with its body', async () => {
    const { url, seen } = await guard()
    const send = (tokens: string[]) => local.request({ method: 'POST', url, body: 'b', ...passOf(tokens) })
    expect((await send(['old', 'good'])).status).toBe(200)
    expect(seen.splice(0)).toEqual(['POST old b', 'POST good b'])
    expect((await send(['old', 'bad', 'good'])).status).toBe(401)
    expect(seen.splice(0)).toEqual(['POST old b', 'POST bad b'])
    const last = await send(['old'])
    expect([last.status, last.body.length]).toEqual([401, 20_000])
    expect(seen).toEqual(['POST old b'])
  })

  test('is not renewed for what another origin says', async () => {
    const other = await guard()
    const { url } = await serve((_req, res) => res.writeHead(307, { location: other.url }).end())
    const answer = await local.request({ method: 'GET', url, ...passOf(['old', 'good']) })
    expect([answer.status, other.seen]).toEqual([401, ['GET none ']])
  })

  test('passes on why it cannot be renewed, and does not outlast the time of the request', async () => {
    const { url } = await guard()
    const why = new Error('why')
    const authorize = passOf(['old']).authorize
    const refused = local.request({ method: 'GET', url, authorize, renew: () => Promise.reject(why) })
    await expect(refused).rejects.toBe(why)
    const hanging = local.request({
      method: 'GET',
      url,
      authorize,
      renew: () => new Promise(() => {}),
      timeoutMs: 300,
    })
    await expectKind(hanging, 'timeout')
  })
})

describe('allowed hosts', () => {
  test('are checked before each connection, also that of a redirect', async () => {
    let hits = 0
    const other = await serve((_req, res) => res.end(String(++hits)), '127.0.0.2')
    const { url } = await serve((req, res) => {
      if (req.url === '/away') res.writeHead(302, { location: other.url }).end()
      else echo(req, res)
    })
    const { port } = new URL(url)
    expect(await ask({ url: `${url}/near`, allowedHosts: [`127.0.0.1:${port}`] })).toMatchObject({
      url: '/near',
    })
    await expectKind(ask({ url: `${url}/away`, allowedHosts: ['127.0.0.1'] }), 'refused-host')
    await expectKind(ask({ url: other.url, allowedHosts: ['127.0.0.1', 'example.com'] }), 'refused-host')
    await expectKind(ask({ url: other.url, allowedHosts: [] }), 'refused-host')
    expect(hits).toBe(0)
  })

  const fits = (rule: string, url: string) => {
    try {
      demandHost([rule], new URL(url))
      return true
    } catch {
      return false
    }
  }

  test.each([
    ['api.example.com', 'https://api.example.com/x'],
    ['api.example.com', 'https://api.example.com:8443'],
    ['API.Example.com', 'https://api.example.com.'],
    ['api.example.com:443', 'https://api.example.com'],
    ['api.example.com:80', 'http://api.example.com'],
    ['*.example.com', 'https://a.b.example.com'],
    ['*.example.com:8443', 'https://a.example.com:8443'],
    ['bücher.example', 'https://xn--bcher-kva.example'],
    ['[::1]:8080', 'http://[0:0::1]:8080'],
    ['127.0.0.1', 'http://0x7f.1/'],
  ])('%s fits %s', (rule, url) => expect(fits(rule, url)).toBe(true))

  test.each([
    ['api.example.com', 'https://example.com'],
    ['api.example.com', 'https://api.example.com.evil.test'],
    ['api.example.com', 'https://xapi.example.com'],
    ['api.example.com', 'https://api.example.com@evil.test'],
    ['api.example.com:443', 'http://api.example.com'],
    ['*.example.com', 'https://example.com'],
    ['*.example.com', 'https://evilexample.com'],
    ['*.example.com:443', 'https://a.example.com:8443'],
    ['', 'https://example.com'],
    ['*.', 'https://example.com'],
  ])('%s does not fit %s', (rule, url) => expect(fits(rule, url)).toBe(false))
})
