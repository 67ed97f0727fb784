import { getEventListeners, once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createHttpClient } from '../../../activities/http/http.ts'
import { expectKind, LOCAL, text, useLoopback } from '../../support/servers/loopback.ts'

const { open, local, clientOf, serve, serveTcp, get } = useLoopback()

async function readAll(req: IncomingMessage) {
  let body = ''
  for await (const chunk of req) body += chunk
  return body
}

const echo: RequestListener = async (req, res) => {
  const { method, url, headers } = req
  res.end(JSON.stringify({ method, url, headers, body: await readAll(req) }))
}

describe('redirects', () => {
  test('each redirect is checked: one to a refused IP literal fails', async () => {
    let hits = 0
    const inside = await serve((_req, res) => res.end(String(++hits)))
    const outside = await serve(
      (_req, res) => res.writeHead(302, { location: inside.url }).end(),
      '127.0.0.2',
    )
    const strict = clientOf({ allowLoopback: false, allow: ['127.0.0.2'] })
    await expectKind(strict.request({ method: 'GET', url: outside.url }), 'refused-address')
    expect(hits).toBe(0)
  })

  test('credentials are sent to the same origin only', async () => {
    const other = await serve(echo)
    const { url } = await serve((req, res) => {
      if (req.url === '/away') res.writeHead(307, { location: `${other.url}/x` }).end()
      else if (req.url === '/near') res.writeHead(307, { location: '/here' }).end()
      else echo(req, res)
    })
    const headers = { Authorization: 'Bearer abc', Cookie: 'a=b', 'X-Api-Key': 'k', 'X-Plain': 'p' }
    const near = JSON.parse(text((await get(`${url}/near`, { headers })).body))
    expect(near.headers).toMatchObject({ authorization: 'Bearer abc', cookie: 'a=b', 'x-api-key': 'k' })
    const away = JSON.parse(
      text((await local.request({ method: 'POST', url: `${url}/away`, headers, body: 'B' })).body),
    )
    expect(away).toMatchObject({ method: 'POST', body: 'B', headers: { 'x-plain': 'p' } })
    for (const name of ['authorization', 'cookie', 'x-api-key']) expect(away.headers).not.toHaveProperty(name)
    const basic = JSON.parse(text((await get(url.replace('//', '//us%40er:pa%20ss@'))).body))
    expect(basic.headers.authorization).toBe(`Basic ${Buffer.from('us@er:pa ss').toString('base64')}`)
  })

  test.each([
    [301, 'POST', 'GET'],
    [302, 'POST', 'GET'],
    [303, 'POST', 'GET'],
    [303, 'PUT', 'GET'],
    [302, 'PUT', 'PUT'],
    [307, 'POST', 'POST'],
    [308, 'DELETE', 'DELETE'],
    [303, 'HEAD', 'HEAD'],
  ])('status %i redirects a %s as %s', async (status, method, next) => {
    const seen: string[] = []
    const { url } = await serve(async (req, res) => {
      seen.push(`${req.method} ${await readAll(req)} ${req.headers['content-type'] ?? ''}`.trim())
      if (req.url === '/') res.writeHead(status, { location: '/next' }).end('moved')
      else res.end('done')
    })
    const withBody = method !== 'HEAD' && method !== 'DELETE'
    await local.request({
      method,
      url,
      headers: { 'content-type': 'text/x' },
      ...(withBody ? { body: 'b' } : {}),
    })
    expect(seen).toHaveLength(2)
    if (next === 'GET') expect(seen[1]).toBe('GET')
    else expect(seen[1]).toBe(seen[0])
    expect(seen[1]?.split(' ')[0]).toBe(next)
  })

  test('at most five redirects are followed; one to an invalid URL or another scheme fails', async () => {
    let hops = 0
    const { url } = await serve((req, res) => {
      hops++
      const n = Number(req.url?.slice(2) ?? 0)
      const to: Record<string, string> = { '/file': 'file:///etc/passwd', '/bad': 'http://[' }
      res.writeHead(302, { location: to[req.url ?? ''] ?? `/n${n + 1}` }).end()
    })
    await expectKind(get(`${url}/n0`), 'redirect')
    expect(hops).toBe(6)
    await expectKind(get(`${url}/file`), 'redirect')
    await expectKind(get(`${url}/bad`), 'redirect')
  })

  test('a 304, and a 302 without a Location, are returned as responses', async () => {
    const { url } = await serve((req, res) => res.writeHead(req.url === '/a' ? 304 : 302).end())
    expect((await get(`${url}/a`)).status).toBe(304)
    expect((await get(`${url}/b`)).status).toBe(302)
  })
})

