import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const { teamId } = service
const viewer = await service.token('VIEWER')
const operator = (await service.signUp('OPERATOR')).cookie
const builder = (await service.signUp('BUILDER')).cookie

const RULES = '/api/guardrails/rules'
const REGEX = { kind: 'REGEX', config: { pattern: 'zebra', flags: 'i' } }

const send = (method: string, path: string, json?: object, as = builder) =>
  service.call(method, `${RULES}${path}`, as, json)
const create = (json: object, as = builder, team = teamId) => send('POST', `?teamId=${team}`, json, as)

let count = 0
/** Makes a rule that is disabled, so that checks of other tests do not apply it. */
async function make(json: object) {
  const { status, body } = await create({ name: `Rule ${++count}`, enabled: false, ...json })
  expect(status, JSON.stringify(body)).toBe(201)
  return body
}

const problemsOf = (body: { errors?: { path: string; message: string }[] }) =>
  (body.errors ?? []).map(({ path, message }) => `${path}: ${message}`)

async function auditOf(id: string) {
  return service.store.db
    .selectFrom('auditEntries')
    .select(['action', 'details'])
    .where('resourceId', '=', id)
    .orderBy('seq')
    .execute()
}

test('a rule is created, read, listed, changed and deleted, and each change is audited', async () => {
  const { status, body, headers } = await create({ name: ' No zebras ', ...REGEX, severity: 'HIGH' })
  expect({ status, body }).toEqual({
    status: 201,
    body: {
      id: expect.any(String),
      teamId,
      name: 'No zebras',
      description: null,
      kind: 'REGEX',
      enabled: true,
      severity: 'HIGH',
      action: 'BLOCKED',
      config: { pattern: 'zebra', flags: 'i' },
      version: 1,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    },
  })
  const path = `/${body.id}`
  expect(headers.get('location')).toBe(RULES + path)
  expect((await send('GET', path)).body).toEqual(body)
  const list = await send('GET', `?teamId=${teamId}&size=100`, undefined, viewer)
  expect(list.body.content).toContainEqual(body)
  const changed = await send('PUT', path, { enabled: false, config: { pattern: 'okapi' }, action: 'LOGGED' })
  expect(changed).toMatchObject({
    status: 200,
    body: { enabled: false, action: 'LOGGED', config: { pattern: 'okapi', flags: '' }, version: 2 },
  })
  expect((await send('PUT', path, {})).body.version).toBe(2)
  expect(await send('DELETE', path)).toMatchObject({ status: 200, body: { message: 'Rule deleted' } })
  for (const [method, json] of [['GET'], ['PUT', {}], ['DELETE']] as const)
    expect((await send(method, path, json)).status).toBe(404)
  const entries = await auditOf(body.id)
  expect(entries.map(({ action }) => action)).toEqual([
    'GUARDRAIL_RULE_CREATED',
    'GUARDRAIL_RULE_UPDATED',
    'GUARDRAIL_RULE_UPDATED',
    'GUARDRAIL_RULE_DELETED',
  ])
  expect(entries[1]!.details).toMatchObject({
    name: 'No zebras',
    changed: ['enabled', 'action', 'config'],
    before: { enabled: true, action: 'BLOCKED', config: { pattern: 'zebra', flags: 'i' } },
    after: { enabled: false, action: 'LOGGED', config: { pattern: 'okapi', flags: '' } },
  })
})

test('members read rules, and BUILDERs write them; nobody sees those of another team', async () => {
  const rule = await make(REGEX)
  const other = await service.otherTeam()
  for (const as of [viewer, operator]) {
    expect((await send('GET', `/${rule.id}`, undefined, as)).status).toBe(200)
    expect((await create({ name: 'x', ...REGEX }, as)).status).toBe(403)
    expect((await send('PUT', `/${rule.id}`, { enabled: true }, as)).status).toBe(403)
    expect((await send('DELETE', `/${rule.id}`, undefined, as)).status).toBe(403)
    expect(
      (await send('POST', `/test?teamId=${teamId}`, { ruleId: rule.id, samples: ['a'] }, as)).status,
    ).toBe(403)
  }
  for (const [method, path, json] of [
    ['GET', `?teamId=${teamId}`],
    ['GET', `/${rule.id}`],
    ['PUT', `/${rule.id}`, { enabled: true }],
    ['DELETE', `/${rule.id}`],
  ] as const)
    expect((await send(method, path, json, other.cookie)).status).toBe(403)
  const foreign = { ruleId: rule.id, samples: ['zebra'] }
  expect((await send('POST', `/test?teamId=${other.teamId}`, foreign, other.cookie)).status).toBe(404)
  expect((await service.call('GET', `${RULES}/${rule.id}`, undefined)).status).toBe(401)
  expect((await send('GET', `/${randomUUID()}`)).status).toBe(404)
})

