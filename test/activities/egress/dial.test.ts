import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { createDial, type Dial } from '../../../activities/egress/dial.ts'
import { createEgress, type EgressOptions } from '../../../activities/egress/egress.ts'
import { expectKind, LOCAL } from '../../support/servers/loopback.ts'

const STRICT: EgressOptions = { allowLoopback: false, allow: [] }

function dialBy(options: EgressOptions): Dial {
  const egress = createEgress(options)
  return createDial(() => egress)
}

/** A server that greets, and counts the sockets that it has accepted. */
async function greet(host = '127.0.0.1') {
  let accepted = 0
  const server: Server = createServer((socket) => {
    accepted++
    socket.on('error', () => {}).end('hello')
  }).listen(0, host)
  await once(server, 'listening')
  open.push(() => server.close())
  const { port } = server.address() as AddressInfo
  // Sockets are accepted in order: once the own one has been, all that came before it have been too.
  const count = async () => {
    const socket = await dialBy(LOCAL)(host, port)
    await read(socket)
    return accepted - 1
  }
  return { port, count }
}

async function read(socket: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of socket) parts.push(part)
  return Buffer.concat(parts).toString()
}

const open: (() => unknown)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})
afterAll(() => expect(open).toEqual([]))

test('a connection that the rules allow is made, by address and by name', async () => {
  const { port } = await greet()
  expect(await read(await dialBy(LOCAL)('127.0.0.1', port))).toBe('hello')
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  const dial = dialBy({ ...STRICT, allow: ['127.0.0.0/8'], resolve })
  expect(await read(await dial('db.example', port))).toBe('hello')
})

describe('what the rules refuse is not connected to', () => {
  const notations =
    '127.0.0.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 127.1 127.0.1 １２７.0.0.1 ①②⑦.0.0.1 ::ffff:127.0.0.1 [::ffff:7f00:1] ::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1:: 0.0.0.0 0 :: ::1 localhost'
  test.each(notations.split(' '))('%s', async (host) => {
    const { port, count } = await greet()
    await expectKind(dialBy(STRICT)(host, port), 'refused-address')
    expect(await count()).toBe(0)
  })

  test('a name of which one address is refused', async () => {
    const { port, count } = await greet()
    const resolve = async () => [
      { address: '93.184.216.34', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ]
    const error = await expectKind(dialBy({ ...STRICT, resolve })('mixed.example', port), 'refused-address')
    expect(error.message).not.toContain('127.0.0.1')
    expect(await count()).toBe(0)
  })

  test('a name that leads elsewhere after it was checked: nothing is sent, and nothing read', async () => {
    let reads = 0
    const record = {
      family: 4,
      get address() {
        return reads++ < 1 ? '93.184.216.34' : '127.0.0.1'
      },
    }
    const { port } = await greet()
    const dial = dialBy({ ...STRICT, resolve: async () => [record] })
    await expectKind(dial('late.example', port), 'refused-address')
    expect(reads).toBeGreaterThan(1)
  })

  test.each([{}, { any: true }, { allow: ['127.0.0.0/8', '::1'] }])(
    'the places of the service itself, under the rules %j',
    async (rules) => {
      const { port, count } = await greet()
      const own = () => [{ what: 'the database of this service', host: 'localhost', port }]
      const dial = dialBy({ ...LOCAL, ...rules, own })
      for (const host of [
        '127.0.0.1',
        'localhost',
        '127.0.0.2',
        '2130706433',
        '::ffff:127.0.0.1',
        '0.0.0.0',
      ]) {
        const error = await expectKind(dial(host, port), 'refused-address')
        expect(error.message).toContain('the database of this service')
      }
      expect(await count()).toBe(0)
    },
  )
})

test('what is no host or port is refused, before any look-up', async () => {
  const dial = dialBy({ ...LOCAL, resolve: () => Promise.reject(new Error('it was looked up')) })
  for (const host of [
    '',
    ' ',
    '/tmp/.s.PGSQL.5432',
    'a b',
    'user@host',
    'host:80',
    'host/path',
    'http://host',
    'a%62',
  ])
    await expectKind(dial(host, 80), 'bad-url')
  for (const port of [0, -1, 65_536, 1.5, Number.NaN]) await expectKind(dial('127.0.0.1', port), 'bad-url')
})

test('a connection that takes too long, is refused or is given up ends at once', async () => {
  const never = dialBy({ ...LOCAL, resolve: () => new Promise(() => {}) })
  const late = await expectKind(never('slow.example', 5432, { timeoutMs: 20 }), 'timeout')
  expect(late.message).toBe('no connection to slow.example:5432 within 20 ms')
  const stop = new AbortController()
  const waiting = never('slow.example', 5432, { signal: stop.signal })
  stop.abort()
  await expectKind(waiting, 'aborted')
  await expectKind(never('slow.example', 5432, { signal: stop.signal }), 'aborted')

  const { port } = await greet()
  open.pop()!()
  const error = await expectKind(dialBy(LOCAL)('127.0.0.1', port), 'network')
  expect(error.message).toBe(`127.0.0.1:${port}: connection refused`)
})

test('a signal that is aborted after the connection was made does not end it', async () => {
  const { port } = await greet()
  const stop = new AbortController()
  const socket = await dialBy(LOCAL)('127.0.0.1', port, { signal: stop.signal, timeoutMs: 1_000 })
  stop.abort()
  expect(await read(socket)).toBe('hello')
})
