import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SESSION_COOKIE } from '../../api/people/session.ts'
import { CACHE } from '../support/cache.ts'
import { type Installation, SIGN_IN, startInstallation } from '../support/engine/installation.ts'

// Tests the running service against its own OpenAPI document with schemathesis, with all checks and phases.
// `npm run schemathesis` runs once with a fixed seed, `npm run schemathesis -- 600` for ten minutes with a
// random one. Needs Python 3.10 or newer, and installs schemathesis itself.

const VERSION = '4.32.5'
const SEED = '4'

/**
 * Operations that guess passwords. They are tested last,
 * because wrong passwords lock out the account and the address.
 */
const GUESSING = ['signIn', 'changePassword', 'updateAccount']
const venv = join(CACHE, `schemathesis-${VERSION}`)
const WORKFLOWS = 20
const LISTENING = 3
const EXECUTIONS = 40
const CREDENTIALS = 10
const WIDGETS = 5

const GRAPH = {
  nodes: [
    ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => ({
      id: method,
      type: 'WEBHOOK_TRIGGER',
      config: { path: 'in', method },
    })),
    { id: 'set', type: 'SET', config: { values: { input: '{{ $input }}' } } },
  ],
  edges: [{ source: 'POST', target: 'set' }],
}

function install(): string {
  const program = join(venv, 'bin', 'st')
  if (existsSync(program)) return program
  execFileSync('python3', ['-m', 'venv', venv], { stdio: 'inherit' })
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', `schemathesis==${VERSION}`]
  execFileSync(join(venv, 'bin', 'python'), pip, { stdio: 'inherit' })
  return program
}

/**
 * Creates workflows and executions for the requests to use,
 * and returns the values of the configuration's names.
 */
async function makeNames(service: Installation): Promise<Record<string, string>> {
  const workflows = await Promise.all(Array.from({ length: WORKFLOWS }, () => service.create(GRAPH)))
  for (const id of workflows) await service.ask('PUT', `/api/workflows/${id}`, { active: true })
  const executions: string[] = []
  for (let i = 0; i < EXECUTIONS; i++)
    executions.push(await service.execute(workflows[i % WORKFLOWS]!, { i }))
  const credentials = await Promise.all(
    Array.from({ length: CREDENTIALS }, async (_, i) => {
      const json = { teamId: service.teamId, name: `credential ${i}`, type: 'DEMO', data: {} }
      return (await service.ask<{ id: string }>('POST', '/api/credentials', json)).id
    }),
  )
  const widgets = await makeWidgets(service, credentials[0]!)
  // Workflows whose webhooks are called must not be among those that are changed and deleted.
  const listening = workflows.splice(0, LISTENING)
  return {
    PERDURE_LISTENING: JSON.stringify(listening),
    PERDURE_TOKEN: readFileSync(join(service.dataDir, 'token'), 'utf8').trim(),
    PERDURE_TEAM: service.teamId,
    PERDURE_WORKFLOWS: JSON.stringify(workflows),
    PERDURE_CREDENTIALS: JSON.stringify(credentials),
    PERDURE_WIDGETS: JSON.stringify(widgets.map(({ id }) => id)),
    PERDURE_WIDGET_KEYS: JSON.stringify(widgets.map(({ key }) => key)),
    PERDURE_EXECUTIONS: JSON.stringify(executions),
    PERDURE_HOOKS: fileURLToPath(new URL('schemathesis.py', import.meta.url)),
  }
}

/** Widgets of an agent that no request deletes. */
async function makeWidgets(
  service: Installation,
  credentialId: string,
): Promise<{ id: string; key: string }[]> {
  const workflowId = await service.create({
    nodes: [
      { id: 'chat', type: 'CHAT_TRIGGER', config: {} },
      { id: 'llm', type: 'LLM', config: { credentialId, model: 'demo', prompt: '{{ $trigger.message }}' } },
    ],
    edges: [{ source: 'chat', target: 'llm' }],
  })
  await service.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
  const json = { teamId: service.teamId, name: 'a widget', workflowId, allowedOrigins: [service.url] }
  return Promise.all(
    Array.from({ length: WIDGETS }, () =>
      service.ask<{ id: string; key: string }>('POST', '/api/widgets', json),
    ),
  )
}

/** Signs in again whenever a request has ended the session. */
const SIGNING_IN = `[auth.dynamic.openapi.session]
path = "/api/auth/login"
payload = { email = "${SIGN_IN.email}", password = "${SIGN_IN.password}" }
extract_from = "cookie"
extract_selector = "${SESSION_COOKIE}"
retry_on = [401]`

/** Runs schemathesis once; resolves with true if it found no failures. */
async function run(names: Record<string, string>, options: string[]): Promise<boolean> {
  const template = readFileSync(fileURLToPath(new URL('schemathesis.toml', import.meta.url)), 'utf8')
  const config = join(folder, 'schemathesis.toml')
  writeFileSync(
    config,
    template.replace(/\$\{(PERDURE_\w+)\}/g, (_, name: string) => names[name]!),
    { mode: 0o600 },
  )
  const args = [
    '--config-file',
    config,
    'run',
    `${service.url}/api/openapi.json`,
    '--checks',
    'all',
    '--no-color',
  ]
  const child = spawn(program, [...args, ...options], { cwd: folder, stdio: 'inherit' })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve(code === 0))
  })
}

const seconds = process.argv[2]
const program = install()
const folder = mkdtempSync(join(tmpdir(), 'perdure-schemathesis-'))
const service = await startInstallation({ RATE_LIMITS: 'off', LOG_LEVEL: 'warn' })
try {
  const names = await makeNames(service)
  const once = ['--max-examples', '30', '--seed', SEED]
  const choose = (how: 'include' | 'exclude') => GUESSING.flatMap((id) => [`--${how}-operation-id`, id])
  const signingIn = { ...names, PERDURE_SESSION: SIGNING_IN }
  const passed = await run(signingIn, [...choose('exclude'), ...(seconds ? ['--max-time', seconds] : once)])
  // Last, and with a session that no request ends, because afterwards this address can no longer sign in.
  const session = (await service.signIn()).split('=')[1]
  const guessing = { ...names, PERDURE_SESSION: `[auth.openapi.session]\napi_key = "${session}"` }
  const guessingPassed = await run(guessing, [
    ...choose('include'),
    ...once,
    '--phases',
    'examples,coverage,fuzzing',
  ])
  process.exitCode = passed && guessingPassed ? 0 : 1
} finally {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
}
