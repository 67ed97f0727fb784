import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { createEgress, type EgressOptions } from '../../../activities/egress/egress.ts'
import { CERT, KEY } from '../../support/servers/certificate.ts'
import { expectKind, LOCAL, text, useLoopback } from '../../support/servers/loopback.ts'

const { open, clientOf, serve, get } = useLoopback()

/**
 * A server that counts the connections to it, except those of `count` itself. Connections are accepted in
 * order, so when `count`'s own has arrived, all earlier ones have too.
 */
async function countConnections() {
  let all = 0
  const { server, port, url } = await serve((_req, res) => res.setHeader('connection', 'close').end())
  server.on('connection', () => all++)
  const count = async () => {
    await get(url)
    return all - 1
  }
  return { port, count }
}

/** A resolved address that is public when it is first read, and loopback afterwards. */
function moveAfterCheck() {
  let reads = 0
  const record = {
    family: 4,
    get address() {
      return reads++ === 0 ? '93.184.216.34' : '127.0.0.1'
    },
  }
  return { record, countReads: () => reads }
}

describe('addresses', () => {
  const egress = createEgress({ allowLoopback: false, allow: [] })
  const refusing =
    '127.0.0.1 127.8.8.8 0.0.0.0 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.100.100.200 168.63.129.16 224.0.0.1 240.0.0.1 255.255.255.255 192.0.2.1 198.18.0.1 :: ::1 ::127.0.0.1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:a00:1 ::ffff:168.63.129.16 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1:: 2001::1 fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254 fec0::1 ff02::1 5f00::1 2001:db8::1 nonsense'
  test.each(refusing.split(' '))('%s is refused', (address) => {
    expect(egress.refuse(address)).toEqual(expect.any(String))
  })

  test.each(['93.184.216.34', '8.8.8.8', '::ffff:8.8.8.8', '2606:4700::1111'])('%s is allowed', (address) => {
    expect(egress.refuse(address)).toBeNull()
  })

  test('CIDRs, loopback and `any` allow exactly the addresses they name', () => {
    const some = createEgress({ allowLoopback: true, allow: ['10.1.0.0/16', 'fd00::/8', '168.63.129.16'] })
    for (const good of ['10.1.2.3', '::ffff:10.1.2.3', 'fd00::5', '168.63.129.16', '127.0.0.1', '::1']) {
      expect(some.refuse(good)).toBeNull()
    }
    for (const bad of ['10.2.0.1', '0.0.0.0', 'fe80::1', '192.168.0.1']) {
      expect(some.refuse(bad)).toEqual(expect.any(String))
    }
    const any = createEgress({ allowLoopback: false, allow: [], any: true })
    for (const good of ['127.0.0.1', '169.254.169.254', 'fe80::1']) expect(any.refuse(good)).toBeNull()
    expect(() => createEgress({ allowLoopback: false, allow: ['10.0.0.0/99'] })).toThrow('10.0.0.0/99')
    expect(() => createEgress({ allowLoopback: false, allow: ['in tranet'] })).toThrow('in tranet')
  })
})