describe('responses', () => {
  test('the request arrives as given, and connections are reused', async () => {
    const ports = new Set<number | undefined>()
    const { url } = await serve((req, res) => {
      ports.add(req.socket.remotePort)
      return echo(req, res)
    })
    const sent = {
      method: 'post',
      url: `${url}/p?q=1#f`,
      headers: { 'X-A': 'é' },
      body: new Uint8Array([0xc3, 0xa9]),
    }
    const response = await local.request(sent)
    expect(response.status).toBe(200)
    const seen = JSON.parse(text(response.body))
    expect(seen).toMatchObject({
      method: 'POST',
      url: '/p?q=1',
      body: 'é',
      headers: { 'x-a': 'é', 'user-agent': 'Perdure' },
    })
    for (let i = 0; i < 20; i++) await get(url)
    expect(ports.size).toBeLessThanOrEqual(2)
  })

  test.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['identity', (body: Buffer) => body],
  ])('content encoding %s is undone', async (encoding, pack) => {
    const { url } = await serve((_req, res) => {
      res.setHeader('content-encoding', encoding).end(pack(Buffer.from('hello '.repeat(1_000))))
    })
    expect(text((await get(url)).body)).toBe('hello '.repeat(1_000))
  })

  test('two encodings are undone; a thousand, an unknown one and a broken one are network errors', async () => {
    const bodies: Record<string, [string, Buffer]> = {
      '/two': ['gzip, br', brotliCompressSync(gzipSync('x'))],
      '/many': [Array(1_000).fill('gzip').join(','), gzipSync('x')],
      '/odd': ['constructor', Buffer.from('x')],
      '/broken': ['gzip', Buffer.from('no gzip at all')],
      '/cut': ['gzip', gzipSync('x'.repeat(10_000)).subarray(0, 30)],
    }
    const { url } = await serve((req, res) => {
      const [encoding, body] = bodies[req.url ?? ''] as [string, Buffer]
      res.setHeader('content-encoding', encoding).end(body)
    })
    expect(text((await get(`${url}/two`)).body)).toBe('x')
    for (const path of ['/many', '/odd', '/broken', '/cut']) await expectKind(get(url + path), 'network')
  })

  test('a body over the limit fails, whether it is endless or decompressed from a small gzip', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024))
    let closed: Promise<unknown> = Promise.resolve()
    const { url } = await serve((req, res) => {
      if (req.url === '/bomb') res.setHeader('content-encoding', 'gzip').end(bomb)
      else {
        closed = once(res, 'close')
        pump(res)
      }
    })
    await expectKind(get(`${url}/bomb`), 'too-large')
    await expectKind(get(`${url}/endless`), 'too-large')
    await closed
    await expectKind(get(`${url}/endless`, { maxBytes: 10 }), 'too-large')
    await closed
  })

  test('a body of exactly the limit passes', async () => {
    const { url } = await serve((_req, res) => res.end('x'.repeat(1_000)))
    expect((await get(url, { maxBytes: 1_000 })).body).toHaveLength(1_000)
    await expectKind(get(url, { maxBytes: 999 }), 'too-large')
  })

  test('response headers named like properties of objects do no harm', async () => {
    const url = await serveTcp((socket) => {
      socket.once('data', () => {
        socket.end(
          'HTTP/1.1 200 OK\r\n__proto__: p\r\nconstructor: c\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nContent-Length: 0\r\n\r\n',
        )
      })
    })
    const { headers, cookies } = await get(url)
    expect(cookies).toEqual(['a=1', 'b=2'])
    expect(Object.entries(headers)).toContainEqual(['__proto__', 'p'])
    expect(headers).toMatchObject({ constructor: 'c', 'set-cookie': 'a=1, b=2' })
  })
})

function pump(res: ServerResponse) {
  const chunk = Buffer.alloc(64 * 1024)
  const more = () => {
    while (!res.destroyed && res.write(chunk)) {}
  }
  res.on('drain', more)
  more()
}

