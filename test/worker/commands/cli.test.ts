import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'
import { takeLock } from '../../../worker/local/lock.ts'
import { COMPILED } from '../../support/cache.ts'
import { onServer } from '../../support/database.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

const service = await keep(startService())
const dataDir = mkdtempSync(join(tmpdir(), 'perdure-cli-'))
const { current, byId } = service.store.keys
const keys = `${current}:${byId.get(current)!.toString('base64')}`
const env: Record<string, string> = {
  DATABASE_URL: service.database.url,
  DATA_DIR: dataDir,
  PERDURE_KEYS: keys,
}
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

/** Runs the launcher as npx does: on whatever Node the machine has, from another folder. */
function perdure(
  args: string[],
  { input = '', set = env, program = [join(ROOT, 'worker/perdure.js')] } = {},
) {
  const [first = '', ...rest] = program
  const command = first.endsWith('.js') ? 'node' : first
  const child = spawn(command, [...(command === 'node' ? [first] : rest), ...args], {
    cwd: command === 'node' ? tmpdir() : ROOT,
    // Without node_modules/.bin, so that `node` is the machine's own.
    env: {
      ...COMPILED,
      ...set,
      HOME: process.env.HOME,
      PATH: process.env
        .PATH!.split(':')
        .filter((folder) => !folder.includes('node_modules'))
        .join(':'),
    },
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (part) => (out += part))
  child.stderr.on('data', (part) => (err += part))
  child.stdin.end(input)
  return new Promise<{ code: number | null; out: string; err: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, out, err })),
  )
}

/** Who has given the commands, for the audit. */
const CLI = `cli (${userInfo().username}@${hostname()})`

const login = (email: string, password: string) =>
  service.request('/api/auth/login', { method: 'POST', json: { email, password } })

test('npx perdure works in the project and prints the usage', async () => {
  const help = await perdure(['--help'], { program: ['npx', 'perdure'] })
  expect(help).toMatchObject({ code: 0, err: '' })
  expect(help.out).toContain('audit verify')
}, 60_000)

test('user add creates an account in a team; user passwd sets a new password and ends all sessions', async () => {
  const role = ['--team', service.teamId, '--role', 'builder']
  const made = await perdure(['user', 'add', 'ada@example.com', '--first-name', 'Ada', ...role])
  expect(made).toMatchObject({ code: 0, err: '' })
  const password = /^Password: (\S+) /m.exec(made.out)![1]!
  const signedIn = await login('ada@example.com', password)
  expect(await signedIn.json()).toMatchObject({
    firstName: 'Ada',
    teams: [{ teamId: service.teamId, role: 'BUILDER' }],
  })
  const cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!

  const changed = await perdure(['user', 'passwd', 'ADA@example.com', '--password-stdin'], {
    input: 'another horse entirely\n',
  })
  expect(changed).toMatchObject({ code: 0, err: '' })
  expect(changed.out).not.toContain('another horse')
  expect((await service.request('/api/auth/me', { as: cookie })).status).toBe(401)
  expect((await login('ada@example.com', 'another horse entirely')).status).toBe(200)

  const entry = await service.store.db
    .selectFrom('auditEntries')
    .select(['actorKind', 'actorName', 'actorId'])
    .where('action', '=', 'MEMBER_ADDED')
    .executeTakeFirstOrThrow()
  expect(entry).toEqual({ actorKind: 'SYSTEM', actorName: CLI, actorId: null })
}, 60_000)

