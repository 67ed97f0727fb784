import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { openSession } from '../../../activities/database/open.ts'
import { readSqlValue } from '../../../activities/database/postgresvalues.ts'
import { checkColumns } from '../../../activities/database/session.ts'
import { readNumber } from '../../../activities/database/values.ts'
import { createOutsides } from '../../../activities/egress/outside.ts'
import { plantCredential } from '../../support/credentials.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'

// Servers of databases that lie: what they ask for they do not get, and what they send holds up nobody.

const PASSWORD = 'a-password-that-stays-0123456789'
const MARKER = 'the-content-of-a-file-of-this-machine'
const folder = mkdtempSync(join(tmpdir(), 'perdure-liars-'))
const file = join(folder, 'secret.txt')
writeFileSync(file, MARKER)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const host = await keep(shareRunning())
const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

type Liar = { port: number; heard: () => string }

/** A server that calls `greet` for a new connection, and `answer` for whatever comes; it remembers all that it was sent. */
async function lie(greet: (to: Socket) => void, answer: (to: Socket, data: Buffer) => void): Promise<Liar> {
  const sockets = new Set<Socket>()
  let heard = Buffer.alloc(0)
  const listener = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    greet(socket)
    socket.on('data', (data) => {
      heard = Buffer.concat([heard, data])
      answer(socket, data)
    })
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  open.push(() => {
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  return { port: (listener.address() as AddressInfo).port, heard: () => heard.toString('latin1') }
}

/** What a node says of a query to such a server; a credential says nothing of TLS, unless `more` does. */
async function query(port: number, dialect: string, more: object = {}) {
  const login = {
    host: '127.0.0.1',
    port,
    database: 'd',
    username: 'u',
    password: PASSWORD,
    dialect,
    ...more,
  }
  const credentialId = await plantCredential(host.store, host.teamId, 'DATABASE', login)
  const id = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      {
        id: 'sql',
        type: 'DATABASE_QUERY',
        config: { credentialId, query: 'select 1' },
        timeoutMs: 10_000,
        retry: { maxAttempts: 1 },
      },
    ],
    edges: [{ source: 'start', target: 'sql' }],
  })
  const loop = monitorEventLoopDelay({ resolution: 10 })
  loop.enable()
  const node = nodeOf(await host.ended(await host.execute(id)), 'sql')
  loop.disable()
  return { node, blockedMs: loop.max / 1e6 }
}

/** Opens a session itself, without a workflow. */
async function connect(port: number, dialect: string, more: object = {}) {
  const outsides = createOutsides({ allowLoopback: true, allow: [] })
  open.push(() => void outsides.close())
  const { dial } = await outsides.forTeam(host.teamId)
  const data = { host: '127.0.0.1', port, database: 'd', username: 'u', password: PASSWORD, dialect, ...more }
  const session = await openSession({ data } as never, { dial, signal: AbortSignal.timeout(10_000) })
  await session.close()
}

const packet = (number: number, body: Buffer | string) => {
  const bytes = Buffer.from(body as string, 'latin1')
  return Buffer.concat([
    Buffer.from([bytes.length & 255, bytes.length >> 8, bytes.length >> 16, number]),
    bytes,
  ])
}
/** Without TLS, and with the capability to load local files. */
const hello = (plugin = 'mysql_native_password') =>
  packet(
    0,
    Buffer.concat([
      Buffer.from('\x0a5.7.0\0\x01\0\0\0abcdefgh\0', 'latin1'),
      Buffer.from([0xff, 0xf7, 33, 2, 0, 0xff, 0x81, 21]),
      Buffer.alloc(10),
      Buffer.from(`abcdefghijkl\0${plugin}\0`, 'latin1'),
    ]),
  )
const ok = (number: number) => packet(number, Buffer.from([0, 0, 0, 2, 0, 0, 0]))
/** The number and the command of a packet. */
const commandOf = (data: Buffer) => ({ number: data[3]!, command: data[4]! })
const [PREPARE, EXECUTE] = [0x16, 0x17]

