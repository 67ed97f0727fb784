import { expect, test } from 'vitest'
import { writeCef } from '../../../../activities/audit/siem/cef.ts'
import { nameSender } from '../../../../activities/audit/siem/describe.ts'
import { toEcs } from '../../../../activities/audit/siem/ecs.ts'
import { frameSyslog, writeSyslog } from '../../../../activities/audit/siem/syslog.ts'
import type { AuditEntryView } from '../../../../db/audit/list.ts'
import { makeHostileEntries } from '../../../support/audit/siem/hostile.ts'
import { type ParsedSyslog, parseCef, startRsyslog } from '../../../support/audit/siem/parsers.ts'
import { lacks } from '../../../support/programs.ts'

const HOST = 'perdure.example.com'
const LINE_BREAK = /\r\n?|\n/g

const hostile = makeHostileEntries(10_000)
const plain: AuditEntryView = {
  ...hostile[0]!,
  action: 'WORKFLOW_CREATED',
  resourceType: 'WORKFLOW',
  outcome: 'SUCCESS',
  details: { name: 'Orders' },
}

/** What a message of syslog must be read as. */
function expectSyslog(entry: AuditEntryView, lines: 'kept' | 'space') {
  const { id, seq, teamId: team, action, outcome, resourceType, resourceId, userId, userName } = entry
  const { actor, ip, userAgent, requestId, hash, prevHash } = entry
  const fields = { id, seq: String(seq), team, action, outcome, resourceType, resourceId, userId, userName }
  const more = { actorKind: actor.kind, actorId: actor.id, actorRole: actor.role, ip, userAgent, requestId }
  const all = Object.entries({ ...fields, ...more, hash, prevHash }).filter(([, value]) => value !== null)
  const space = (text: string) => (lines === 'space' ? text.replace(LINE_BREAK, ' ') : text)
  return Object.fromEntries(all.map(([key, value]) => [key, space(value!)]))
}

function checkSyslog(parsed: ParsedSyslog[], lines: 'kept' | 'space') {
  expect(parsed).toHaveLength(hostile.length)
  for (const [at, entry] of hostile.entries()) {
    const one = parsed[at]!
    expect(Object.keys(one['rfc5424-sd'])).toEqual(['perdure@32473'])
    expect(one['rfc5424-sd']['perdure@32473']).toEqual(expectSyslog(entry, lines))
    expect(JSON.parse(one.msg)).toEqual(JSON.parse(JSON.stringify(entry.details)))
    expect(one).toMatchObject({ host: HOST, app: 'perdure', procid: '-' })
    expect(Date.parse(one.time)).toBe(entry.createdAt.getTime())
    expect(one.msgid).toMatch(/^[\x21-\x7e]{1,32}$/)
    if (/^[A-Z_]+$/.test(entry.action)) expect(one.msgid).toBe(entry.action)
  }
}

test.skipIf(lacks('parsers'))(
  'rsyslog reads 10,000 hostile entries back from syslog, framed and in lines',
  { tags: 'long', timeout: 120_000 },
  async () => {
    const rsyslog = await startRsyslog()
    try {
      const frames = hostile.map((entry) => frameSyslog(writeSyslog(entry, HOST, 'kept')))
      await rsyslog.send(Buffer.concat(frames))
      checkSyslog(await rsyslog.messages(hostile.length), 'kept')

      const lines = hostile.map((entry) => `${writeSyslog(entry, HOST, 'space')}\n`).join('')
      expect(lines.split('\n')).toHaveLength(hostile.length + 1)
      expect(lines).not.toContain('\r')
      await rsyslog.send(lines)
      const all = await rsyslog.messages(2 * hostile.length)
      checkSyslog(all.slice(hostile.length), 'space')
    } finally {
      await rsyslog.stop()
    }
  },
)

