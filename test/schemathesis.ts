import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CACHE } from './setup.ts'
import { type Installation, SIGN_IN, startInstallation } from './worker/installation.ts'

/**
 * Holds the running service against its own document with schemathesis, all checks, in all its phases:
 * `npm run schemathesis` once through with a fixed seed, `-- 600` ten minutes with a fresh one. Needs Python 3.10 or
 * newer; installs the tool for itself.
 */
const VERSION = '4.32.5'
const SEED = '4'
const venv = join(CACHE, `schemathesis-${VERSION}`)
const WORKFLOWS = 20
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

/** The configuration, with things that there are for the requests to be about. */
async function writeConfig(service: Installation, folder: string): Promise<string> {
  const workflows = await Promise.all(Array.from({ length: WORKFLOWS }, () => service.create(GRAPH)))
  for (const id of workflows) await service.ask('PUT', `/api/workflows/${id}`, { active: true })
  const executions: string[] = []
  for (let i = 0; i < EXECUTIONS; i++)
    executions.push(await service.execute(workflows[i % WORKFLOWS]!, { i }))
  const names: Record<string, string> = {
    PERDURE_TOKEN: readFileSync(join(service.dataDir, 'token'), 'utf8').trim(),
    PERDURE_EMAIL: SIGN_IN.email,
    PERDURE_PASSWORD: SIGN_IN.password,
    PERDURE_TEAM: service.teamId,
    PERDURE_WORKFLOWS: JSON.stringify(workflows),
    PERDURE_EXECUTIONS: JSON.stringify(executions),
  }
  const template = readFileSync(fileURLToPath(new URL('schemathesis.toml', import.meta.url)), 'utf8')
  const path = join(folder, 'schemathesis.toml')
  writeFileSync(
    path,
    template.replace(/\$\{(PERDURE_\w+)\}/g, (_, name: string) => names[name]!),
    { mode: 0o600 },
  )
  return path
}

const seconds = process.argv[2]
const program = install()
const folder = mkdtempSync(join(tmpdir(), 'perdure-schemathesis-'))
const service = await startInstallation({ RATE_LIMITS: 'off', LOG_LEVEL: 'warn' })
try {
  const config = await writeConfig(service, folder)
  const args = ['--config-file', config, 'run', `${service.url}/api/openapi.json`, '--checks', 'all']
  const more = seconds ? ['--max-time', seconds] : ['--max-examples', '30', '--seed', SEED]
  const child = spawn(program, [...args, ...more, '--no-color'], { cwd: folder, stdio: 'inherit' })
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve(code ?? 1))
  })
} finally {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
}
