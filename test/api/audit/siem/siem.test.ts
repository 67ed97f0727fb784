import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { plantEntries } from '../../../support/audit/siem/plant.ts'
import { makeChains } from '../../../support/chains.ts'
import { keep } from '../../../support/keep.ts'
import { startService } from '../../../support/service.ts'

const service = await keep(startService({ rateLimits: false, publicUrl: 'https://perdure.example.com' }))
const { team, oldTeam, act, tamper, entries } = makeChains(service)

async function pull(teamId: string, query = '', as = service.admin) {
  const response = await service.request(`/api/audit/team/${teamId}/siem${query}`, { as })
  const text = await response.text()
  const { status, headers } = response
  return { status, headers, text, next: headers.get('x-next-after') }
}

const pullSeqs = async (teamId: string, query = '') => {
  const { text, ...rest } = await pull(teamId, query)
  const events = JSON.parse(text) as { event: { sequence: number; action: string } }[]
  return { ...rest, seqs: events.map(({ event }) => event.sequence), last: events.at(-1)?.event.action }
}

test('by default it is one JSON array, oldest first, and the request is an entry that the next answer has', async () => {
  const teamId = await team(3)
  const [first] = await entries(teamId)
  const { status, headers, text, next } = await pull(teamId)
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('application/json')
  const events = JSON.parse(text)
  expect(events).toHaveLength(3)
  expect(events[0]).toMatchObject({
    '@timestamp': first!.ts.toISOString(),
    event: { id: first!.id, sequence: 1, action: 'TEAM_CREATED', outcome: 'success' },
    user: { id: service.user.id, name: 'Grace Hopper' },
    organization: { id: teamId },
    observer: { hostname: 'perdure.example.com' },
    perdure: { hash: first!.hash.toString('hex'), prev_hash: first!.prev.toString('hex') },
  })
  expect(next).toBe('3')
  expect(await pullSeqs(teamId, '?after=3')).toMatchObject({ seqs: [4], last: 'AUDIT_SIEM_READ', next: '4' })
  const rows = await entries(teamId)
  expect(rows[3]).toMatchObject({ resourceId: teamId, details: { format: 'json', fromSeq: 1, toSeq: 3 } })
})

test('without from it has the newest entries, with from or after the first ones', async () => {
  const teamId = await oldTeam([9, 8, 7, 6, 5])
  const from = new Date(Date.now() - 8.5 * 86_400_000).toISOString()
  const to = new Date(Date.now() - 5.5 * 86_400_000).toISOString()
  expect(await pullSeqs(teamId, '?limit=2')).toMatchObject({ seqs: [4, 5], next: '5' })
  expect(await pullSeqs(teamId, `?limit=2&to=${to}`)).toMatchObject({ seqs: [3, 4], next: '4' })
  expect(await pullSeqs(teamId, `?limit=2&from=${from}`)).toMatchObject({ seqs: [2, 3], next: '3' })
  expect(await pullSeqs(teamId, `?limit=2&from=${from}&to=${to}`)).toMatchObject({ seqs: [2, 3] })
  expect(await pullSeqs(teamId, `?limit=3&from=${from}&to=${to}`)).toMatchObject({ seqs: [2, 3, 4] })
  expect(await pullSeqs(teamId, '?after=0&limit=2')).toMatchObject({ seqs: [1, 2], next: '2' })
  expect(await pullSeqs(teamId, `?after=2&limit=1&from=${from}`)).toMatchObject({ seqs: [3] })
  expect(await pullSeqs(teamId, '?after=1000')).toMatchObject({ seqs: [], next: '1000' })
  expect(await pullSeqs(teamId, '?to=2001-01-01')).toMatchObject({ seqs: [] })
})

test('syslog and CEF are text with one entry a line, whatever the values hold', async () => {
  const teamId = await team(1)
  const name = 'a\nb "] x=1 | \\ 😀'
  const agent = 'x suser=root act=delete"] \\'
  const renamed = await service.call(
    'PUT',
    `/api/teams/${teamId}`,
    service.admin,
    { name },
    { 'user-agent': agent },
  )
  expect(renamed.status).toBe(200)
  const syslog = await pull(teamId, '?format=syslog&limit=1')
  expect(syslog.headers.get('content-type')).toMatch(/^text\/plain/)
  expect(syslog.text).toMatch(
    /^<110>1 \d{4}-\d\d-\d\dT[\d:.]+Z perdure\.example\.com perdure - TEAM_UPDATED \[perdure@32473 id=.*\] \{.*\}\n$/,
  )
  expect(syslog.text).toContain(' userAgent="x suser=root act=delete\\"\\] \\\\" ')
  expect(syslog.text).toContain('\\ud83d\\ude00')
  const cef = await pull(teamId, '?format=cef')
  expect(cef.headers.get('content-type')).toMatch(/^text\/plain/)
  expect(cef.text.split('\n')).toHaveLength(4)
  expect(cef.text.split('\n')[1]).toContain(
    ' requestClientApplication=x suser\\=root act\\=delete"] \\\\ dvchost=',
  )
  expect(cef.text.split('\n')[2]).toMatch(/\|AUDIT_SIEM_READ\|Audit SIEM read\|3\|/)
})

test('an answer of many pieces is whole', async () => {
  const teamId = await team(1)
  await plantEntries(service, teamId, 2_345)
  const all = await pullSeqs(teamId, '?limit=100000')
  expect(all.seqs).toEqual(Array.from({ length: 2_345 }, (_, at) => at + 1))
  const lines = await pull(teamId, '?format=cef&after=0&limit=1234')
  expect(lines.text.split('\n')).toHaveLength(1_235)
  expect(lines.next).toBe('1234')
})

test('a chain that was tampered with can still be read, and the instance has the entry', async () => {
  const teamId = await team(3)
  await tamper(`delete from audit_entries where team_id = '${teamId}' and seq = 3`)
  expect((await act(teamId)).status).toBe(503)
  expect((await pullSeqs(teamId)).seqs).toEqual([1, 2])
  const { rows } = await sql<{ details: object }>`select details from audit_entries
    where action = 'AUDIT_SIEM_READ' and details->>'brokenChain' = ${teamId}`.execute(service.store.db)
  expect(rows).toHaveLength(1)
})

test('only ADMINs of the team may read it, and all faults are named', async () => {
  const teamId = await team(1)
  const other = await service.otherTeam()
  const builder = await service.signUp('BUILDER', teamId)
  expect((await pull(teamId, '', builder.cookie)).status).toBe(403)
  expect((await pull(teamId, '', other.cookie)).status).toBe(403)
  expect((await pull(crypto.randomUUID())).status).toBe(404)
  const head = await service.request(`/api/audit/team/${teamId}/siem`, { method: 'HEAD', as: service.admin })
  expect([head.status, head.headers.get('x-next-after')]).toEqual([200, '3'])
  const { status, text } = await pull(teamId, '?format=xml&limit=100001&after=-1&from=yesterday')
  expect(status).toBe(400)
  const { errors } = JSON.parse(text)
  expect(errors.map(({ path }: { path: string }) => path).sort()).toEqual([
    'after',
    'format',
    'from',
    'limit',
  ])
  // Two tell of those who were refused.
  expect(await entries(teamId)).toHaveLength(3)
})