test('exits with 1 after a refusal and 2 after a wrong command or environment, with a message and no stack', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const nowhere = crypto.randomUUID()
  const input = 'password1234'
  const cases: [string[], number, string][] = [
    [['user', 'add', 'admin@example.com'], 1, 'already has an account'],
    [['user', 'add', 'x@example.com', '--password-stdin'], 1, 'password: is too easy to guess'],
    [['user', 'add', 'x@example.com', '--team', nowhere, '--role', 'ADMIN'], 1, 'no such team'],
    [['user', 'passwd', 'nobody@example.com'], 1, 'Nobody has an account'],
    [['user', 'confirm', 'nobody@example.com'], 1, 'Nobody has an account'],
    [['user', 'confirm', 'admin@example.com', '--user', 'x'], 2, 'not a UUID'],
    [['team', 'plan', nowhere, 'FREE'], 1, 'no such team'],
    [['audit', 'verify', nowhere], 1, 'no such team'],
    [['token', 'create', service.teamId, '--name', ' '], 2, '--name must be given'],
    [['token', 'create', nowhere], 1, 'no such team'],
    [
      ['team', 'plan', service.teamId, 'GOLD'],
      2,
      'the plan must be one of FREE, TEAM, BUSINESS, ENTERPRISE, not GOLD',
    ],
    [['team', 'plan', 'x', 'FREE'], 2, 'not a UUID'],
    [['user', 'add', 'x'], 2, 'not an e-mail'],
    [['user', 'remove', 'x'], 2, '"user" must be followed by add or confirm or passwd'],
    [['passwd', 'hunter2-secret'], 2, 'no command "passwd"'],
    [['token', 'create', 'a', 'b'], 2, 'token create takes at most 1 argument, not 2'],
    [['user', 'add', 'x@example.com', '--colour', 'red'], 2, '--colour'],
  ]
  for (const [args, code, said] of cases) {
    const done = await perdure(args, { input })
    expect([args, done.code, done.err]).toEqual([args, code, expect.stringContaining(said)])
    expect(done.err).not.toMatch(/\.ts:\d|hunter2/)
  }
  const users = await service.store.db.selectFrom('users').select('email').execute()
  expect(users.map(({ email }) => email)).not.toContain('x@example.com')
  const alone = await perdure(['team', 'list'], { set: { DATA_DIR: dataDir } })
  expect([alone.code, alone.err]).toEqual([2, expect.stringContaining('DATABASE_URL must be set')])
})

test('team plan sets the plan, team list shows it, token create creates a token with the given role', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const planned = await perdure(['team', 'plan', service.teamId, 'business'])
  expect(planned.code).toBe(0)
  const detail = await (await service.request(`/api/teams/${service.teamId}`, { as: service.admin })).json()
  expect(detail).toMatchObject({ plan: 'BUSINESS' })
  const listed = await perdure(['team', 'list'])
  expect(listed.out).toMatch(new RegExp(`^${service.teamId} +BUSINESS +\\d+ +"Default"\n$`))

  const expires = new Date(Date.now() + 3_600_000).toISOString()
  const options = ['--name', 'ci', '--role', 'viewer', '--expires', expires]
  const made = await perdure(['token', 'create', service.teamId, ...options])
  expect(made).toMatchObject({ code: 0, err: '', out: expect.stringMatching(/^sdk_\w{38}\n$/) })
  const token = made.out.trim()
  expect((await service.request(`/api/teams/${service.teamId}`, { as: token })).status).toBe(200)
  const tokens = await service.request(`/api/teams/${service.teamId}/sdk-tokens`, { as: service.admin })
  expect(await tokens.json()).toMatchObject([{ name: 'ci', role: 'Viewer', expiresAt: expires }])
  const builder = await service.signUp('OPERATOR')
  const bound = await perdure([
    'token',
    'create',
    service.teamId,
    '--name',
    'b',
    '--role',
    'ADMIN',
    '--user',
    builder.email,
  ])
  const members = `/api/teams/${service.teamId}/members`
  expect((await service.request(members, { as: bound.out.trim() })).status).toBe(403)
  // It is the operator's act, not that of the person whose rights the token has.
  const query = 'action=SDK_TOKEN_CREATED&size=1'
  const list = await service.request(`/api/audit/team/${service.teamId}?${query}`, { as: service.admin })
  expect(((await list.json()) as { content: unknown }).content).toMatchObject([
    {
      ...{
        userId: null,
        userName: CLI,
        actor: { kind: 'SYSTEM', id: null },
      },
      details: { name: 'b', role: 'ADMIN', userId: builder.id },
    },
  ])
})

test('audit verify shows which chains are intact, and exits with 1 if one is broken', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const other = await service.request('/api/teams', {
    method: 'POST',
    as: service.admin,
    json: { name: 'O' },
  })
  const { id } = (await other.json()) as { id: string }
  const intact = await perdure(['audit', 'verify'])
  expect(intact).toMatchObject({ code: 0, err: '' })
  // The chains of both teams, and that of the instance.
  expect(intact.out.trim().split('\n')).toHaveLength(3)
  const [, checkpoint] = new RegExp(`^${id}  intact  1 entries  last (\\S+)$`, 'm').exec(intact.out)!
  await service.request(`/api/teams/${id}`, { method: 'PUT', as: service.admin, json: { name: 'P' } })
  const noted = await perdure(['audit', 'verify', id, '--checkpoint', checkpoint!])
  expect(noted).toMatchObject({ code: 0, out: expect.stringContaining('2 entries') })
  const forged = await perdure(['audit', 'verify', id, '--checkpoint', `1:${'0'.repeat(64)}`])
  expect(forged).toMatchObject({ code: 1, out: expect.stringContaining('checkpoint_mismatch') })

  await onServer(
    service.database.url,
    `alter table audit_entries disable trigger user;
    update audit_entries set actor_name = 'Mallory' where team_id = '${id}' and seq = 1`,
  )
  const broken = await perdure(['audit', 'verify'])
  expect(broken).toMatchObject({ code: 1, err: '' })
  expect(broken.out).toMatch(new RegExp(`^${id}  BROKEN  2 entries .*\n  entry_modified  .*entry 1`, 'm'))
  expect(broken.out).toMatch(new RegExp(`^${service.teamId}  intact`, 'm'))
  expect((await perdure(['audit', 'verify', service.teamId])).code).toBe(0)
})

