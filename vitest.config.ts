import { globSync, readFileSync, statfsSync } from 'node:fs'
import { freemem } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The test files that take longest, mostly waiting. They
 * start first, so that none still runs alone at the end.
 */
const LONGEST = [
  'crash',
  'recorded',
  'kills.long',
  'once.long',
  'retries.long',
  'memory.long',
  'versions.long',
  'truth.long',
  'continue',
  'matrix',
  'scale',
  'start',
  'team',
  'resume',
  'outage',
  'engine',
  'stops',
  'takeover',
  'evaluator',
  'bombs',
  'workflows',
  'nodeform',
  'loopedges',
  'cli',
]

// In a fresh clone vitest knows no durations of earlier runs, and sorts by file size only.
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
      return at < 0 ? LONGEST.length : at
    }
    return (await super.sort(files)).sort((a, b) => place(a) - place(b))
  }
}

const FILES = 'test/**/*.test.ts'
const MEMORY = '/dev/shm'

/** Whether what the tests write, a few GB, fits into memory. */
function hasMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return Math.min(bavail * bsize, freemem()) > 8 * 1024 ** 3
  } catch {
    return false
  }
}

// Each test file clones a database of a thousand files: on a slow disk that takes half a second of processor time.
if (!process.env.TMPDIR && hasMemory()) process.env.TMPDIR = MEMORY

/** The files that have a test with the tag `long`: `npm run test:long` opens no others. */
function findLong(): string[] {
  return globSync(FILES).filter((file) => /tags.*'long'/.test(readFileSync(file, 'utf8')))
}

export default defineConfig(({ mode }) => ({
  test: {
    include: mode === 'long' ? findLong() : [FILES],
    // Files with nothing but long tests: what they start would run for tests that are skipped.
    ...(mode === 'long' ? {} : { exclude: ['test/**/*.long.test.ts'] }),
    tags: [{ name: 'long', description: 'Takes seconds: kills in series, bombs, whole matrices.' }],
    globalSetup: ['test/support/setup.ts'],
    pool: 'forks',
    // A worker keeps what it has imported for its next file. Long tests have a process for each file: they kill,
    // freeze and fill what others would share.
    isolate: mode === 'long',
    setupFiles: ['test/support/restore.ts'],
    // Half of the time the tests wait for leases to expire and processes to start, so four workers suit two cores. Long
    // tests also measure for how long a thread is blocked, which counts what others do meanwhile.
    maxWorkers: mode === 'long' ? 3 : 4,
    sequence: { sequencer: LongestFirst },
    // Far longer than any test takes, so that a busy machine
    // only makes tests slow, and only a hang makes them fail.
    testTimeout: 180_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000, interval: 25 } },
  },
}))
