import { text } from 'node:stream/consumers'
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { edges } from '../../support/engine/graphs.ts'
import { startInstallation } from '../../support/engine/installation.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf } from '../../support/running.ts'
import { startMailbox } from '../../support/servers/mailbox.ts'

const host = await keep(startInstallation())
const database = new pg.Client({ connectionString: host.holder().addresses.databaseUrl })
database.on('error', () => {})
await database.connect()
await keep(Promise.resolve({ stop: () => database.end() }))

const open: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop()
})

/** A mail server that answers a mail only when `answer` is called. `mails` are those with their last line. */
async function startSlow() {
  const mails: string[] = []
  const waiting: (() => void)[] = []
  let isSlow = true
  const box = await startMailbox({
    onAuth: ({ username }, _, done) => done(null, { user: username }),
    onData(stream, _, done) {
      // A mail without its end makes this reject.
      text(stream).then(
        (mail) => {
          mails.push(mail)
          if (isSlow) waiting.push(done as () => void)
          else done()
        },
        () => {},
      )
    },
  })
  open.push(box)
  return {
    ...box,
    mails,
    answer() {
      isSlow = false
      for (const done of waiting.splice(0)) done()
    },
  }
}

let numbers = 0

/** Starts an execution that sends one mail to the server. Returns its id. */
async function startMail(port: number, more: object = {}): Promise<string> {
  const data = { host: '127.0.0.1', port, username: 'ada', password: 'correct-horse-41' }
  const credential = { teamId: host.teamId, name: `mail ${++numbers}`, type: 'SMTP', data }
  const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', credential)
  const config = {
    credentialId,
    from: 'robot@perdure.test',
    to: 'ada@example.com',
    subject: 'once',
    text: 'only once',
    ...more,
  }
  return host.execute(
    await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'mail', type: 'SEND_EMAIL', config },
      ],
      edges: edges('start -> mail'),
    }),
  )
}

const states = async (id: string) =>
  (await database.query('select state from message_notes where execution_id = $1', [id])).rows.map(
    ({ state }) => state,
  )

async function readMail(id: string) {
  const { status, errorMessage, outputData } = nodeOf(await host.ended(id, 120_000), 'mail')
  return { status, error: errorMessage, output: outputData as { messageId: string } | null }
}

const idOf = (mail = '') => /^Message-ID: (.*)$/m.exec(mail)?.[1]
const patient = { timeout: 60_000 }

test('killed before the last line of the mail, the worker sends one mail when it is back', {
  tags: 'long',
}, async () => {
  const server = await startSlow()
  server.answer()
  // Nobody can note that the mail is sent, so its last line is held back.
  await database.query('begin')
  await database.query('lock table message_notes in share mode')
  const id = await startMail(server.port)
  await expect
    .poll(async () => {
      const { rows } = await database.query(
        `select 1 from pg_locks where relation = 'message_notes'::regclass and not granted`,
      )
      return rows.length
    }, patient)
    .toBeGreaterThan(0)
  expect(server.mails).toEqual([])
  const was = host.kill('service')
  // What a dead process asked for is not carried out any more: if it were, the note would be there.
  await database.query(
    `select pg_terminate_backend(pid) from pg_locks where relation = 'message_notes'::regclass and not granted`,
  )
  await database.query('rollback')
  await host.recovered('service', was)
  expect(await readMail(id)).toMatchObject({ status: 'SUCCESS' })
  expect(server.mails).toHaveLength(1)
})

test('killed after what the server said was noted, the worker sends nothing when it is back', {
  tags: 'long',
}, async () => {
  const server = await startSlow()
  const id = await startMail(server.port)
  await expect.poll(() => server.mails.length, patient).toBe(1)
  // Temporal is not there to be told, so the attempt is not over.
  host.kill('temporal', 'SIGSTOP')
  server.answer()
  await expect.poll(() => states(id), patient).toEqual(['SENT'])
  const was = host.kill('service')
  host.kill('temporal', 'SIGCONT')
  await host.recovered('service', was)
  const { status, output } = await readMail(id)
  expect(status).toBe('SUCCESS')
  expect(server.mails.map(idOf)).toEqual([output?.messageId])
  expect(server.state.connections).toBe(1)
})

test('killed in between, nobody knows: it is never sent again, and the node says so', async () => {
  const server = await startSlow()
  const id = await startMail(server.port)
  await expect.poll(() => server.mails.length, patient).toBe(1)
  expect(await states(id)).toEqual(['SENDING'])
  const was = host.kill('service')
  server.answer()
  await host.recovered('service', was)
  const { status, error } = await readMail(id)
  expect(status).toBe('FAILED')
  expect(error).toMatch(/^The mail may have been sent/)
  expect(server.mails).toHaveLength(1)
})

test('killed in between with `repeat`: the same mail goes out once more', { tags: 'long' }, async () => {
  const server = await startSlow()
  const id = await startMail(server.port, { repeat: true })
  await expect.poll(() => server.mails.length, patient).toBe(1)
  const was = host.kill('service')
  server.answer()
  await host.recovered('service', was)
  const { status, output } = await readMail(id)
  expect(status).toBe('SUCCESS')
  expect(server.mails.map(idOf)).toEqual([output?.messageId, output?.messageId])
})
