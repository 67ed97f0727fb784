import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { removeFarewells } from '../../../../db/audit/siem/farewell.ts'
import { claimForwarder } from '../../../../db/audit/siem/sending.ts'
import { startForwarding } from '../../../../worker/service/audit/forwarding.ts'
import { plantEntries } from '../../../support/audit/siem/plant.ts'
import { startJsonReceiver, startSyslogReceiver } from '../../../support/audit/siem/receivers.ts'
import { makeChains } from '../../../support/chains.ts'
import { plantCredential } from '../../../support/credentials.ts'
import { keep } from '../../../support/keep.ts'
import { AUTHORITY, CERT } from '../../../support/servers/certificate.ts'
import { LOCAL } from '../../../support/servers/loopback.ts'
import { startService } from '../../../support/service.ts'
import { until } from '../../../support/until.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, act } = makeChains(service)
const { store } = service
const outside = createOutsides(LOCAL)
const carrier = { store, outside, host: 'perdure.example.com', log: pino({ level: 'silent' }) }

/** Sends until the end of the test. */
function send() {
  const end = startForwarding(carrier, { everyMs: 25 })
  onTestFinished(end)
  return end
}

async function add(teamId: string, json: object): Promise<string> {
  const path = `/api/audit/team/${teamId}/forwarders`
  const { status, body } = await service.call('POST', path, service.admin, { name: 'SIEM', ...json })
  expect(status).toBe(201)
  return body.id
}

const read = async (teamId: string, id: string) =>
  (await service.call('GET', `/api/audit/team/${teamId}/forwarders/${id}`, service.admin)).body

/** Waits until the receiver has taken everything. */
const untilSent = (teamId: string, id: string) =>
  until(() => read(teamId, id), { holds: ({ waiting }) => waiting === 0 })

const upTo = (count: number, from = 1) => Array.from({ length: count - from + 1 }, (_, at) => from + at)

/** Makes what has failed due at once. */
const makeDue = () => sql`update audit_forwarders set due_at = now()`.execute(store.db)

test('entries are sent as they are written, in the order of the chain', async () => {
  const teamId = await team(3)
  const receiver = await keep(startJsonReceiver())
  const id = await add(teamId, { type: 'HTTPS', url: receiver.url, after: 0 })
  send()
  await untilSent(teamId, id)
  expect(receiver.seqs()).toEqual([1, 2, 3, 4])
  await act(teamId, 'a new name')
  expect(await untilSent(teamId, id)).toMatchObject({ after: 5, lastError: null, failures: 0, missed: 0 })
  expect(receiver.seqs()).toEqual([1, 2, 3, 4, 5])
  const last = receiver.batches.at(-1)!
  expect(last.headers['content-type']).toBe('application/json')
  expect(last.events[0]).toMatchObject({
    event: { action: 'TEAM_UPDATED' },
    observer: { hostname: carrier.host },
  })
})

test('a failure is told, and the entries are sent again later, or once the forwarder is changed', async () => {
  const teamId = await team(2)
  const receiver = await keep(startJsonReceiver(() => 503))
  const url = receiver.url
  const id = await add(teamId, { type: 'HTTPS', url, after: 0 })
  send()
  const failed = await until(() => read(teamId, id), { holds: ({ failures }) => failures === 1 })
  expect(failed).toMatchObject({ after: 0, waiting: 3, lastError: `${new URL(url).host} answered with 503` })
  const wait = Date.parse(failed.nextTryAt) - Date.parse(failed.lastErrorAt)
  expect(wait).toBe(5_000)
  await makeDue()
  const again = await until(() => read(teamId, id), { holds: ({ failures }) => failures === 2 })
  expect(Date.parse(again.nextTryAt) - Date.parse(again.lastErrorAt)).toBe(10_000)
  receiver.answer(() => 200)
  const path = `/api/audit/team/${teamId}/forwarders/${id}`
  await service.call('PUT', path, service.admin, { name: 'SIEM', type: 'HTTPS', url })
  expect(await untilSent(teamId, id)).toMatchObject({ lastError: null, failures: 0, nextTryAt: null })
  expect(receiver.seqs()).toEqual([1, 2, 3, 1, 2, 3, 1, 2, 3, 4])
})

test('a receiver of syslog that is cut off in the middle gets what it may not have read once more', async () => {
  const teamId = await team(1)
  await act(teamId, 'two\nlines "]')
  const receiver = await keep(
    startSyslogReceiver({ cut: (at) => (at < 3 ? 3_000 * at : Number.POSITIVE_INFINITY) }),
  )
  const target = { type: 'SYSLOG', host: '127.0.0.1', port: receiver.port, caCertificate: CERT }
  const id = await add(teamId, { ...target, after: 0 })
  await plantEntries(service, teamId, 450)
  send()
  for (const failures of [1, 2]) {
    await until(() => read(teamId, id), { holds: (one) => one.failures === failures })
    await makeDue()
  }
  await untilSent(teamId, id)
  // Three batches, each over a connection of its own.
  expect(receiver.connections()).toBe(5)
  const seqs = receiver.seqs()
  expect([...new Set(seqs)]).toEqual(upTo(450))
  expect(seqs.slice(-450)).toEqual(upTo(450))
  expect(receiver.messages.at(-449)).toContain('"two\\nlines \\"]"')
})