describe('allowing and denying', () => {
  const at = (address: string) => async () => [{ address, family: address.includes(':') ? 6 : 4 }]
  const reach = (options: Partial<EgressOptions>, url: string) =>
    clientOf({ allowLoopback: false, allow: [], ...options }).request({
      method: 'GET',
      url,
      timeoutMs: 2_000,
    })

  test('what is denied is denied under every other rule, also wrapped in IPv6', () => {
    const deny = ['10.1.0.0/16', '8.8.8.8', 'fd00::/8', '::ffff:9.0.0.0/104']
    for (const more of [{ any: true }, { allow: ['0.0.0.0/0', '::/0'] }, { allow: deny }]) {
      const egress = createEgress({ allowLoopback: true, allow: [], ...more, deny })
      for (const bad of [
        '10.1.2.3 ::ffff:10.1.2.3 64:ff9b::a01:203 2002:a01:203:: ::10.1.2.3 8.8.8.8 ::ffff:8.8.8.8 fd00::5 fd00::5%eth0 9.1.1.1'.split(
          ' ',
        ),
      ].flat())
        expect([bad, egress.refuse(bad)]).toEqual([bad, 'a denied address'])
      expect(egress.refuse('1.1.1.1')).toBeNull()
    }
    for (const bad of [
      '10.1',
      '*',
      '*.',
      'a b',
      'http://a',
      'a:80',
      '10.0.0.0/33',
      'fe80::1%eth0',
      '',
      '::ffff:0:0/90',
    ])
      expect(() => createEgress({ allowLoopback: false, allow: [], deny: [bad] })).toThrow(
        JSON.stringify(bad),
      )
  })

  test('a host that is denied is refused by its name, in any spelling, and says nothing of its address', async () => {
    const { port } = await serve((_req, res) => res.end('in'))
    const rules = {
      allow: ['127.0.0.0/8'],
      deny: ['Bad.example', '*.corp.example', 'münchen.de'],
      resolve: at('127.0.0.1'),
    }
    for (const host of [
      'bad.example',
      'BAD.example',
      'bad.example.',
      'a.corp.example',
      'a.b.corp.example',
      'xn--mnchen-3ya.de',
      'bad。example',
    ]) {
      const error = await expectKind(reach(rules, `http://${host}:${port}/`), 'refused-address')
      expect(error.message).toContain('is a denied host')
    }
    for (const host of ['good.example', 'corp.example', 'notbad.example', '127.0.0.1'])
      expect(text((await reach(rules, `http://${host}:${port}/`)).body)).toBe('in')
  })

  test('a host that is allowed opens inner networks, for its name alone and not the secrets of a cloud', async () => {
    const { port } = await serve((_req, res) => res.end('in'))
    const rules = { allow: ['db.corp.example', '*.svc.example'], resolve: at('127.0.0.1') }
    for (const host of ['db.corp.example', 'a.svc.example'])
      expect(text((await reach(rules, `http://${host}:${port}/`)).body)).toBe('in')
    for (const host of ['other.corp.example', 'svc.example', '127.0.0.1'])
      await expectKind(reach(rules, `http://${host}:${port}/`), 'refused-address')
    for (const address of [
      '169.254.169.254',
      '100.100.100.200',
      'fd00:ec2::254',
      '168.63.129.16',
      '0.0.0.0',
      'fe80::1',
    ])
      await expectKind(reach({ ...rules, resolve: at(address) }, 'http://a.svc.example/'), 'refused-address')
    const denied = { ...rules, deny: ['127.0.0.0/8'] }
    await expectKind(reach(denied, `http://db.corp.example:${port}/`), 'refused-address')
  })

  test('a redirect is held against the rules as a first request is', async () => {
    const inner = await countConnections()
    const places = [
      '127.0.0.1',
      '2130706433',
      '[::ffff:127.0.0.1]',
      '0x7f.1',
      'bad.example',
      '169.254.169.254',
    ]
    const { port } = await serve((req, res) => {
      res.writeHead(302, { location: `http://${places[Number(req.url!.slice(1))]}:${inner.port}/` }).end()
    }, '127.0.0.2')
    const rules = { allow: ['127.0.0.2'], deny: ['bad.example'], resolve: at('127.0.0.2') }
    for (const i of places.keys())
      await expectKind(reach(rules, `http://127.0.0.2:${port}/${i}`), 'refused-address')
    expect(await inner.count()).toBe(0)
  })
})

