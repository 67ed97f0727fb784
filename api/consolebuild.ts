import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

const SOURCES = fileURLToPath(new URL('./console/', import.meta.url))
const BUILT = join(SOURCES, 'dist')
const LOCK = join(SOURCES, '.building')
const VITE = fileURLToPath(new URL('../node_modules/vite/bin/vite.js', import.meta.url))
const CONFIG = join(SOURCES, 'vite.config.ts')

/** Which sources were built: the hash of all of them. */
const MARK = 'sources.txt'
const SKIPPED = new Set(['dist', 'old', '.building', 'AGENTS.md'])
const PACKED = new Set(['.js', '.css', '.svg'])

/** The lock of a process that was killed is taken over after this. */
const STALE_MS = 20_000
const TOUCH_MS = 5_000
const LOOK_MS = 200

/** The system's errors if this process may not write to its own folder. */
const READ_ONLY = new Set(['EACCES', 'EPERM', 'EROFS'])

/**
 * Builds the console where it is missing or older than its sources, and returns its folder. If several processes need
 * it, one builds, and the others wait for it. A process that may not write to its own folder (an image, a read-only
 * file system) builds for itself in a temporary folder, which `release` removes once it was read.
 */
export async function buildConsole(): Promise<{ folder: string; release(): Promise<void> }> {
  const wanted = await hashSources()
  while ((await readMark()) !== wanted) {
    const lock = await takeLock().catch((error: NodeJS.ErrnoException) => {
      if (!READ_ONLY.has(error.code ?? '')) throw error
      return 'refused' as const
    })
    if (lock === 'refused') return buildApart()
    if (!lock) await sleep(LOOK_MS)
    else {
      try {
        if ((await readMark()) !== wanted) await build(wanted)
      } finally {
        await lock.release()
      }
    }
  }
  return { folder: BUILT, release: async () => {} }
}

/** In a folder with a name that others cannot know before, since what lies in it becomes a page that people sign in on. */
async function buildApart(): Promise<{ folder: string; release(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-console-'))
  const release = () => rm(folder, { recursive: true, force: true })
  try {
    await runVite(folder)
  } catch (error) {
    await release()
    throw error
  }
  return { folder, release }
}

async function readMark(): Promise<string | undefined> {
  return readFile(join(BUILT, MARK), 'utf8').catch(() => undefined)
}

async function hashSources(): Promise<string> {
  const entries = await readdir(SOURCES, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(SOURCES.length))
    .filter((file) => !SKIPPED.has(file.split(/[\\/]/)[0]!))
    .sort()
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file}\0`).update(await readFile(join(SOURCES, file)))
  return hash.digest('hex')
}

/** Null if another process builds. */
async function takeLock() {
  try {
    await mkdir(LOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const held = await stat(LOCK).catch(() => undefined)
    if (held && Date.now() - held.mtimeMs > STALE_MS) await rm(LOCK, { recursive: true, force: true })
    return null
  }
  const alive = setInterval(() => void utimes(LOCK, new Date(), new Date()).catch(() => {}), TOUCH_MS)
  return {
    async release() {
      clearInterval(alive)
      await rm(LOCK, { recursive: true, force: true })
    },
  }
}

async function build(mark: string): Promise<void> {
  const made = join(LOCK, 'dist')
  await runVite(made)
  await writeFile(join(made, MARK), mark)
  await rm(BUILT, { recursive: true, force: true })
  await rename(made, BUILT)
}

// In a process of its own, so that the API keeps its memory and goes on answering. Node itself reads the configuration:
// Vite's own way writes a compiled copy into node_modules.
async function runVite(made: string): Promise<void> {
  const how = ['--config', CONFIG, '--configLoader', 'native', '--emptyOutDir', '--logLevel', 'error']
  const args = [VITE, 'build', '--outDir', made, ...how]
  await promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_ENV: 'production' } })
  await compress(join(made, 'console'))
}

async function compress(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!PACKED.has(extname(name))) continue
    const packed = await promisify(gzip)(await readFile(join(folder, name)), { level: 9 })
    await writeFile(join(folder, `${name}.gz`), packed)
  }
}

/** For `npm ci`: says nothing, and leaves the build to the first start where the packages are not there. */
export async function prepareConsole(): Promise<void> {
  if (existsSync(VITE)) await buildConsole()
}