describe('MySQL', () => {
  test.each(['sign-in', 'the first statement', 'what is prepared'])(
    'a file of this machine that is asked for in answer to %s is not sent',
    async (when) => {
      const ask = (to: Socket, number: number) => {
        const wanted = packet(number, `\xfb${file}`)
        // To what is prepared, a client has nothing to answer: it would wait.
        if (when === 'what is prepared') to.end(wanted)
        else to.write(wanted)
      }
      let signedIn = false
      const server = await lie(
        (to) => to.write(hello()),
        (to, data) => {
          const { number, command } = commandOf(data)
          if (!signedIn) {
            signedIn = true
            if (when === 'sign-in') ask(to, number + 1)
            else to.write(ok(number + 1))
          } else if (data.length === 4) to.write(ok(number + 1))
          else if (when === 'the first statement' || command === PREPARE || command === EXECUTE)
            ask(to, number + 1)
          else to.write(ok(number + 1))
        },
      )
      const { node } = await query(server.port, 'mysql', { tls: 'never' })
      expect(node.status).toBe('FAILED')
      expect(server.heard()).not.toContain(MARKER)
      // The client says in its first packet that it does not load local files.
      expect(server.heard().charCodeAt(4) & 0x80).toBe(0)
    },
  )

  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = publicKey.export({ type: 'spki', format: 'pem' }) as string

  test.each([
    ['mysql_clear_password', 'disabled by default'],
    ['sha256_password', 'the server wants the password itself'],
    ['caching_sha2_password', 'the server wants the password itself'],
    ['mysql_old_password', 'unknown plugin'],
    ['', ''],
  ])('a server without TLS that switches to %s does not get the password', async (plugin, said) => {
    let step = 0
    const server = await lie(
      (to) => to.write(hello()),
      (to, data) => {
        const { number } = commandOf(data)
        step++
        if (step === 1) to.write(packet(number + 1, `\xfe${plugin}${plugin && '\0abcdefghijklmnopqrst\0'}`))
        // Full authentication is demanded, and then a key is sent.
        else if (plugin === 'caching_sha2_password' && step === 2) to.write(packet(number + 1, '\x01\x04'))
        else if (step < 4) to.write(packet(number + 1, `\x01${key}`))
        else to.destroy()
      },
    )
    await expect(connect(server.port, 'mysql')).rejects.toThrow(said)
    expect(server.heard()).not.toContain(PASSWORD)
    // An answer to the key would have the length of its modulus.
    expect(server.heard().length).toBeLessThan(500)
  })

  test('packets that are out of order without an end end the connection, and do not fill the log', async () => {
    const said: unknown[] = []
    const spy = vi.spyOn(console, 'error').mockImplementation((line) => void said.push(line))
    let step = 0
    const server = await lie(
      (to) => to.write(hello()),
      (to, data) => {
        const { number } = commandOf(data)
        // An answer of columns that never ends, each with the same number.
        const columns = Array.from({ length: 1_000 }, () =>
          packet(77, '\x03def\0\0\0\x01a\0\x0c!\0\x01\0\0\0\xfd\0\0\0\0\0'),
        )
        to.write(
          step++ === 0 ? ok(number + 1) : Buffer.concat([packet(1, Buffer.from([0xfc, 232, 3])), ...columns]),
        )
      },
    )
    const { node } = await query(server.port, 'mysql', { tls: 'never' })
    spy.mockRestore()
    expect(node.status).toBe('FAILED')
    expect(said.length).toBeGreaterThan(0)
    expect(said.length).toBeLessThan(20)
  })

  test('columns and rows without an end hold up nobody', async () => {
    const column = Buffer.from('\x03def\0\0\0\x01a\0\x0c!\0\x01\0\0\0\xfd\0\0\0\0\0', 'latin1')
    const many = Buffer.concat(Array.from({ length: 2_048 }, (_, i) => packet((i + 2) & 255, column)))
    const server = await lie(
      (to) => to.write(hello()),
      (to, data) => {
        const { number, command } = commandOf(data)
        if (command === PREPARE) to.write(packet(1, Buffer.from([0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])))
        else if (command === EXECUTE) {
          to.write(packet(1, Buffer.from([0xfd, 255, 255, 255])))
          const more = () => {
            while (!to.destroyed && to.write(many));
          }
          to.on('drain', more)
          more()
        } else to.write(ok(number + 1))
      },
    )
    const { node, blockedMs } = await query(server.port, 'mysql', { tls: 'never' })
    expect([node.status, node.errorMessage]).toEqual([
      'FAILED',
      expect.stringContaining('more than 4096 columns'),
    ])
    expect(blockedMs).toBeLessThan(1_000)
  })
})

const message = (type: string, body: Buffer | string = '') => {
  const bytes = Buffer.from(body as string)
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeInt32BE(bytes.length + 4, 1)
  return Buffer.concat([head, bytes])
}
const signedIn = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', 'I')])
const begun = Buffer.concat([message('C', 'BEGIN\0'), message('Z', 'T')])

/** Signs everybody in, says that the transaction has begun, and answers the statement with `answer`. */
function answerStatement(answer: (to: Socket) => void) {
  let begins = false
  return lie(
    () => {},
    (to, data) => {
      if (data.length === 8) to.write('N')
      else if (data.includes('begin')) {
        begins = true
        to.write(begun)
      } else if (begins) answer(to)
      else to.write(signedIn)
    },
  )
}

