import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { checkDatabase } from '../../../activities/credentials/checks/database.ts'
import { openSentNote } from '../../../activities/database/once.ts'
import { takePlace } from '../../../activities/database/places.ts'
import { createOutsides } from '../../../activities/egress/outside.ts'
import type { NodeContext } from '../../../activities/nodes/kit/node.ts'
import { openTeamCredential } from '../../../db/credentials/open.ts'
import { plantCredential } from '../../support/credentials.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, shareRunning } from '../../support/running.ts'
import { type Server, startPostgres } from '../../support/servers/clusters.ts'

const host = await keep(shareRunning())
const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

let server: Server & { url: string }
let client: pg.Client
beforeAll(async () => {
  server = await startPostgres()
  client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query('create table things (id int)')
})
afterAll(async () => {
  await client.end()
  await server.stop()
})

async function listen(onSocket: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const listener = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    onSocket(socket)
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  open.push(() => {
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  return (listener.address() as AddressInfo).port
}

/**
 * A proxy that breaks the first connection which sends `marker`: before it reaches the server, or once the server has
 * answered it.
 */
async function breakAt(marker: string, when: 'before' | 'answered') {
  let broken = false
  let connections = 0
  const port = await listen((socket) => {
    connections++
    const inner = connect(Number(server.login.port), '127.0.0.1').on('error', () => {})
    let isDue = false
    socket.on('data', (data) => {
      if (!broken && data.includes(marker)) {
        broken = true
        isDue = true
        if (when === 'before') {
          socket.destroy()
          inner.destroy()
          return
        }
      }
      inner.write(data)
    })
    inner.on('data', (data) => (isDue ? socket.destroy() : socket.write(data)))
    socket.on('close', () => inner.destroy())
    inner.on('close', () => socket.destroy())
  })
  return { port, count: () => connections }
}

const plant = (more: object) =>
  plantCredential(host.store, host.teamId, 'DATABASE', { ...server.login, tls: 'never', ...more })

async function query(credentialId: string, config: object, retry: object = { initialIntervalMs: 10 }) {
  const id = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'sql', type: 'DATABASE_QUERY', config: { credentialId, ...config }, retry },
    ],
    edges: [{ source: 'start', target: 'sql' }],
  })
  return nodeOf(await host.ended(await host.execute(id)), 'sql')
}

const count = async (id: number) =>
  (await client.query('select count(*)::int as n from things where id = $1', [id])).rows[0].n

describe('a connection that is lost', () => {
  test('before the statement was sent: it is sent over the next one', async () => {
    const { port, count: connections } = await breakAt('begin', 'before')
    const node = await query(await plant({ port }), { query: 'insert into things values (1)' })
    expect([node.status, node.retryCount, connections(), await count(1)]).toEqual(['SUCCESS', 1, 2, 1])
  })

  test('after a statement that writes was sent: it is not repeated, and the failure says why', async () => {
    const { port, count: connections } = await breakAt('insert into', 'before')
    const node = await query(await plant({ port }), { query: 'insert into things values (2)' })
    expect(node.errorMessage).toContain('may have been carried out, but no answer came')
    expect([node.status, node.retryCount, connections(), await count(2)]).toEqual(['FAILED', 0, 1, 0])
  })

  test('while it was committed: it is done, and not done twice', async () => {
    const { port, count: connections } = await breakAt('commit', 'answered')
    const node = await query(await plant({ port }), { query: 'insert into things values (3)' })
    expect(node.errorMessage).toContain('may have been carried out')
    expect([node.status, connections(), await count(3)]).toEqual(['FAILED', 1, 1])
  })

  test('of a statement that only reads, or may be carried out twice: it is repeated', async () => {
    const first = await breakAt('select 7', 'answered')
    const read = await query(await plant({ port: first.port }), { query: 'select 7 as n', readOnly: true })
    expect([read.status, first.count(), read.outputData]).toMatchObject(['SUCCESS', 2, { rows: [{ n: 7 }] }])
    const second = await breakAt('commit', 'answered')
    const again = await query(await plant({ port: second.port }), {
      query: 'insert into things values (4)',
      repeat: true,
    })
    expect([again.status, second.count(), await count(4)]).toEqual(['SUCCESS', 2, 2])
  })
})