test('audit export writes the chain of the instance, of a team, and of one that is deleted', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const read = (text: string) => {
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    return lines.flatMap(({ type, core }) => (type === 'entry' ? JSON.parse(core).action : []))
  }
  const judge = async (text: string) =>
    (await perdure(['audit', 'verify', '--file', '-'], { input: text })).out.split('\n')[0]
  await service.signUp()
  const instance = await perdure(['audit', 'export'])
  expect(instance).toMatchObject({ code: 0, err: '' })
  expect(read(instance.out)).toContain('SIGNED_IN')
  expect(read(instance.out).at(-1)).toBe('AUDIT_EXPORTED')
  expect(await judge(instance.out)).toContain('00000000-0000-0000-0000-000000000000  intact')
  const { body } = await service.call('POST', '/api/teams', service.admin, { name: 'X' })
  const team = await perdure(['audit', 'export', body.id])
  expect(read(team.out)).toEqual(['TEAM_CREATED', 'AUDIT_EXPORTED'])
  await service.call('DELETE', `/api/teams/${body.id}`, service.admin)
  const deleted = await perdure(['audit', 'export', body.id])
  expect(read(deleted.out)).toEqual(['TEAM_CREATED', 'AUDIT_EXPORTED', 'TEAM_DELETED'])
  expect(await judge(deleted.out)).toContain(`${body.id}  intact  3 entries`)
  expect(read((await perdure(['audit', 'export'])).out).slice(-2)).toEqual([
    'AUDIT_EXPORTED',
    'AUDIT_EXPORTED',
  ])
  const none = await perdure(['audit', 'export', crypto.randomUUID()])
  expect(none).toMatchObject({ code: 1, out: '', err: expect.stringContaining('no such audit chain') })
})

test('audit reopen begins a new segment after a break, which audit verify names from then on', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const made = await service.call('POST', '/api/teams', service.admin, { name: 'R' })
  const { id } = made.body
  const rename = (name: string) => service.call('PUT', `/api/teams/${id}`, service.admin, { name })
  await rename('S')
  const refused = await perdure(['audit', 'reopen', id])
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('is intact') })
  await onServer(
    service.database.url,
    `alter table audit_entries disable trigger user; delete from audit_entries where team_id = '${id}' and seq = 2`,
  )
  expect((await rename('T')).body.code).toBe('AUDIT_CHAIN_BROKEN')
  const reopened = await perdure(['audit', 'reopen', id, '--note', 'looked into it'])
  expect(reopened).toMatchObject({ code: 0, err: '' })
  expect(reopened.out).toMatch(
    new RegExp(`^${id}  reopened with entry 3: the last good entry is 1, of 1 .*\n  tail_truncated  `),
  )
  expect((await rename('T')).status).toBe(200)
  const named = await perdure(['audit', 'verify', id])
  expect(named).toMatchObject({ code: 0, err: '' })
  expect(named.out).toMatch(
    new RegExp(
      `^${id}  intact since entry 3  3 entries .*\n  BREAK  Entry 3 reopened the chain at 20.*, by .+@.+ ` +
        '\\("looked into it"\\): the last good entry was 1:[\\da-f]{64}\n    tail_truncated  ',
    ),
  )
  const { email } = await service.signUp()
  // A password that has to be changed is changed even then; what no chain takes is shown.
  const instance = '00000000-0000-0000-0000-000000000000'
  const head = service.store.db.selectFrom('auditHeads').select('mac').where('teamId', '=', instance)
  const { mac } = await head.executeTakeFirstOrThrow()
  const sign = (bytes: string) =>
    onServer(service.database.url, `update audit_heads set mac = ${bytes} where team_id = '${instance}'`)
  await sign("''")
  const changed = await perdure(['user', 'passwd', email])
  expect(changed).toMatchObject({ code: 0, err: expect.stringContaining('"action":"PASSWORD_CHANGED"') })
  expect(changed.err).not.toContain(/^Password: (\S+) /m.exec(changed.out)![1]!)
  await sign(`'\\x${mac.toString('hex')}'`)
})

