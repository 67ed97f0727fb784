import { networkInterfaces } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import { isHookPath, type OwnPlace } from '../../../activities/egress/ownplaces.ts'
import { expectKind, text, useLoopback } from '../../support/servers/loopback.ts'

const { clientOf, serve } = useLoopback()

/** The rules that open most, by every way to open. */
const OPEN = {
  loopback: { allowLoopback: true, allow: [] },
  ranges: { allowLoopback: false, allow: ['0.0.0.0/0', '::/0'] },
  any: { allowLoopback: true, allow: [], any: true },
}
/** Every way to write an address of this machine, by name, number or wildcard. */
const THIS_MACHINE = [
  ...['127.0.0.1', 'localhost', '127.0.0.2', '127.255.255.254', '0.0.0.0', '2130706433'],
  ...[
    '0x7f.1',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
  ],
  ...Object.values(networkInterfaces()).flatMap((list) =>
    list!
      .filter(({ scopeid }) => !scopeid)
      .map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address)),
  ),
]
const DATABASE = new URL(inject('databaseUrl'))
const TEMPORAL = new URL(`http://${inject('temporalAddress')}`)
const own: OwnPlace[] = [
  { what: 'the database of this service', host: DATABASE.hostname, port: Number(DATABASE.port) },
  { what: 'the Temporal server of this service', host: TEMPORAL.hostname, port: Number(TEMPORAL.port) },
]

describe("the service's own PostgreSQL and Temporal are out of reach", () => {
  test.each(Object.entries(OPEN))(
    'whatever the rules (%s) and however their address is written',
    async (_, rules) => {
      const client = clientOf({ ...rules, own: () => own })
      const get = (url: string) => client.request({ method: 'GET', url })
      for (const host of THIS_MACHINE) {
        for (const { port, what } of own) {
          const error = await expectKind(get(`http://${host}:${port}/`), 'refused-address')
          expect(error.message).toContain(what)
        }
      }
      const { url } = await serve((_req, res) => res.end('another'))
      expect(text((await get(url)).body)).toBe('another')
    },
  )

  test('by a name that leads to them, at any of its addresses', async () => {
    const resolve = async (host: string) =>
      host === 'db.example' ? [{ address: '127.0.0.1', family: 4 }] : [{ address: '127.0.0.9', family: 4 }]
    const client = clientOf({ ...OPEN.any, own: () => own, resolve })
    for (const host of ['db.example', 'other.example', 'OTHER.example.'])
      await expectKind(
        client.request({ method: 'GET', url: `http://${host}:${DATABASE.port}/` }),
        'refused-address',
      )
  })

  test('by a redirect', async () => {
    const client = clientOf({ ...OPEN.any, own: () => own })
    for (const status of [302, 307]) {
      const { url } = await serve((_req, res) =>
        res.writeHead(status, { location: `http://127.0.0.2:${TEMPORAL.port}/api/v1/namespaces` }).end(),
      )
      await expectKind(client.request({ method: 'POST', url, body: '{}' }), 'refused-address')
    }
  })

  test('on other machines, by name and by address, also by one that the name leads to later', async () => {
    let current = '10.0.0.5'
    const resolve = async (host: string) => [
      { address: host === 'db.example' ? current : '10.0.0.5', family: 4 },
    ]
    const remote: OwnPlace[] = [{ what: 'the database of this service', host: 'db.example', port: 5432 }]
    const client = clientOf({ ...OPEN.any, own: () => remote, resolve })
    const refused = (host: string) =>
      expectKind(client.request({ method: 'GET', url: `http://${host}:5432/` }), 'refused-address')
    for (const host of [
      '10.0.0.5',
      '[::ffff:10.0.0.5]',
      '[64:ff9b::a00:5]',
      '[2002:a00:5::]',
      'alias.example',
    ])
      await refused(host)
    current = '10.0.0.6'
    await refused('db.example')
  })

  test('with all ports, where a whole address is theirs', async () => {
    const { port } = await serve((_req, res) => res.end('inside'), '127.7.7.7')
    const whole: OwnPlace[] = [{ what: 'the Temporal server of this service', host: '127.7.7.7' }]
    const client = clientOf({ ...OPEN.any, own: () => whole })
    for (const host of ['127.7.7.7', '[::ffff:127.7.7.7]']) {
      const error = await expectKind(
        client.request({ method: 'GET', url: `http://${host}:${port}/` }),
        'refused-address',
      )
      expect(error.message).toContain('the Temporal server of this service')
    }
    const { url } = await serve((_req, res) => res.end('another'))
    expect(text((await client.request({ method: 'GET', url })).body)).toBe('another')
  })
})