test('nothing is sent to a receiver whose certificate is of another authority', async () => {
  const teamId = await team(1)
  const receiver = await keep(startSyslogReceiver())
  const target = { type: 'SYSLOG', host: '127.0.0.1', port: receiver.port }
  const ids = [await add(teamId, { ...target, caCertificate: AUTHORITY }), await add(teamId, target)]
  await act(teamId)
  send()
  for (const id of ids) {
    const failed = await until(() => read(teamId, id), { holds: ({ failures }) => failures > 0 })
    expect(failed.lastError).toMatch(/certificate/)
  }
  expect(receiver.messages).toEqual([])
})

test('two processes share the work, and one at a time sends for a forwarder', async () => {
  const teamId = await team(1)
  const receiver = await keep(startJsonReceiver())
  const id = await add(teamId, { type: 'HTTPS', url: receiver.url, after: 0 })
  await plantEntries(service, teamId, 1_500)
  send()
  send()
  await untilSent(teamId, id)
  expect(receiver.seqs()).toEqual(upTo(1_500))
  expect(Math.max(...receiver.batches.map(({ concurrent }) => concurrent))).toBe(1)
})

test('what was purged before it was sent is counted', async () => {
  const { oldTeam } = makeChains(service)
  const teamId = await oldTeam([50, 45, 40, 5])
  const receiver = await keep(startJsonReceiver())
  const id = await add(teamId, { type: 'HTTPS', url: receiver.url, after: 1 })
  const policy = { retentionDays: 30, autoDeleteEnabled: false }
  await service.call('PUT', `/api/audit/team/${teamId}/retention`, service.admin, policy)
  const { body } = await service.call('POST', `/api/audit/team/${teamId}/purge`, service.admin)
  expect(body.purgedCount).toBe(3)
  send()
  expect(await untilSent(teamId, id)).toMatchObject({ missed: 2 })
  expect(receiver.seqs()[0]).toBe(4)
})

