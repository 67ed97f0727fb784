import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** They take longest, for the most part in waiting: begun first, none of them runs on alone when all others are done. */
const LONGEST = [
  'crash',
  'scale',
  'truth',
  'console',
  'outage',
  'start',
  'runs',
  'continue',
  'loopedges',
  'cli',
]

// A fresh clone knows no times to sort by, only sizes.
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
      return at < 0 ? LONGEST.length : at
    }
    return (await super.sort(files)).sort((a, b) => place(a) - place(b))
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/setup.ts'],
    pool: 'forks',
    // Half of the time is waiting, for leases to run out and processes to start: two cores have work for three.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Far more than anything takes: a busy machine is slow, only a hang fails.
    testTimeout: 90_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000, interval: 25 } },
  },
})