describe('PostgreSQL', () => {
  test('a server without TLS is not told the password in clear text, unless the credential wants no TLS', async () => {
    const start = () =>
      lie(
        () => {},
        (to, data) => {
          if (data.length === 8) to.write('N')
          else if (data[0] === 0) to.write(message('R', Buffer.from([0, 0, 0, 3])))
          else to.destroy()
        },
      )
    const server = await start()
    const { node } = await query(server.port, 'postgresql')
    expect(node.errorMessage).toContain('the server wants the password itself')
    expect(server.heard()).not.toContain(PASSWORD)
    const chosen = await start()
    await expect(connect(chosen.port, 'postgresql', { tls: 'never' })).rejects.toThrow()
    expect(chosen.heard()).toContain(PASSWORD)
  })

  test('a password that is wanted by SCRAM with a billion rounds is not computed', async () => {
    const server = await lie(
      () => {},
      (to, data) => {
        if (data.length === 8) to.write('N')
        else if (data[0] === 0) to.write(message('R', Buffer.from('\0\0\0\x0aSCRAM-SHA-256\0\0', 'latin1')))
        else {
          const nonce = /r=([^,]+)$/.exec(data.toString('latin1'))?.[1]
          to.write(message('R', Buffer.from(`\0\0\0\x0br=${nonce}x,s=c2FsdA==,i=1000000000`, 'latin1')))
        }
      },
    )
    await expect(connect(server.port, 'postgresql')).rejects.toThrow(/iteration/i)
  })

  test.each<[string, (to: Socket) => void]>([
    [
      'notices',
      (to) => {
        const notices = Buffer.concat(Array.from({ length: 500 }, () => message('N', 'SNOTICE\0Mhello\0\0')))
        const more = () => {
          while (!to.destroyed && to.write(notices));
        }
        to.on('drain', more)
        more()
      },
    ],
    [
      'an error of 20 MB',
      (to) => {
        const text = Buffer.alloc(20_000_000, 'x')
        to.write(message('E', Buffer.concat([Buffer.from('SERROR\0C42000\0M'), text, Buffer.from('\0\0')])))
        to.write(message('Z', 'E'))
      },
    ],
    [
      '60,000 columns',
      (to) => {
        const columns = Array.from({ length: 60_000 }, (_, i) =>
          Buffer.concat([
            Buffer.from(`c${i}\0`),
            Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0, 0, 0, 0, 0, 0, 0, 0]),
          ]),
        )
        to.write(message('T', Buffer.concat([Buffer.from([60_000 >> 8, 60_000 & 255]), ...columns])))
        to.write(message('C', 'SELECT 0\0'))
        to.write(message('Z', 'T'))
      },
    ],
  ])(
    '%s without an end hold up nobody, and end as a failure of the node',
    { tags: 'long' },
    async (_, answer) => {
      const server = await answerStatement(answer)
      const { node, blockedMs } = await query(server.port, 'postgresql')
      expect(node.status).toBe('FAILED')
      expect(node.errorMessage!.length).toBeLessThan(10_000)
      expect(blockedMs).toBeLessThan(2_000)
    },
  )
})

describe('a value takes no longer than its bytes, whatever it says it is', () => {
  const TEXTS = 1009
  test.each<[string, () => unknown]>([
    ['digits after many zeros', () => readNumber(`0.${'0'.repeat(2_000_000)}1`)],
    ['zeros and a letter', () => readNumber(`${'0'.repeat(2_000_000)}x`)],
    ['quotes that are never closed', () => readSqlValue(TEXTS, `{"${'\\"'.repeat(1_000_000)}`)],
    ['lists within lists', () => readSqlValue(TEXTS, '{'.repeat(2_000_000))],
    ['one long text', () => readSqlValue(TEXTS, `{"${'x'.repeat(4_000_000)}"}`)],
    [
      'columns',
      () => {
        const columns = Array.from({ length: 65_535 }, (_, i) => ({ name: `column${i}`, type: 'text' }))
        expect(() => checkColumns(columns)).toThrow('more than 4096 columns')
      },
    ],
  ])('%s', (_, read) => {
    const since = performance.now()
    read()
    expect(performance.now() - since).toBeLessThan(1_000)
  })

  test.each([
    ['{}', []],
    ['{a,"b,c",NULL,"NULL"}', ['a', 'b,c', null, 'NULL']],
    [
      '{{1,2},{3,4}}',
      [
        ['1', '2'],
        ['3', '4'],
      ],
    ],
    ['{"a\\"b","c\\\\d",""}', ['a"b', 'c\\d', '']],
    ['[2:3]={1,2}', '[2:3]={1,2}'],
    ['{"a', '{"a'],
    ['{a}}', '{a}}'],
    ['{a}b', '{a}b'],
    ['{a', '{a'],
  ])('an array is read as PostgreSQL has written it, or stays a text: %s', (text, value) => {
    expect(readSqlValue(TEXTS, text)).toEqual(value)
  })
})