describe('guarded connections', () => {
  const literals = [
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '127.1',
    '[::ffff:127.0.0.1]',
    '0.0.0.0',
    '１２７.0.0.1',
    '017700000001',
    '127.0.0.1.',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '%31%32%37.0.0.1',
  ]
  test.each(literals)('http://%s/ never reaches a local server', async (host) => {
    const connections = await countConnections()
    const strict = clientOf({ allowLoopback: false, allow: [] })
    const url = `http://${host}:${connections.port}/`
    await expectKind(strict.request({ method: 'GET', url }), 'refused-address')
    expect(await connections.count()).toBe(0)
  })

  test('IPv6 loopback is refused, and reached if loopback is allowed', async () => {
    const { url } = await serve((_req, res) => res.end('six'), '::1')
    const strict = clientOf({ allowLoopback: false, allow: [] })
    await expectKind(strict.request({ method: 'GET', url }), 'refused-address')
    expect(text((await get(url)).body)).toBe('six')
  })

  test('a name is refused if any of its addresses is, and the message does not tell the address', async () => {
    const connections = await countConnections()
    const resolve = async () => [
      { address: '127.0.0.1', family: 4 },
      { address: '93.184.216.34', family: 4 },
    ]
    const strict = clientOf({ allowLoopback: false, allow: [], resolve })
    const url = `http://mixed.example:${connections.port}/`
    const error = await expectKind(strict.request({ method: 'GET', url }), 'refused-address')
    expect(error.message).toContain('mixed.example')
    expect(error.message).not.toContain('127.0.0.1')
    expect(await connections.count()).toBe(0)
  })

  test('a name that resolves to loopback on its second lookup is refused', async () => {
    const { url, port } = await serve((_req, res) => res.end('inside'))
    let calls = 0
    const resolve = async () => [{ address: calls++ === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }]
    const strict = clientOf({ allowLoopback: false, allow: ['127.0.0.2'], resolve })
    const { port: other } = await serve(
      (_req, res) => res.setHeader('connection', 'close').end('ok'),
      '127.0.0.2',
    )
    const first = await strict.request({ method: 'GET', url: `http://rebind.example:${other}/` })
    expect(text(first.body)).toBe('ok')
    await expectKind(
      strict.request({ method: 'GET', url: `http://rebind.example:${port}/` }),
      'refused-address',
    )
    expect(calls).toBe(2)
    expect(text((await get(url)).body)).toBe('inside')
  })

  test('the address that was connected to is checked, even if the name was resolved to another', async () => {
    let hits = 0
    const { port } = await serve((_req, res) => res.end(String(++hits)))
    const { record, countReads } = moveAfterCheck()
    const strict = clientOf({ allowLoopback: false, allow: [], resolve: async () => [record] })
    await expectKind(
      strict.request({ method: 'GET', url: `http://late.example:${port}/` }),
      'refused-address',
    )
    expect(countReads()).toBeGreaterThan(1)
    expect(hits).toBe(0)
  })

  test('an address in an allowed CIDR is reached', async () => {
    const { url } = await serve((_req, res) => res.end('in'))
    const some = clientOf({ allowLoopback: false, allow: ['127.0.0.0/8'] })
    expect(text((await some.request({ method: 'GET', url })).body)).toBe('in')
  })
})

describe('TLS', () => {
  async function serveTls(listener: RequestListener) {
    const server = createTlsServer({ key: KEY, cert: CERT }, listener).listen(0, '127.0.0.1')
    await once(server, 'listening')
    open.push(() => {
      server.closeAllConnections()
      server.close()
    })
    return { server, port: (server.address() as AddressInfo).port }
  }

  test('an untrusted certificate is a network error, a trusted one is accepted', async () => {
    const { port } = await serveTls((_req, res) => res.end('safe'))
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
    const client = () => clientOf({ ...LOCAL, resolve })
    const req = { method: 'GET', url: `https://perdure.test:${port}/` }
    const error = await expectKind(client().request(req), 'network')
    expect(error.message).toContain('self-signed')
    trustTestCertificate()
    expect(text((await client().request(req)).body)).toBe('safe')
    await expectKind(client().request({ ...req, url: `https://other.test:${port}/` }), 'network')
  })

  test('a refused address gets no TLS handshake', async () => {
    trustTestCertificate()
    let handshakes = 0
    const { server, port } = await serveTls((_req, res) => res.setHeader('connection', 'close').end('inside'))
    server.on('secureConnection', () => handshakes++)
    const { record, countReads } = moveAfterCheck()
    const strict = clientOf({ allowLoopback: false, allow: [], resolve: async () => [record] })
    await expectKind(
      strict.request({ method: 'GET', url: `https://perdure.test:${port}/` }),
      'refused-address',
    )
    await expectKind(strict.request({ method: 'GET', url: `https://127.0.0.1:${port}/` }), 'refused-address')
    expect(countReads()).toBeGreaterThan(1)
    expect(text((await get(`https://127.0.0.1:${port}/`)).body)).toBe('inside')
    expect(handshakes).toBe(1)
  })

  test('a redirect from https to http is not followed', async () => {
    trustTestCertificate()
    let hits = 0
    const plain = await serve((_req, res) => res.end(String(++hits)))
    const { port } = await serveTls((_req, res) => res.writeHead(302, { location: plain.url }).end())
    const error = await expectKind(get(`https://127.0.0.1:${port}/`), 'redirect')
    expect(error.message).toContain('from https to http')
    expect(hits).toBe(0)
  })
})

function trustTestCertificate() {
  const before = getCACertificates('default')
  setDefaultCACertificates([CERT])
  open.push(() => setDefaultCACertificates(before))
}