test('a name is unique in its team', async () => {
  const { name } = await make(REGEX)
  expect(await create({ name, ...REGEX })).toMatchObject({
    status: 409,
    body: { message: `The team already has a rule named "${name}"` },
  })
  const { id } = await make(REGEX)
  expect((await send('PUT', `/${id}`, { name })).status).toBe(409)
  const other = await service.otherTeam()
  expect((await create({ name, ...REGEX }, other.cookie, other.teamId)).status).toBe(201)
})

test('all faults of a rule are told at once', async () => {
  const { status, body } = await create({
    name: ' ',
    kind: 'KEYWORD_LIST',
    config: { keywords: ['a', '', 7], wholeWord: 'no' },
    severity: 'AWFUL',
    action: 'REDACTED',
    enabled: 1,
    description: 3,
  })
  expect(status).toBe(400)
  expect(body.errors.map(({ path }: { path: string }) => path).sort()).toEqual([
    'action',
    'config.keywords[1]',
    'config.keywords[2]',
    'config.wholeWord',
    'description',
    'enabled',
    'name',
    'severity',
  ])
  expect(problemsOf((await create({ name: 'x', kind: 'SQL', config: {} })).body)).toEqual([
    expect.stringMatching(/^kind: must be one of REGEX, KEYWORD_LIST, JAVASCRIPT, LLM_PROMPT/),
  ])
})

test.each<[string, object, RegExp]>([
  [
    'a pattern that looks ahead',
    { kind: 'REGEX', config: { pattern: '(?=a)b' } },
    /^config\.pattern: is not one of RE2, which has no look-around/,
  ],
  [
    'a pattern that refers back',
    { kind: 'REGEX', config: { pattern: '(a)\\1' } },
    /^config\.pattern: is not one of RE2/,
  ],
  [
    'a pattern that is none',
    { kind: 'REGEX', config: { pattern: '(a' } },
    /^config\.pattern: .*missing closing \)/,
  ],
  [
    'a pattern that explodes',
    { kind: 'REGEX', config: { pattern: '(a{1,1000}){1,1000}' } },
    /^config\.pattern: /,
  ],
  [
    'a pattern with a big program',
    { kind: 'REGEX', config: { pattern: 'a{1000}'.repeat(280) } },
    /^config\.pattern: is too large/,
  ],
  [
    'an unknown flag',
    { kind: 'REGEX', config: { pattern: 'a', flags: 'g' } },
    /^config\.flags: must be letters of ims/,
  ],
  [
    'a pattern that is too long',
    { kind: 'REGEX', config: { pattern: 'a'.repeat(2_001) } },
    /^config\.pattern: must have at most 2000/,
  ],
  ['no keywords', { kind: 'KEYWORD_LIST', config: { keywords: [] } }, /^config\.keywords: must not be empty/],
  [
    'too many keywords',
    { kind: 'KEYWORD_LIST', config: { keywords: Array(5_001).fill('a') } },
    /^config\.keywords: must have at most 5000/,
  ],
  [
    'keywords that cannot be seen',
    { kind: 'KEYWORD_LIST', config: { keywords: ['\u200b\u200c', 'a'] } },
    /^config\.keywords: /,
  ],
  [
    'a pattern that matches everywhere',
    { kind: 'REGEX', config: { pattern: 'x*' } },
    /^config\.pattern: finds an empty match in any text/,
  ],
  [
    'code that is no JavaScript',
    { kind: 'JAVASCRIPT', config: { code: 'return text +' } },
    /^config\.code: line 1, column 1[34]: /,
  ],
  [
    'code that breaks out',
    { kind: 'JAVASCRIPT', config: { code: '}); (function () {' } },
    /^config\.code: line 1/,
  ],
  [
    'code that imports',
    { kind: 'JAVASCRIPT', config: { code: 'return import("fs")' } },
    /^config\.code: .*no modules/,
  ],
  [
    'code that reads more',
    { kind: 'JAVASCRIPT', config: { code: 'return $vars.a' } },
    /^config\.code: sees only the text, as `text`: not \$vars/,
  ],
  [
    'no instruction',
    { kind: 'LLM_PROMPT', config: { instruction: ' ' } },
    /^config\.instruction: must not be empty/,
  ],
  [
    'a config of another kind',
    { kind: 'REGEX', config: { code: 'return true' } },
    /^config\.pattern: is required/,
  ],
])('%s is refused when it is saved, changed or tried', async (_, rule, message) => {
  const { status, body } = await create({ name: randomUUID(), ...rule })
  expect(status).toBe(400)
  expect(problemsOf(body)).toEqual([expect.stringMatching(message)])
  const given = rule as { kind: string; config: object }
  const tried = await send('POST', `/test?teamId=${teamId}`, { rule: given, samples: ['a'] })
  expect(tried.status).toBe(400)
  expect(problemsOf(tried.body)).toEqual([
    expect.stringMatching(new RegExp(message.source.replace('^config', '^rule\\.config|^config'))),
  ])
  const good = {
    REGEX: { pattern: 'a' },
    KEYWORD_LIST: { keywords: ['a'] },
    JAVASCRIPT: { code: '' },
    LLM_PROMPT: { instruction: 'a' },
  }
  const config = given.kind === 'JAVASCRIPT' ? { code: 'return false' } : good[given.kind as 'REGEX']
  const stored = await make({ kind: given.kind, config })
  const changed = await send('PUT', `/${stored.id}`, { config: given.config })
  expect(changed.status).toBe(400)
  expect(problemsOf(changed.body)).toEqual([expect.stringMatching(message)])
  expect((await send('GET', `/${stored.id}`)).body).toEqual(stored)
})