test('a forwarder that is disabled sends nothing, and a missing entry stops it', async () => {
  const teamId = await team(2)
  const receiver = await keep(startJsonReceiver())
  const url = receiver.url
  const [off, cut] = [
    await add(teamId, { type: 'HTTPS', url, after: 0, enabled: false }),
    await add(teamId, { type: 'HTTPS', url }),
  ]
  const { tamper } = makeChains(service)
  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq > 3`)
  send()
  const failed = await until(() => read(teamId, cut), { holds: ({ failures }) => failures > 0 })
  expect(failed.lastError).toBe('The entries after 3 are missing in the chain: verify it')
  expect(await read(teamId, off)).toMatchObject({ after: 0, failures: 0 })
  expect(receiver.batches).toEqual([])
})

test('no entry is missing and the order is kept if the senders are killed in the middle', {
  tags: 'long',
}, async () => {
  const teamId = await team(1)
  const path = fileURLToPath(new URL('../../../support/audit/siem/sender.ts', import.meta.url))
  const key = store.keys.byId.get('k1')!.toString('hex')
  const begin = () => {
    const child = spawn(process.execPath, [path, service.database.url, key], { stdio: 'ignore' })
    return { child, ended: once(child, 'exit') }
  }
  let sender = begin()
  onTestFinished(() => void sender.child.kill('SIGKILL'))
  let kills = 0
  // Dead when it has sent a batch and waits for the answer, or has just got it and may not have noted it.
  const receiver = await keep(
    startJsonReceiver(async (_batch, at) => {
      if (at % 3 !== 0 || kills === 4) return 200
      const kill = async () => {
        kills++
        const { child, ended } = sender
        child.kill('SIGKILL')
        await ended
        sender = begin()
      }
      if (kills % 2 === 0) await kill()
      else setImmediate(kill)
      return 200
    }),
  )
  const id = await add(teamId, { type: 'HTTPS', url: receiver.url, after: 0 })
  await plantEntries(service, teamId, 3_000)
  await untilSent(teamId, id)
  expect(kills).toBe(4)
  let last = 0
  for (const { seqs } of receiver.batches) {
    // A batch that is sent again begins where one began before, and none leaves anything out.
    expect(seqs[0]).toBeLessThanOrEqual(last + 1)
    expect(seqs).toEqual(upTo(seqs.at(-1)!, seqs[0]))
    last = Math.max(last, seqs.at(-1)!)
  }
  expect(new Set(receiver.seqs()).size).toBe(3_000)
  expect(receiver.seqs().length).toBeGreaterThan(3_000)
})

/** The numbers of the entries that a receiver was sent, and the acts of the last ones. */
const told = (receiver: Awaited<ReturnType<typeof startJsonReceiver>>) =>
  receiver.batches.flatMap(({ events }) =>
    events.map((event: { event: { action: string } }) => event.event.action),
  )

const rowsOf = async (teamId: string) =>
  (await store.db.selectFrom('auditForwarders').select('id').where('teamId', '=', teamId).execute()).length

test('whoever stops a forwarder, gives it another address or deletes the team is told of to the receiver until then', async () => {
  const teamId = await team(1)
  const [first, second] = [await keep(startJsonReceiver()), await keep(startJsonReceiver())]
  const credentialId = await plantCredential(store, teamId, 'HTTP_BEARER', { token: 'a-secret-of-the-siem' })
  const id = await add(teamId, { type: 'HTTPS', url: first.url, credentialId, after: 0 })
  const path = `/api/audit/team/${teamId}/forwarders/${id}`
  const put = (json: object) =>
    service.call('PUT', path, service.admin, { name: 'SIEM', type: 'HTTPS', credentialId, ...json })
  expect((await put({ url: second.url })).status).toBe(200)
  await act(teamId, 'not for the first one')
  expect((await put({ url: second.url, enabled: false })).status).toBe(200)
  await act(teamId, 'for nobody')
  // Copies are no forwarders of the team.
  expect((await service.call('GET', path.slice(0, -37), service.admin)).body).toHaveLength(1)
  expect((await put({ url: second.url, enabled: true, after: 5 })).status).toBe(200)
  expect((await service.call('DELETE', `/api/teams/${teamId}`, service.admin)).status).toBe(200)
  const end = send()
  await until(async () => told(second).at(-1), { holds: (action) => action === 'TEAM_DELETED' })
  await until(async () => told(first).length, { holds: (count) => count === 3 })
  await until(async () => new Set(second.seqs()).size, { holds: (count) => count === 8 })
  expect(told(first)).toEqual(['TEAM_CREATED', 'AUDIT_FORWARDER_CREATED', 'AUDIT_FORWARDER_UPDATED'])
  expect([...new Set(second.seqs())].sort((a, b) => a - b)).toEqual(upTo(8))
  expect(second.batches.at(-1)!.headers.authorization).toBe('Bearer a-secret-of-the-siem')
  await end()
  await removeFarewells(store)
  expect(await rowsOf(teamId)).toBe(0)
})

test('a forwarder that is deleted has sent that, and one of a team with rules of its own sends nothing after its end', async () => {
  const [teamId, ruled] = [await team(1), await team(1)]
  const receiver = await keep(startJsonReceiver())
  const id = await add(teamId, { type: 'HTTPS', url: receiver.url })
  await service.call('DELETE', `/api/audit/team/${teamId}/forwarders/${id}`, service.admin)
  await add(ruled, { type: 'HTTPS', url: receiver.url })
  await sql`insert into team_egress (team_id, allow, deny, updated_at)
    values (${ruled}, '{}', '{127.0.0.1}', now())`.execute(store.db)
  expect((await service.call('DELETE', `/api/teams/${ruled}`, service.admin)).status).toBe(200)
  expect(await rowsOf(ruled)).toBe(0)
  send()
  await until(async () => told(receiver).at(-1), { holds: (action) => action === 'AUDIT_FORWARDER_DELETED' })
  expect(told(receiver)).toEqual(['AUDIT_FORWARDER_CREATED', 'AUDIT_FORWARDER_DELETED'])
  await sql`update audit_forwarders set ends_at = now() - interval '1 second', sent_seq = 0
    where team_id = ${teamId}`.execute(store.db)
  await removeFarewells(store)
  expect(await rowsOf(teamId)).toBe(0)
})

test('receivers of many teams that hang do not keep others from sending', async () => {
  const hanging = await keep(startJsonReceiver(() => new Promise<number>(() => {})))
  const ids: string[] = []
  for (let i = 0; i < 12; i++)
    ids.push(await add(await team(1), { type: 'HTTPS', url: hanging.url, after: 0 }))
  const teamId = await team(2)
  const receiver = await keep(startJsonReceiver())
  // The last of all to be due.
  const id = await add(teamId, { type: 'HTTPS', url: receiver.url, after: 0 })
  send()
  await untilSent(teamId, id)
  expect(receiver.seqs()).toEqual([1, 2, 3])
  const others = store.db.selectFrom('auditForwarders').select(['failures', 'lease']).where('id', 'in', ids)
  // They are waited for still: none has given up.
  expect(
    (await others.execute()).filter(({ failures, lease }) => failures === 0 && lease !== null),
  ).toHaveLength(12)
}, 120_000)

test('of those that have failed before, only some are tried at a time, and they come last', async () => {
  const claimed: string[] = []
  const failed = await team(1)
  const sound = await team(1)
  const url = 'http://127.0.0.1:9'
  await add(failed, { type: 'HTTPS', url, after: 0 })
  await add(sound, { type: 'HTTPS', url, after: 0 })
  await sql`update audit_forwarders set failures = 3 where team_id = ${failed}`.execute(store.db)
  await sql`update audit_forwarders set enabled = false where team_id not in (${failed}, ${sound})`.execute(
    store.db,
  )
  const claim = async (failing: boolean) => {
    const found = await claimForwarder(store, 60_000, [], { failing })
    claimed.push(found?.teamId ?? 'none')
  }
  await claim(true)
  await claim(false)
  await claim(true)
  expect(claimed).toEqual([sound, 'none', failed])
})
