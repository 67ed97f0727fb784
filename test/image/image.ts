import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findTemporal } from '../../worker/local/binary.ts'
import { CACHE } from '../support/cache.ts'
import { buildImage } from './build.ts'
import { readCompose, readDockerfile } from './compose.ts'

// Builds the image of temporal-dev.yml, step by step as the file says, in a folder with Debian's packages, and then
// starts its migration, API and worker there (inside.ts), in a network of their own that has only a loopback. It needs
// root and mmdebstrap. It does not prove Compose itself, Docker's base image and that of Temporal, or health checks.

const demanded = { PERDURE_KEYS: '-', ADMIN_PASSWORD: '-', POSTGRES_PASSWORD: '-' }
const say = (line: string) => console.log(`image: ${line}`)

function findReason(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'it needs root on Linux'
  if (spawnSync('mmdebstrap', ['--version']).status !== 0) return 'mmdebstrap is not installed'
  const namespaces = ['--mount', '--pid', '--net', '--fork', 'ip', 'link', 'set', 'lo', 'up']
  if (spawnSync('unshare', namespaces).status !== 0) return 'namespaces cannot be made here'
  return undefined
}

async function check(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'perdure-image-'))
  chmodSync(folder, 0o755)
  try {
    const temporal = await findTemporal(process.env.TEMPORAL_CLI, CACHE, say)
    const root = join(folder, 'root')
    execFileSync('mkdir', ['-m', '755', root])
    const image = await buildImage(root, readDockerfile(readCompose(demanded)), say)
    if (!existsSync(join(root, image.cwd, 'api/console/dist/index.html')))
      throw new Error('the image has no console: its build must make it')
    const inside = fileURLToPath(new URL('inside.ts', import.meta.url))
    const shut = ['--mount', '--pid', '--net', '--fork', '--kill-child', '--mount-proc']
    const args = [...shut, process.execPath, '--disable-warning=ExperimentalWarning', inside]
    const { status } = spawnSync('unshare', [...args, JSON.stringify(image), folder], {
      env: { ...process.env, TEMPORAL_CLI: temporal.path },
      stdio: 'inherit',
      timeout: 150_000,
      killSignal: 'SIGKILL',
    })
    if (status !== 0) throw new Error('what the image holds does not start')
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

const reason = findReason()
if (reason) say(`skipped, because ${reason}`)
else {
  try {
    await check()
    say('no failures')
  } catch (error) {
    say(`failed: ${(error as Error).message}`)
    process.exitCode = 1
  }
}
