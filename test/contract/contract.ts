import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { CACHE } from '../support/cache.ts'
import { startInstallation } from '../support/engine/installation.ts'

// Holds the running service's OpenAPI document and metrics against other people's tools: two generators of clients,
// a linter, and Prometheus's own check. Any warning fails. The tools are installed into the cache at the first use;
// one that cannot be had here is skipped, and said so at the end.

const REDOCLY = '@redocly/cli@2.77.0'
const OPENAPI_TYPESCRIPT = 'openapi-typescript@7.13.0'
const OPENAPI_PYTHON = 'openapi-python-client==0.29.1'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))

type Outcome = { code: number; output: string }

function run(program: string, args: string[], options: { cwd?: string; input?: string } = {}): Outcome {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    env,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    ...options,
  })
  return {
    code: error ? -1 : (status ?? -1),
    output: `${error?.message ?? ''}${stdout ?? ''}${stderr ?? ''}`,
  }
}

/** The tool cannot be had on this machine. */
class Missing extends Error {}

function demandInstalled({ code, output }: Outcome): void {
  if (code !== 0) throw new Missing(output.trim().split('\n').slice(-3).join(' '))
}

/** Installs an npm package into a folder of its own; returns the path of `file` in it. */
function installPackage(spec: string, file: string): string {
  const folder = join(CACHE, spec.replace(/^@/, '').replaceAll(/[/@]/g, '-'))
  const program = join(folder, 'node_modules', file)
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  demandInstalled(
    run('npm', ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', spec]),
  )
  return program
}

/** Installs a Python package into a venv of its own; returns the folder of its programs. */
function installPython(spec: string): string {
  const venv = join(CACHE, spec.replace('==', '-'))
  const done = join(venv, 'installed')
  if (!existsSync(done)) {
    demandInstalled(run('python3', ['-m', 'venv', venv]))
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', spec]
    demandInstalled(run(join(venv, 'bin', 'python'), pip))
    writeFileSync(done, '')
  }
  return join(venv, 'bin')
}

/** promtool from the PATH, or from Debian's package, which is unpacked and not installed. */
function installPromtool(): string {
  if (run('promtool', ['--version']).code === 0) return 'promtool'
  const folder = join(CACHE, 'promtool')
  const program = join(folder, 'usr', 'bin', 'promtool')
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  const get = () =>
    run('apt-get', ['-o', 'APT::Sandbox::User=root', 'download', 'prometheus'], { cwd: folder })
  const isFetched = get().code === 0
  // The lists of a new machine are empty.
  if (!isFetched) demandInstalled(run('apt-get', ['update']))
  if (!isFetched) demandInstalled(get())
  const file = readdirSync(folder).find((name) => name.endsWith('.deb'))!
  demandInstalled(run('dpkg-deb', ['-x', join(folder, file), folder]))
  rmSync(join(folder, file))
  return program
}

const GRAPH = {
  nodes: [
    { id: 'in', type: 'WEBHOOK_TRIGGER', config: { path: 'in', responseMode: 'lastNode' } },
    { id: 'sum', type: 'SET', config: { values: { sum: '{{ $input.body.n + 1 }}' } } },
  ],
  edges: [{ source: 'in', target: 'sum' }],
}

const folder = mkdtempSync(join(tmpdir(), 'perdure-contract-'))
const document = join(folder, 'openapi.json')
const service = await startInstallation({ RATE_LIMITS: 'off', LOG_LEVEL: 'warn' })
const results: string[] = []

/** Runs one check, whose outcome must have the code 0. */
function check(name: string, work: () => Outcome): void {
  try {
    const { code, output } = work()
    results.push(code === 0 ? `clean    ${name}` : `WARNINGS ${name}`)
    if (code === 0) return
    console.log(`${name}:\n${output.replaceAll(/^/gm, '| ')}`)
    process.exitCode = 1
  } catch (error) {
    if (!(error instanceof Missing)) throw error
    results.push(`SKIPPED  ${name}: it could not be installed here (${error.message.slice(0, 300)})`)
  }
}

try {
  const workflow = await service.create(GRAPH)
  await service.ask('PUT', `/api/workflows/${workflow}`, { active: true })
  writeFileSync(document, await (await fetch(`${service.url}/api/openapi.json`)).text())
  const token = readFileSync(join(service.dataDir, 'token'), 'utf8').trim()

  check('redocly lint', () => {
    const program = installPackage(REDOCLY, '@redocly/cli/bin/cli.js')
    const how = ['--config', here('redocly.yaml'), '--format', 'codeframe', '--max-problems', '50']
    const outcome = run(process.execPath, [program, 'lint', document, ...how], { cwd: folder })
    return /You have \d+ warning/.test(outcome.output) ? { ...outcome, code: 1 } : outcome
  })

  check('openapi-typescript', () => {
    const program = installPackage(OPENAPI_TYPESCRIPT, 'openapi-typescript/bin/cli.js')
    const outcome = run(process.execPath, [program, document, '-o', join(folder, 'types.ts')], {
      cwd: folder,
    })
    return /warn/i.test(outcome.output) ? { ...outcome, code: 1 } : outcome
  })

  check('openapi-python-client', () => {
    const bin = installPython(OPENAPI_PYTHON)
    const config = join(folder, 'config.json')
    // It knows no images, which only the guide has, no lines of JSON, and no CSV that is sent; and its formatter is not
    // what is tested.
    const bytes = 'application/octet-stream'
    const unknown = ['image/png', 'application/x-ndjson', 'application/x-protobuf', 'text/csv']
    const overrides = Object.fromEntries(unknown.map((type) => [type, bytes]))
    writeFileSync(config, JSON.stringify({ content_type_overrides: overrides, post_hooks: [] }))
    const output = ['--output-path', join(folder, 'perdure_client'), '--meta', 'none']
    const args = ['generate', '--path', document, ...output, '--config', config, '--fail-on-warning']
    const made = run(join(bin, 'openapi-python-client'), args)
    if (made.code !== 0 || /WARNING/.test(made.output)) return { ...made, code: 1 }
    return run(join(bin, 'python'), [here('client.py'), folder, service.url, token, service.teamId, workflow])
  })

  // The programs have held up this process, which must first see that connections were closed meanwhile.
  await setTimeout(100)
  const metrics = await (await fetch(`${service.url}/metrics`)).text()
  check('promtool check metrics', () => run(installPromtool(), ['check', 'metrics'], { input: metrics }))
} finally {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
}
console.log(results.join('\n'))