test('a team has at most 100 enabled rules, however many are made at once', {
  timeout: 120_000,
}, async () => {
  const other = await service.otherTeam()
  const add = (n: number) => create({ name: `Rule ${n}`, ...REGEX }, other.cookie, other.teamId)
  const first = await Promise.all(Array.from({ length: 97 }, (_, n) => add(n)))
  expect(first.every(({ status }) => status === 201)).toBe(true)
  const off = await create({ name: 'Off', ...REGEX, enabled: false }, other.cookie, other.teamId)
  const race = await Promise.all([
    ...Array.from({ length: 8 }, (_, n) => add(97 + n)),
    send('PUT', `/${off.body.id}`, { enabled: true }, other.cookie),
  ])
  const done = race.filter(({ status }) => status < 300)
  const refused = race.filter(({ status }) => status === 409)
  expect([done.length, refused.length]).toEqual([3, 6])
  expect(refused[0]!.body.message).toBe('The team has 100 enabled rules already: disable one first')
  const page = await send('GET', `?teamId=${other.teamId}&size=100`, undefined, other.cookie)
  const rows = page.body.content as { id: string; enabled: boolean }[]
  expect(
    rows.filter(({ enabled }) => enabled).length + (page.body.totalElements - rows.length),
  ).toBeLessThanOrEqual(101)
  const late = await create({ name: 'Late', ...REGEX, enabled: false }, other.cookie, other.teamId)
  expect(late.status).toBe(201)
  expect((await send('PUT', `/${late.body.id}`, { enabled: true }, other.cookie)).status).toBe(409)
  expect(
    (await send('PUT', `/${rows.find(({ enabled }) => enabled)!.id}`, { enabled: false }, other.cookie))
      .status,
  ).toBe(200)
  expect((await send('PUT', `/${late.body.id}`, { enabled: true }, other.cookie)).status).toBe(200)
})

test('the configs of a team have at most 1,000,000 bytes together', async () => {
  const other = await service.otherTeam()
  const config = { keywords: Array.from({ length: 3_000 }, (_, n) => `${n} `.padEnd(180, 'a')) }
  const add = (name: string) =>
    create({ name, kind: 'KEYWORD_LIST', config, enabled: false }, other.cookie, other.teamId)
  expect((await add('One')).status).toBe(201)
  const { status, body } = await add('Two')
  expect(status).toBe(400)
  expect(problemsOf(body)).toEqual([expect.stringMatching(/^config: would have 1\d{6} bytes as JSON/)])
})

test('what the code of a rule says is told without secrets of the text', async () => {
  const team = await service.otherTeam()
  const path = `/api/guardrails/check?teamId=${team.teamId}`
  const rule = {
    name: 'Says all',
    kind: 'JAVASCRIPT',
    config: { code: 'return {flagged: true, message: text}' },
  }
  expect((await create(rule, team.cookie, team.teamId)).status).toBe(201)
  const text = `Key ghp_${'0123456789abcdef'.repeat(2)}abcd of the shop`
  const { body } = await service.call('POST', path, team.cookie, { text, applyCustomRules: true })
  expect(body.violations).toMatchObject([{ message: 'Rule "Says all": Key [redacted] of the shop' }])
})
