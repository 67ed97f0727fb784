import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { openDatabase } from '../../db/connection.ts'
import { migrate } from '../../db/migrate.ts'
import { bundleWorkflows } from '../../worker/engine/bundle.ts'
import { type Program, type SupervisedChild, superviseChild } from '../../worker/local/children.ts'
import { findFree } from '../../worker/local/ports.ts'
import { describePostgres, describeTemporal } from '../../worker/local/programs.ts'
import { checkServer } from '../../worker/temporal.ts'
import { CACHE } from './cache.ts'
import { onServer } from './database.ts'
import { describeSkipped } from './programs.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The URL of the template database that every test file clones. */
    databaseUrl: string
    temporalAddress: string
    /** Where the Temporal server of the tests listens besides: its HTTP API and its metrics. Empty for another. */
    temporalPorts: number[]
    /** Path of the Temporal CLI that runs the server; empty if TEST_TEMPORAL_ADDRESS names a server. */
    temporalCli: string
    /** The file in which that server keeps everything; empty for another. */
    temporalFile: string
    /** Path of the workflow bundle, which is made once for all test files. */
    workflowBundle: string
  }
}

// Temporal forgets a deleted run only when it acknowledges its queues, by default every 30 seconds.
// It looks only after minutes whether a version of the workers is drained.
const SOON = [
  'history.transferProcessorUpdateAckInterval',
  'history.visibilityProcessorUpdateAckInterval',
  'matching.wv.VersionDrainageStatusVisibilityGracePeriod',
  'matching.wv.VersionDrainageStatusRefreshInterval',
].flatMap((key) => ['--dynamic-config-value', `${key}="1s"`])

/**
 * Vitest's global setup: starts PostgreSQL and Temporal, in a temporary folder and without fsync, or uses
 * those that TEST_DATABASE_URL and TEST_TEMPORAL_ADDRESS name.
 */
export default async function setup(project: TestProject) {
  for (const line of describeSkipped()) console.log(`[setup] ${line}`)
  const folder = mkdtempSync(join(tmpdir(), 'perdure-test-'))
  // If the tests run as root, PostgreSQL runs as another user, which must be able to enter the folder.
  chmodSync(folder, 0o711)
  const children: SupervisedChild[] = []
  const ends: (() => Promise<void> | void)[] = [() => rmSync(folder, { recursive: true, force: true })]
  const teardown = async () => {
    await Promise.all(children.map((child) => child.stop()))
    for (const end of ends.reverse()) await end()
  }
  const place = { dataDir: folder, durable: false, say: (line: string) => console.log(`[setup] ${line}`) }
  const launch = (program: Program) => {
    const child = superviseChild(program, {
      started() {},
      lost: (name, why) => place.say(`${name} ${why}`),
      back() {},
    })
    children.push(child)
    return child.ready
  }
  try {
    const bundle = writeBundle()
    const [server] = await Promise.all([startPostgres(), startTemporal(bundle), bundle])
    const template = `perdure_template_${process.pid}`
    await onServer(server, `create database ${template}`)
    if (process.env.TEST_DATABASE_URL)
      ends.push(() => onServer(server, `drop database ${template} with (force)`))
    const url = new URL(server)
    url.pathname = `/${template}`
    const { db, close } = openDatabase(url.href, { max: 2, name: 'migrate' })
    await migrate(db).finally(close)
    project.provide('databaseUrl', url.href)
  } catch (error) {
    await teardown()
    throw error
  }
  return teardown

  async function writeBundle(): Promise<void> {
    const path = join(folder, 'workflows.js')
    writeFileSync(path, (await bundleWorkflows()).code)
    project.provide('workflowBundle', path)
    // For the programs that tests start, and that other scripts start without vitest (engine/process.ts).
    process.env.TEST_WORKFLOW_BUNDLE = path
  }

  async function startPostgres(): Promise<string> {
    if (process.env.TEST_DATABASE_URL) return process.env.TEST_DATABASE_URL
    const { program, cluster } = await describePostgres({ ...place, port: await findFree() })
    if (!cluster.folder.startsWith(folder))
      ends.push(() => rmSync(cluster.folder, { recursive: true, force: true }))
    await launch(program)
    return cluster.url
  }

  async function startTemporal(bundle: Promise<void>): Promise<void> {
    const named = process.env.TEST_TEMPORAL_ADDRESS
    if (named) {
      // Bundling blocks this thread; on a busy machine for longer than a connection may take.
      await bundle
      await checkServer(named, 'default')
      project.provide('temporalAddress', named)
      project.provide('temporalCli', '')
      project.provide('temporalPorts', [])
      project.provide('temporalFile', '')
      return
    }
    const found = await describeTemporal({
      ...place,
      port: await findFree(),
      namespace: 'default',
      cache: CACHE,
      byHand: process.env.TEMPORAL_CLI,
    })
    await launch({ ...found.program, args: [...found.program.args, ...SOON] })
    project.provide('temporalAddress', found.address)
    project.provide('temporalCli', found.program.command)
    project.provide('temporalPorts', found.guardedPorts)
    project.provide('temporalFile', found.file)
  }
}