describe("of the service's own API only /hooks and /resume can be called", () => {
  async function serveApi() {
    const calls: string[] = []
    const { port } = await serve((req, res) => {
      calls.push(req.url!)
      res.end('called')
    })
    const api: OwnPlace[] = [{ what: 'this service itself', host: '127.0.0.1', port, isApi: true }]
    return { calls, port, api }
  }

  const OTHERS = [
    ...[
      '/',
      '/api/teams',
      '/metrics',
      '/healthz',
      '/hooks',
      '/hooks/',
      '/resume',
      '/hooksx/a/b',
      '/Hooks/a/b',
    ],
    ...[
      '/hooks/../api/teams',
      '/hooks/%2e%2e/api/teams',
      '/hooks/.%2E/api',
      '/hooks/..%2fapi',
      '/hooks/..%5capi',
    ],
    ...[
      '/hooks/%252e%252e/api',
      '/hooks/a/..;/api',
      '/hooks//a',
      '//hooks/a/b',
      '/%68ooks/a/b',
      '/./api/teams',
    ],
    ...[
      '/hooks\\..\\api',
      '/\t/api',
      '/api/../metrics',
      '/resume/../../api',
      '/api?/hooks/a/b',
      '/api#/hooks/a/b',
    ],
  ]

  test.each(Object.entries(OPEN))('whatever the rules (%s)', async (_, rules) => {
    const { calls, port, api } = await serveApi()
    const client = clientOf({ ...rules, own: () => api })
    for (const path of OTHERS) {
      const error = await expectKind(
        client.request({ method: 'GET', url: `http://127.0.0.1:${port}${path}` }),
        'refused-address',
      )
      expect(error.message).toContain(
        'this service itself, of which workflows may call only /hooks and /resume',
      )
    }
    for (const host of THIS_MACHINE)
      await expectKind(
        client.request({ method: 'GET', url: `http://${host}:${port}/api/teams` }),
        'refused-address',
      )
    expect(calls).toEqual([])
    for (const path of ['/hooks/0b9f/orders', '/resume/abc.def-_'])
      expect(
        text((await client.request({ method: 'POST', url: `http://127.0.0.1:${port}${path}?a=/api` })).body),
      ).toBe('called')
    expect(calls).toEqual(['/hooks/0b9f/orders?a=/api', '/resume/abc.def-_?a=/api'])
  })

  test('through redirects, and over a connection that a call of a hook has left open', async () => {
    const { calls, port, api } = await serveApi()
    const client = clientOf({ ...OPEN.any, own: () => api })
    const here = `http://127.0.0.1:${port}`
    const get = (url: string) => client.request({ method: 'GET', url })
    await get(`${here}/hooks/a/b`)
    await expectKind(get(`${here}/api/teams`), 'refused-address')
    const bad = await serve((_req, res) => res.writeHead(302, { location: `${here}/api/teams` }).end())
    await expectKind(get(bad.url), 'refused-address')
    const good = await serve((_req, res) => res.writeHead(302, { location: `${here}/hooks/a/b` }).end())
    await get(good.url)
    // A hook may answer with a redirect to the rest of the API.
    const { port: second } = await serve((_req, res) => res.writeHead(302, { location: '/api/teams' }).end())
    const other = clientOf({ ...OPEN.any, own: () => [{ ...api[0]!, port: second }] })
    await expectKind(
      other.request({ method: 'GET', url: `http://localhost:${second}/hooks/a/b` }),
      'refused-address',
    )
    expect(calls).toEqual(['/hooks/a/b', '/hooks/a/b'])
  })

  test('its hooks can be called where loopback is closed, if it is certain to be there, and nothing else', async () => {
    const { port, api } = await serveApi()
    const certain = api.map((place) => ({ ...place, isCertain: true }))
    const strict = clientOf({ allowLoopback: false, allow: [], own: () => certain })
    const { url } = await serve((_req, res) => res.end('another'))
    expect((await strict.request({ method: 'GET', url: `http://127.0.0.1:${port}/hooks/a/b` })).status).toBe(
      200,
    )
    await expectKind(
      strict.request({ method: 'GET', url: `http://127.0.0.1:${port}/api` }),
      'refused-address',
    )
    await expectKind(strict.request({ method: 'GET', url: `${url}/hooks/a/b` }), 'refused-address')
    const unsure = clientOf({ allowLoopback: false, allow: [], own: () => api })
    const error = await expectKind(
      unsure.request({ method: 'GET', url: `http://127.0.0.1:${port}/hooks/a/b` }),
      'refused-address',
    )
    expect(error.message).toContain('not a public address (loopback)')
  })

  test('by its public name too, while other names at the same address are others', async () => {
    const { port } = await serve((_req, res) => res.end('behind the proxy'))
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
    const api: OwnPlace[] = [
      {
        what: 'this service itself',
        host: 'flows.example',
        port,
        isApi: true,
        byName: true,
        base: '/perdure',
      },
    ]
    const client = clientOf({ ...OPEN.loopback, own: () => api, resolve })
    const get = (url: string) => client.request({ method: 'GET', url })
    for (const host of ['flows.example', 'FLOWS.example.', '127.0.0.1', '[::ffff:127.0.0.1]']) {
      await expectKind(get(`http://${host}:${port}/api/teams`), 'refused-address')
      await expectKind(get(`http://${host}:${port}/perdure/api/teams`), 'refused-address')
      expect((await get(`http://${host}:${port}/perdure/hooks/a/b`)).status).toBe(200)
    }
    expect((await get(`http://shop.example:${port}/api/teams`)).status).toBe(200)
  })

  test('a path is a hook only if each part is of plain characters', () => {
    for (const good of ['/hooks/a/b', '/hooks/0b9f-1/orders_2', '/resume/a.b', '/resume/a~b'])
      expect([good, isHookPath(good)]).toEqual([good, true])
    for (const bad of [
      '/hooks/a/.',
      '/hooks/a/..',
      '/resume/.a',
      '/hooks/ä/b',
      '/x/hooks/a/b',
      '/hooks/a/b\n',
    ])
      expect([bad, isHookPath(bad)]).toEqual([bad, false])
  })
})

test('when loopback is closed while the service runs, connections that were left open are given up', async () => {
  let why: string | null = null
  const client = clientOf({ allowLoopback: () => why, allow: [] })
  const { server, url } = await serve((_req, res) => res.end('here'))
  let connections = 0
  server.on('connection', () => connections++)
  const get = () => client.request({ method: 'GET', url })
  for (let calls = 0; calls < 3; calls++) {
    expect(text((await get()).body)).toBe('here')
    await setImmediate()
  }
  expect(connections).toBe(1)
  why = 'somebody called'
  const { message } = await expectKind(get(), 'refused-address')
  expect(message).toContain('loopback is closed since somebody called: EGRESS_ALLOW=127.0.0.0/8 opens it')
})