test('a statement that a lost process has sent is not sent again; one that was undone is', async () => {
  const workflow = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'wait', type: 'WAIT', config: { durationMs: 600_000 } },
    ],
    edges: [{ source: 'start', target: 'wait' }],
  })
  const executionId = await host.execute(workflow)
  const place = { executionId, iteration: '', nodeName: 'Sql', store: host.store }
  const contextOf = (nodeId: string, attempt: number) =>
    ({
      spot: { ...place, nodeId },
      attempt,
      idempotencyKey: `${executionId}:${nodeId}`,
      signal: new AbortController().signal,
    }) as unknown as NodeContext
  await (await openSentNote(contextOf('lost', 1))).begin()
  // The process ends here. The next attempt is another's.
  await expect(openSentNote(contextOf('lost', 2))).rejects.toMatchObject({
    type: 'DatabaseUncertain',
    retryable: false,
  })

  const undone = await openSentNote(contextOf('undone', 1))
  await undone.begin()
  await undone.undone()
  await (await openSentNote(contextOf('undone', 2))).begin()
  await expect(openSentNote(contextOf('undone', 3))).rejects.toMatchObject({ type: 'DatabaseUncertain' })

  await host.ask('POST', `/api/executions/${executionId}/cancel`)
  await host.ended(executionId)
  const late = await openSentNote(contextOf('late', 1))
  await expect(late.begin()).rejects.toMatchObject({ type: 'Abandoned' })
})

test('each item has its own statement, and a retry carries out only those that failed', async () => {
  const credentialId = await plant({})
  await client.query('create table once (id int, ok boolean check (ok))')
  const workflow = await host.create({
    nodes: [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      {
        id: 'sql',
        type: 'DATABASE_QUERY',
        config: {
          credentialId,
          query: 'insert into once select $1::int, $1::int <> 3 or exists (select from things where id = 9)',
          params: ['{{ $item.id }}'],
        },
        perItem: true,
      },
    ],
    edges: [{ source: 'start', target: 'sql' }],
  } as never)
  const items = [1, 2, 3, 4].map((id) => ({ id }))
  const first = await host.ended(await host.execute(workflow, { items }))
  expect(first.status).toBe('FAILED')
  await client.query('insert into things values (9)')
  const { executionId } = await host.ask<{ executionId: string }>(
    'POST',
    `/api/executions/${first.id}/retry`,
    {},
  )
  expect(await host.ended(executionId)).toMatchObject({ status: 'SUCCESS', errorMessage: null })
  const { rows } = await client.query('select id from once order by id')
  expect(rows.map(({ id }) => id)).toEqual([1, 2, 3, 4])
})

