import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
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

/**
 * Builds the console where it is missing or older than its sources, and returns the folder it lies in. Of several
 * processes one builds, and the others wait for it.
 */
export async function buildConsole(): Promise<string> {
  const wanted = await hashSources()
  while ((await readMark()) !== wanted) {
    const lock = await takeLock()
    if (!lock) await sleep(LOOK_MS)
    else {
      try {
        if ((await readMark()) !== wanted) await build(wanted)
      } finally {
        await lock.release()
      }
    }
  }
  return BUILT
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

// In a process of its own, so that the API keeps its memory and goes on answering.
async function build(mark: string): Promise<void> {
  const made = join(LOCK, 'dist')
  const args = [VITE, 'build', '--config', CONFIG, '--outDir', made, '--logLevel', 'error']
  await promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_ENV: 'production' } })
  await compress(join(made, 'console'))
  await writeFile(join(made, MARK), mark)
  await rm(BUILT, { recursive: true, force: true })
  await rename(made, BUILT)
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