test('a command finds the database and the keys of a running `npm start` in the data folder', async () => {
  const lock = takeLock(dataDir)
  lock.publish({
    databaseUrl: service.database.url,
    temporalAddress: '127.0.0.1:1',
    url: 'http://127.0.0.1:1',
  })
  const { current, byId } = service.store.keys
  const keys = Object.fromEntries([...byId].map(([id, key]) => [id, key.toString('base64')]))
  writeFileSync(join(dataDir, 'keys.json'), JSON.stringify({ current, keys }))
  const listed = await perdure(['team', 'list'], { set: { DATA_DIR: dataDir } })
  lock.release()
  expect(listed).toMatchObject({ code: 0, err: '', out: expect.stringContaining(service.teamId) })
}, 60_000)

test('token create defaults to the first team and BUILDER, and prints only the token on stdout', async () => {
  await service.otherTeam()
  const made = await perdure(['token', 'create'])
  expect(made).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^sdk_\w{38}\n$/),
    err: expect.stringMatching(/^An SDK token of the team "Default", role BUILDER/),
  })
  const teams = await service.request('/api/teams', { as: made.out.trim() })
  expect(await teams.json()).toMatchObject([{ id: service.teamId, role: 'BUILDER' }])
  const tokens = await service.request(`/api/teams/${service.teamId}/sdk-tokens`, { as: service.admin })
  expect(((await tokens.json()) as unknown[])[0]).toMatchObject({ name: 'cli', role: 'Builder' })
}, 60_000)

test('user confirm confirms an e-mail, or a change to it, and is audited; of several claims one has to be named', {
  tags: 'long',
  timeout: 120_000,
}, async () => {
  const [ada, eve] = [await service.signUp(), await service.signUp()]
  const { db } = service.store
  const email = 'wanted@example.com'
  const isConfirmed = async (id: string) => {
    const row = await db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
    return [row.email, row.emailConfirmedAt !== null, row.pendingEmail]
  }
  await db.updateTable('users').set({ emailConfirmedAt: null }).where('id', '=', ada.id).execute()
  const confirmed = await perdure(['user', 'confirm', ada.email.toUpperCase()])
  expect(confirmed).toMatchObject({ code: 0, err: '', out: `${ada.email} is confirmed: ${ada.id}\n` })
  expect(await isConfirmed(ada.id)).toEqual([ada.email, true, null])
  await db.updateTable('users').set({ pendingEmail: email }).where('id', 'in', [ada.id, eve.id]).execute()
  const unclear = await perdure(['user', 'confirm', email])
  expect([unclear.code, unclear.err]).toEqual([1, expect.stringContaining(eve.id)])
  expect((await perdure(['user', 'confirm', email, '--user', ada.id])).code).toBe(0)
  expect(await isConfirmed(ada.id)).toEqual([email, true, null])
  const taken = await perdure(['user', 'confirm', email, '--user', eve.id])
  expect([taken.code, taken.err]).toEqual([1, expect.stringContaining('already has an account')])
  const entries = await db
    .selectFrom('auditEntries')
    .select(['actorKind', 'actorName', 'resourceId'])
    .where('action', '=', 'EMAIL_CONFIRMED')
    .execute()
  expect(entries).toEqual([1, 2].map(() => ({ actorKind: 'SYSTEM', actorName: CLI, resourceId: ada.id })))
})

test('secrets move moves the secrets of stored graphs, and has nothing to do the second time', {
  tags: 'long',
}, async () => {
  const { admin, teamId } = service
  const nodes = [
    { id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'in', secretHeader: { name: 'X', value: 'a' } } },
  ]
  const made = await service.call('POST', '/api/workflows', admin, { teamId, name: 'old', nodes, edges: [] })
  // As a release before credentials stored it.
  await sql`update workflow_versions set secrets_moved = false, nodes = ${JSON.stringify([
    { name: 'In', onError: 'FAIL', ...nodes[0] },
  ])}::json where workflow_id = ${made.body.id}`.execute(service.store.db)
  const first = await perdure(['secrets', 'move'])
  expect(first).toMatchObject({ code: 0, err: '' })
  expect(first.out).toContain('moved their secrets into 1 new credentials')
  expect((await perdure(['secrets', 'move'])).out).toContain('into 0 new credentials')
  const read = await service.call('GET', `/api/workflows/${made.body.id}/versions/1`, admin)
  expect(read.body.nodes[0].config.secretHeader).toEqual({ name: 'X', credentialId: expect.any(String) })
})