describe('time and abort', () => {
  test.each(['/headers', '/body', '/drip', '/loop'])(
    'the deadline also ends a slow response: %s',
    async (path) => {
      const timers: NodeJS.Timeout[] = []
      const { url } = await serve((req, res) => {
        if (req.url === '/body') res.writeHead(200).write('some')
        if (req.url === '/drip') timers.push(setInterval(() => res.write('.'), 10))
        if (req.url === '/loop') {
          timers.push(setTimeout(() => res.writeHead(302, { location: '/loop' }).end(), 100))
        }
      })
      const error = await expectKind(get(url + path, { timeoutMs: 250 }), 'timeout')
      expect(error.message).toContain('250 ms')
      for (const timer of timers) clearInterval(timer)
    },
  )

  test.each(['before the response', 'within the body'])(
    'an abort %s closes the socket at once',
    async (when) => {
      const stop = new AbortController()
      const closed = Promise.withResolvers<void>()
      const { url } = await serve((req, res) => {
        req.socket.on('close', () => closed.resolve())
        if (when === 'within the body') res.writeHead(200).write('some', () => stop.abort())
        else stop.abort()
      })
      await expectKind(get(url, { signal: stop.signal }), 'aborted')
      await closed.promise
    },
  )

  test('an abort takes effect during a name lookup, and before anything is sent', async () => {
    const stop = new AbortController()
    const hanging = clientOf({
      ...LOCAL,
      resolve: () => {
        stop.abort()
        return new Promise(() => {})
      },
    })
    await expectKind(
      hanging.request({ method: 'GET', url: 'http://slow.example/', signal: stop.signal }),
      'aborted',
    )
    await expectKind(get('http://127.0.0.1:9/', { signal: AbortSignal.abort() }), 'aborted')
  })

  test('a signal that outlives its requests keeps no listeners of them', async () => {
    const { url } = await serve((_req, res) => res.end('x'))
    const stop = new AbortController()
    const { signal } = stop
    for (let i = 0; i < 5; i++) await get(url, { signal })
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    const request = get(url, { signal })
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    await request
  })
})

describe('errors', () => {
  test('resets, early ends, invalid HTTP and refused connections are network errors', async () => {
    const endings = [
      (socket: Socket) => socket.resetAndDestroy(),
      (socket: Socket) => socket.end(),
      (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort'),
      (socket: Socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'),
      (socket: Socket) => socket.end(`HTTP/1.1 200 OK\r\nX: ${'a'.repeat(200_000)}\r\n\r\n`),
    ]
    for (const end of endings) {
      const url = await serveTcp((socket) => socket.once('data', () => end(socket)))
      await expectKind(get(url), 'network')
    }
    const gone = await serve((_req, res) => res.end())
    gone.server.closeAllConnections()
    await new Promise((resolve) => gone.server.close(resolve))
    const error = await expectKind(get(`${gone.url}/secret/path?token=t`), 'network')
    expect(error.message).toContain('connection refused')
    expect(error.message).not.toContain('secret')
  })

  test('a name that does not exist is a network error that names the host', async () => {
    const resolve = async () => {
      throw Object.assign(new Error('getaddrinfo ENOTFOUND no.example'), { code: 'ENOTFOUND' })
    }
    const client = clientOf({ ...LOCAL, resolve })
    const error = await expectKind(client.request({ method: 'GET', url: 'http://no.example/' }), 'network')
    expect(error.message).toBe('no.example: host not found')
  })

  test.each(['', 'no url', '/path', 'ftp://a/', 'file:///etc/passwd', 'javascript:1', 'http://'])(
    'the URL %j is a bad-url error',
    async (url) => {
      await expectKind(get(url), 'bad-url')
    },
  )

  test.each([
    { method: 'CONNECT' },
    { method: 'G ET' },
    { headers: { 'x-a': 'b\r\nx-c: d' } },
    { headers: { 'x a': 'b' } },
    { headers: { 'x-a': '✓' } },
    { headers: { host: 'other' } },
    { headers: { 'Transfer-Encoding': 'chunked' } },
  ])('a request with %j is not sent', async (more) => {
    await expectKind(get('http://127.0.0.1:9/', more), 'bad-request')
  })

  test('proxies named by the environment are not used', async () => {
    const { url } = await serve((_req, res) => res.end('direct'))
    process.env.HTTP_PROXY = process.env.http_proxy = 'http://127.0.0.1:9'
    open.push(() => {
      delete process.env.HTTP_PROXY
      delete process.env.http_proxy
    })
    expect(text((await clientOf(LOCAL).request({ method: 'GET', url })).body)).toBe('direct')
  })

  test('close ends requests that are under way', async () => {
    const client = createHttpClient(LOCAL)
    const { server, url } = await serve(() => {})
    const received = once(server, 'request')
    const error = expectKind(client.request({ method: 'GET', url }), 'network')
    await received
    await client.close()
    await error
  })
})