describe('a server that does not keep to the protocol harms nobody but itself', () => {
  const message = (type: string, body: Buffer | string = '') => {
    const bytes = Buffer.from(body)
    const head = Buffer.alloc(5)
    head.write(type, 'latin1')
    head.writeInt32BE(bytes.length + 4, 1)
    return Buffer.concat([head, bytes])
  }
  const ready = message('Z', 'I')
  const signedIn = Buffer.concat([message('R', Buffer.alloc(4)), ready])
  const strange: Record<string, Buffer[]> = {
    'garbage at once': [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
    'bytes before any message': [Buffer.alloc(64, 255)],
    'a message of no length': [Buffer.from([82, 0, 0, 0, 0])],
    'a message that claims 2 GB': [Buffer.from([82, 127, 255, 255, 255])],
    'a password in clear text is asked for without end': [
      message('R', Buffer.from([0, 0, 0, 3])),
      message('R', Buffer.from([0, 0, 0, 3])),
    ],
    'rows that nobody asked for': [
      signedIn,
      message('D', Buffer.from([0, 1, 0, 0, 0, 1, 65])),
      message('T', Buffer.from([0, 9])),
    ],
    'a row of more columns than there are': [
      signedIn,
      message('T', Buffer.from([0, 0])),
      message('D', Buffer.from([127, 255])),
    ],
    'an answer to COPY': [signedIn, message('G', Buffer.from([0, 0, 0])), message('d', 'data'), message('c')],
  }

  test.each(Object.keys(strange))('PostgreSQL: %s', async (name) => {
    const port = await listen((socket) => {
      for (const part of strange[name]!) socket.write(part)
      socket.on('data', () => socket.write(ready))
      setTimeout(() => socket.destroy(), 200)
    })
    const node = await query(await plant({ port }), { query: 'select 1' }, { maxAttempts: 1 })
    expect(node.status).toBe('FAILED')
  })

  const packet = (number: number, body: Buffer) =>
    Buffer.concat([Buffer.from([body.length & 255, body.length >> 8, body.length >> 16, number]), body])
  const hello = packet(
    0,
    Buffer.concat([
      Buffer.from('\x0a5.7.0\0', 'latin1'),
      Buffer.from([1, 0, 0, 0]),
      Buffer.from('abcdefgh\0', 'latin1'),
      Buffer.from([0xff, 0xf7, 33, 2, 0, 0xff, 0x81, 21]),
      Buffer.alloc(10),
      Buffer.from('abcdefghijkl\0mysql_native_password\0', 'latin1'),
    ]),
  )
  const ok = packet(2, Buffer.from([0, 0, 0, 2, 0, 0, 0]))
  const others: Record<string, Buffer[]> = {
    'garbage at once': [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
    'an empty packet': [Buffer.from([0, 0, 0, 0])],
    'a greeting that ends early': [packet(0, Buffer.from([10, 53]))],
    'a method to sign in that nobody knows': [hello, packet(2, Buffer.from('\xfestrange\0x', 'latin1'))],
    'packets out of order': [hello, ok, packet(9, Buffer.from([1, 1, 1]))],
    'a file of this machine is asked for': [hello, ok, packet(1, Buffer.from('\xfb/etc/passwd', 'latin1'))],
    'more columns than there can be': [
      hello,
      ok,
      packet(1, Buffer.from([0xfe, 255, 255, 255, 255, 255, 255, 255, 127])),
    ],
  }
  test.each(Object.keys(others))('MySQL: %s', async (name) => {
    const port = await listen((socket) => {
      for (const part of others[name]!) socket.write(part)
      setTimeout(() => socket.destroy(), 200)
    })
    const credential = await plant({ port, dialect: 'mysql' })
    const node = await query(credential, { query: 'select 1' }, { maxAttempts: 1 })
    expect(node.status).toBe('FAILED')
  })

  test('one that takes the connection, and then says nothing, does not keep its place for long', {
    tags: 'long',
  }, async () => {
    const silent = await listen(() => {})
    const signedInOnly = await listen((socket) => socket.write(signedIn))
    const limited = [{ port: silent }, { port: silent, dialect: 'mysql' }, { port: signedInOnly }].map(
      async (more) => query(await plant(more), { query: 'select 1' }, { maxAttempts: 1 }),
    )
    for (const node of await Promise.all(limited)) {
      expect([node.status, node.errorMessage]).toEqual([
        'FAILED',
        expect.stringMatching(/connection to the database was lost/),
      ])
      expect(node.durationMs).toBeLessThan(25_000)
    }
  })

  test('one that never answers is given up when the node is', async () => {
    const port = await listen(() => {})
    for (const dialect of ['postgresql', 'mysql']) {
      const credential = await plant({ port, dialect })
      const id = await host.create({
        nodes: [
          { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
          {
            id: 'sql',
            type: 'DATABASE_QUERY',
            config: { credentialId: credential, query: 'select 1' },
            timeoutMs: 500,
            retry: { maxAttempts: 1 },
          },
        ],
        edges: [{ source: 'start', target: 'sql' }],
      })
      expect(nodeOf(await host.ended(await host.execute(id)), 'sql').errorMessage).toContain(
        'longer than its limit of 500 ms',
      )
    }
  })
})

test('the check of a credential signs in, and says what is wrong', async () => {
  const outsides = createOutsides({ allowLoopback: true, allow: [] })
  open.push(() => void outsides.close())
  const { dial } = await outsides.forTeam(host.teamId)
  const check = async (more: object, signal = AbortSignal.timeout(5_000)) =>
    checkDatabase(await openTeamCredential(host.store, host.teamId, await plant(more)), { dial, signal })
  expect(await check({})).toBe('Signed in to perdure on 127.0.0.1 as perdure')
  await expect(check({ password: 'wrong' })).rejects.toThrow('password authentication failed')
  await expect(check({ port: 1 })).rejects.toThrow('connection refused')
  const port = await listen(() => {})
  await expect(check({ port }, AbortSignal.timeout(100))).rejects.toThrow()
})

test('a team has its places; the others wait in line', async () => {
  const signal = new AbortController().signal
  const leave = [await takePlace('a', signal, 2), await takePlace('a', signal, 2)]
  await (await takePlace('b', signal, 2))()
  const order: string[] = []
  const stop = new AbortController()
  const givenUp = takePlace('a', stop.signal, 2)
  const third = takePlace('a', signal, 2).then((free) => {
    order.push('third')
    return free
  })
  stop.abort(new Error('nobody wants it'))
  await expect(givenUp).rejects.toThrow('nobody wants it')
  expect(order).toEqual([])
  leave[0]!()
  leave[0]!()
  const free = await third
  const fourth = takePlace('a', signal, 2)
  free()
  ;(await fourth)()
  leave[1]!()
  expect(order).toEqual(['third'])
})
