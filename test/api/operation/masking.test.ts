import { sql } from 'kysely'
import { afterEach, expect, test } from 'vitest'
import { INSTANCE_CHAIN } from '../../../db/audit/signing.ts'
import { listChains, verifyAudit } from '../../../db/audit/verify/verify.ts'
import { openDatabase } from '../../../db/connection.ts'
import { openExport } from '../../../db/executions/export.ts'
import type { Scope } from '../../../db/scope.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const ERROR =
  'ada@example.org +49 30 1234567, 123-45-6789 DE89 3704 0044 0532 0130 00 4111 1111 1111 1111 93.184.216.34 password=hunter2'
const PATH = '/api/admin/masking'

const service = await keep(startService({ rateLimits: false }))
const team = await service.otherTeam()
afterEach(() => put({ detectors: all(true), style: 'LABEL', patterns: [], keys: [] }))

const all = (on: boolean) =>
  Object.fromEntries(['email', 'phone', 'ssn', 'credit_card', 'iban', 'ip_address'].map((kind) => [kind, on]))

async function put(json: unknown) {
  const response = await service.request(PATH, { method: 'PUT', as: service.admin, json })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

/** The error message of a node as the export shows it. */
async function show(error: string): Promise<string> {
  const { db } = service.store
  await sql`delete from executions where team_id = ${team.teamId}`.execute(db)
  const id = crypto.randomUUID()
  await sql`
    with flow as (
      insert into workflows (id, team_id, name, version, settings) values (${id}, ${team.teamId}, ${id}, 1, '{}')),
    version as (
      insert into workflow_versions (workflow_id, version, nodes, edges, node_count) values (${id}, 1, '[]', '[]', 1)),
    run as (
      insert into executions (id, team_id, workflow_id, workflow_name, workflow_version, node_count, status, trigger,
        trigger_node_id, input_data, input_bytes, started_by_kind)
      values (${id}, ${team.teamId}, ${id}, 'Flow', 1, 1, 'FAILED', 'API', 'a', '{}', 2, 'USER'))
    insert into node_executions (id, execution_id, node_id, node_name, node_type, status, started_at, error_message)
    values (${id}, ${id}, 'a', 'A', 'SET', 'FAILED', now(), ${error})`.execute(db)
  const response = await service.request(`/api/executions/team/${team.teamId}/export?format=json`, {
    as: team.cookie,
  })
  const [execution] = (await response.json()) as { nodeExecutions: { error: string }[] }[]
  return execution!.nodeExecutions[0]!.error
}

test('everything is masked until the admin changes that', async () => {
  const fresh = await startService()
  const response = await fresh.request(PATH, { as: fresh.admin })
  expect(await response.json()).toEqual({
    detectors: all(true),
    style: 'LABEL',
    patterns: [],
    keys: [],
    updatedAt: null,
  })
  await fresh.stop()
  expect(await show(ERROR)).toBe(
    '[EMAIL] [PHONE], [SSN] [IBAN] [CREDIT_CARD] [IP_ADDRESS] password=[redacted]',
  )
})

test('each kind of personal data can be left unmasked, but secrets cannot', async () => {
  const labels = '[EMAIL] [PHONE], [SSN] [IBAN] [CREDIT_CARD] [IP_ADDRESS] password=[redacted]'
  const plain: Record<string, string> = {
    email: 'ada@example.org',
    phone: '+49 30 1234567',
    ssn: '123-45-6789',
    iban: 'DE89 3704 0044 0532 0130 00',
    credit_card: '4111 1111 1111 1111',
    ip_address: '93.184.216.34',
  }
  for (const [kind, text] of Object.entries(plain)) {
    const { body } = await put({ detectors: { ...all(true), [kind]: false } })
    expect(body.detectors).toEqual({ ...all(true), [kind]: false })
    expect(await show(ERROR)).toBe(labels.replace(`[${kind.toUpperCase()}]`, text))
  }
  await put({ detectors: all(false) })
  expect(await show(ERROR)).toBe(ERROR.replace('hunter2', '[redacted]'))
  // Fields that are not given keep their values.
  const { body } = await put({ detectors: { ssn: true }, style: 'PARTIAL' })
  expect(body).toMatchObject({ detectors: { ...all(false), ssn: true }, style: 'PARTIAL' })
  expect((await put({})).body).toMatchObject({ detectors: { ...all(false), ssn: true }, style: 'PARTIAL' })
})

test('a partly masked value can still be recognised by somebody who knows it', async () => {
  await put({ style: 'PARTIAL' })
  expect(await show(`${ERROR} 2606:2800:220:1::1946`)).toBe(
    'a***@example.org ***67, ***-**-6789 DE***3000 ***1111 93.184.*** password=[redacted] 2606:***',
  )
})

test("the instance's own patterns and keys are masked too", async () => {
  await put({
    patterns: [
      { name: 'CUSTOMER', pattern: '(?i)cust-\\d{4,9}' },
      { name: 'WORD', pattern: '[A-Z]+SECRET' },
    ],
    keys: ['customer ref', 'Schlüssel'],
  })
  expect(await show('no Cust-12345, [CUST-123456], cust-12; TOPSECRET')).toBe(
    'no [CUSTOMER], [[CUSTOMER]], cust-12; [WORD]',
  )
  expect(await show(JSON.stringify({ customerRef: 'x', customer_ref: 1, schlüssel: ['y'], ref: 'z' }))).toBe(
    '{"customerRef":"[redacted]","customer_ref":"[redacted]","schlüssel":["[redacted]"],"ref":"z"}',
  )
  expect(await show('customerRef=abc, ref=def')).toBe('customerRef=[redacted], ref=def')
})

test('a pattern never matches masked text, and after 1,000 matches the rest is masked as a whole', async () => {
  await put({ patterns: [{ name: 'CAPITALS', pattern: '[A-Z]+|redacted' }] })
  expect(await show('A ada@example.org password=x B')).toBe(
    '[CAPITALS] [EMAIL] password=[redacted] [CAPITALS]',
  )
  const many = await show('A.'.repeat(3_000))
  expect(many.split('[CAPITALS]')).toHaveLength(1_002)
  expect(many).toMatch(/\[CAPITALS\]\[CAPITALS\]$/)
  expect(many).not.toContain('A.')
})

test("audit entries follow the instance's patterns and keys", async () => {
  await put({ patterns: [{ name: 'CUSTOMER', pattern: 'cust-\\d+' }] })
  const { teamId } = await service.otherTeam()
  const cookie = await service.signUp('ADMIN', teamId)
  const response = await service.request('/api/workflows', {
    method: 'POST',
    as: cookie.cookie,
    json: { teamId, name: 'For cust-77' },
  })
  expect(response.status).toBe(201)
  const { rows } = await sql<{ details: unknown }>`
    select details from audit_entries where team_id = ${teamId} and action = 'WORKFLOW_CREATED'`.execute(
    service.store.db,
  )
  expect(JSON.stringify(rows)).toContain('For [CUSTOMER]')
})

test('all invalid fields are named at once, and nothing is changed', async () => {
  const { status, body } = await put({
    detectors: { email: 'no' },
    style: 'NONE',
    patterns: [
      { name: 'lower', pattern: 'a' },
      { name: 'A', pattern: '(' },
      { name: 'A', pattern: '(?=a)' },
      { name: 'A', pattern: 'a*' },
      { name: 'A', pattern: '(a{500}){2}' },
      { name: 'A', pattern: '' },
      { name: 'A', pattern: 'a'.repeat(201) },
      { name: 'A' },
    ],
    keys: ['ab', 7],
  })
  expect(status).toBe(400)
  expect((body.errors as { path: string }[]).map(({ path }) => path)).toEqual([
    'detectors.email',
    'style',
    'patterns[0].name',
    'patterns[1].pattern',
    'patterns[2].pattern',
    'patterns[3].pattern',
    'patterns[4].pattern',
    'patterns[5].pattern',
    'patterns[6].pattern',
    'patterns[7].pattern',
    'keys[0]',
    'keys[1]',
  ])
  expect((await put({ patterns: Array(21).fill({ name: 'A', pattern: 'a' }) })).status).toBe(400)
  expect((await put({ keys: Array(101).fill('key') })).status).toBe(400)
  expect(await (await service.request(PATH, { as: service.admin })).json()).toMatchObject({ patterns: [] })
})

test("only the instance's admin may read and change the masking", async () => {
  const someone = await service.signUp('ADMIN')
  for (const method of ['GET', 'PUT']) {
    const json = method === 'PUT' ? { detectors: { email: false } } : undefined
    expect((await service.request(PATH, { method, as: someone.cookie, json })).status).toBe(403)
    expect((await service.request(PATH, { method, json })).status).toBe(401)
  }
})

test('what one process sets applies to exports of the others at once', async () => {
  await show('ada@example.org cust-1')
  const other = openDatabase(service.database.url, { max: 2, name: 'other' })
  const scope: Scope = {
    store: { ...service.store, db: other.db },
    actor: { kind: 'USER', id: team.id, name: 'Ada' },
    userId: team.id,
    instanceAdmin: false,
    access: null,
    roles: new Map([[team.teamId, 'ADMIN']]),
    requestId: null,
    ip: null,
    userAgent: null,
  }
  const read = async () => {
    const rows = await openExport(scope, team.teamId, { days: 1, format: 'csv' })
    const errors: unknown[] = []
    await rows.read((_, node) => errors.push(node?.error))
    return errors
  }
  expect(await read()).toEqual(['[EMAIL] cust-1'])
  await put({ detectors: { email: false }, patterns: [{ name: 'CUSTOMER', pattern: 'cust-\\d+' }] })
  expect(await read()).toEqual(['ada@example.org [CUSTOMER]'])
  await other.close()
})

test('concurrent changes of different fields are all kept', async () => {
  await Promise.all([
    put({ keys: ['alpha'] }),
    put({ style: 'PARTIAL' }),
    put({ detectors: { ssn: false } }),
    put({ detectors: { iban: false } }),
  ])
  expect(await (await service.request(PATH, { as: service.admin })).json()).toMatchObject({
    keys: ['alpha'],
    style: 'PARTIAL',
    detectors: { ...all(true), ssn: false, iban: false },
  })
})

test("a change is an entry in the instance's audit chain, without the patterns themselves", async () => {
  const patterns = [{ name: 'CUSTOMER', pattern: 'the-one-[0-9]+' }]
  expect((await put({ style: 'PARTIAL', patterns, keys: ['customer ref'] })).status).toBe(200)
  expect((await put({ patterns: [{ name: 'x', pattern: '(' }] })).status).toBe(400)
  const refused = await service.request(PATH, { method: 'PUT', as: team.cookie, json: { style: 'LABEL' } })
  expect(refused.status).toBe(403)
  expect(await listChains(service.store)).toContain(INSTANCE_CHAIN)
  const { entries, closed, findings } = await verifyAudit(service.store, INSTANCE_CHAIN)
  expect([entries > 0, closed, findings]).toEqual([true, false, []])
  const last = await service.store.db
    .selectFrom('auditEntries')
    .selectAll()
    .where('teamId', '=', INSTANCE_CHAIN)
    .where('action', '=', 'MASKING_UPDATED')
    .orderBy('seq', 'desc')
    .executeTakeFirstOrThrow()
  expect(last).toMatchObject({
    action: 'MASKING_UPDATED',
    actorKind: 'USER',
    resourceType: 'MASKING',
    resourceId: null,
    details: { detectors: all(true), style: 'PARTIAL', patterns: ['CUSTOMER'], keys: 1 },
  })
})
