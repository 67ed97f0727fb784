import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { COOKIE } from '../api/session.ts'
import { CACHE } from './setup.ts'
import { type Installation, SIGN_IN, startInstallation } from './worker/installation.ts'

/**
 * Holds the running service against its own document with schemathesis, all checks, in all its phases:
 * `npm run schemathesis` once through with a fixed seed, `-- 600` ten minutes with a fresh one. Needs Python 3.10 or
 * newer; installs the tool for itself.
 */
const VERSION = '4.32.5'
const SEED = '4'
/** Wrong passwords lock out the account and the address that they come from: they are tried last. */
const GUESSING = ['signIn', 'changePassword', 'updateAccount']
const venv = join(CACHE, `schemathesis-${VERSION}`)
const WORKFLOWS = 20
const LISTENING = 3
const EXECUTIONS = 40

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

/** What the configuration speaks of: things that there are, for the requests to be about. */
async function makeNames(service: Installation): Promise<Record<string, string>> {
  const workflows = await Promise.all(Array.from({ length: WORKFLOWS }, () => service.create(GRAPH)))
  for (const id of workflows) await service.ask('PUT', `/api/workflows/${id}`, { active: true })
  const executions: string[] = []
  for (let i = 0; i < EXECUTIONS; i++)
    executions.push(await service.execute(workflows[i % WORKFLOWS]!, { i }))
  // Those for webhooks are not for deleting and changing.
  const listening = workflows.splice(0, LISTENING)
  return {
    PERDURE_LISTENING: JSON.stringify(listening),
    PERDURE_TOKEN: readFileSync(join(service.dataDir, 'token'), 'utf8').trim(),
    PERDURE_TEAM: service.teamId,
    PERDURE_WORKFLOWS: JSON.stringify(workflows),
    PERDURE_EXECUTIONS: JSON.stringify(executions),
    PERDURE_HOOKS: fileURLToPath(new URL('schemathesis.py', import.meta.url)),
  }
}

/** Signs in again whenever the run has ended its own session. */
const SIGNING_IN = `[auth.dynamic.openapi.session]
path = "/api/auth/login"
payload = { email = "${SIGN_IN.email}", password = "${SIGN_IN.password}" }
extract_from = "cookie"
extract_selector = "${COOKIE}"
retry_on = [401]`

/** One run; answers whether nothing was found. */
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
  const held = await run(signingIn, [...choose('exclude'), ...(seconds ? ['--max-time', seconds] : once)])
  // Last, and with a session that nothing ends: the address may not sign in any more.
  const session = (await service.signIn()).split('=')[1]
  const guessing = { ...names, PERDURE_SESSION: `[auth.openapi.session]\napi_key = "${session}"` }
  const guessed = await run(guessing, [
    ...choose('include'),
    ...once,
    '--phases',
    'examples,coverage,fuzzing',
  ])
  process.exitCode = held && guessed ? 0 : 1
} finally {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
}