/** What an event of CEF must be read as: without fields that are empty, and without spaces around values. */
function expectExtensions(entry: AuditEntryView): Record<string, string> {
  const { actor, ip } = entry
  const labelled: [string, string, string | null][] = [
    ['cn1', 'Sequence', String(entry.seq)],
    ['cs1', 'Team', entry.teamId],
    ['cs2', 'Entry hash', entry.hash],
    ['cs3', 'Previous hash', entry.prevHash],
    ['cs4', 'Resource type', entry.resourceType],
    ['cs5', 'Resource id', entry.resourceId],
    ['cs6', 'Request id', entry.requestId],
    ['flexString1', 'Actor kind', actor.kind],
    ['flexString2', 'Actor id', actor.id],
    ['c6a2', 'Source IPv6 address', ip?.includes(':') ? ip : null],
  ]
  const fields: Record<string, string | null> = {
    rt: String(entry.createdAt.getTime()),
    externalId: entry.id,
    act: entry.action,
    outcome: entry.outcome.toLowerCase(),
    cat: entry.resourceType,
    suid: entry.userId,
    suser: entry.userName,
    spriv: actor.role,
    src: ip?.includes('.') ? ip : null,
    shost: ip?.includes(' ') ? ip : null,
    requestClientApplication: entry.userAgent,
    dvchost: HOST,
    msg: JSON.stringify(entry.details),
    ...Object.fromEntries(labelled.map(([key, , value]) => [key, value])),
  }
  const trim = (text: string) => text.replace(/^ +| +$/g, '')
  const there = Object.entries(fields).filter(([, value]) => value !== null && trim(value) !== '')
  const labels = labelled.filter(([, , value]) => value !== null && trim(value) !== '')
  return Object.fromEntries([
    ...there.map(([key, value]) => [key, trim(value!).replace(LINE_BREAK, '\n')]),
    ...labels.map(([key, label]) => [`${key}Label`, label]),
  ])
}

test.skipIf(lacks('parsers'))(
  'liblognorm reads 10,000 hostile entries back from CEF',
  { tags: 'long', timeout: 120_000 },
  () => {
    const lines = hostile.map((entry) => writeCef(entry, HOST))
    expect(lines.filter((line) => /[\r\n]/.test(line))).toEqual([])
    const parsed = parseCef(lines)
    expect(parsed).toHaveLength(hostile.length)
    for (const [at, entry] of hostile.entries()) {
      const one = parsed[at]
      expect(one, lines[at]).toBeDefined()
      expect(one!.Extensions).toEqual(expectExtensions(entry))
      expect(one).toMatchObject({
        DeviceVendor: 'Perdure',
        SignatureID: entry.action.replace(LINE_BREAK, ' '),
      })
    }
  },
)

test('CEF escapes what its header and its extensions must, and nothing else', () => {
  const odd = {
    ...plain,
    action: 'A|B\\C=D\r\nE',
    userName: 'x suser=root|\\\n',
    userAgent: '  ',
    requestId: '',
  }
  const line = writeCef(odd, HOST)
  expect(line).toContain('|A\\|B\\\\C=D E|')
  expect(line).toContain(' suser=x suser\\=root|\\\\\\n ')
  expect(line).not.toMatch(/requestClientApplication|cs6/)
})

test('CEF cuts long values before it escapes them', () => {
  const line = writeCef(
    { ...plain, userName: `${'a'.repeat(1_022)}=b`, userAgent: `${'a'.repeat(1_022)}😀` },
    HOST,
  )
  expect(line).toContain(` suser=${'a'.repeat(1_022)}\\= `)
  expect(line).toContain(` requestClientApplication=${'a'.repeat(1_022)} `)
})

test('the severity follows the outcome', () => {
  const heads = [plain, { ...plain, outcome: 'FAILURE' }, { ...plain, outcome: 'DENIED' }].map((entry) => [
    writeSyslog(entry, HOST, 'space').slice(0, 6),
    writeCef(entry, HOST).split('|')[6],
  ])
  expect(heads).toEqual([
    ['<110>1', '3'],
    ['<108>1', '5'],
    ['<108>1', '6'],
  ])
})

test('an event has the field names of the Elastic Common Schema', () => {
  const { id, seq, teamId, userId, userName, hash, prevHash } = hostile[0]!
  const entry = { ...plain, ip: '2001:db8::7', userAgent: 'curl/8', requestId: 'r-1' }
  expect(toEcs(entry, HOST)).toMatchObject({
    '@timestamp': '2026-05-28T20:26:40.000Z',
    message: 'Workflow created',
    event: { id, sequence: seq, action: 'WORKFLOW_CREATED', category: ['configuration'], type: ['creation'] },
    user: { id: userId, name: userName },
    source: { ip: '2001:db8::7', address: '2001:db8::7' },
    user_agent: { original: 'curl/8' },
    http: { request: { id: 'r-1' } },
    organization: { id: teamId },
    perdure: { outcome: 'SUCCESS', details: { name: 'Orders' }, hash, prev_hash: prevHash },
  })
  // The schema knows no other outcomes, and takes only addresses in `ip`.
  const denied = toEcs({ ...entry, outcome: 'DENIED', ip: 'unknown' }, HOST)
  expect(denied.event.outcome).toBe('failure')
  expect(denied.source).toEqual({ address: 'unknown' })
})

test('the host of the events is that of the public URL', () => {
  expect(nameSender('https://perdure.example.com:8443/x')).toBe(HOST)
  expect(nameSender('http://[::1]:3000')).toBe('::1')
  expect(nameSender('nothing')).toBe('-')
})
