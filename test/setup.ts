import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { openDatabase } from '../db/connection.ts'
import { migrate } from '../db/migrate.ts'
import { type Child, type Program, superviseChild } from '../worker/children.ts'
import { bundleWorkflows } from '../worker/engine.ts'
import { findFree } from '../worker/ports.ts'
import { describePostgres, describeTemporal } from '../worker/programs.ts'
import { checkServer } from '../worker/temporal.ts'
import { onServer } from './database.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A PostgreSQL server's address; its database is the template that every test file clones. */
    databaseUrl: string
    temporalAddress: string
    /** The Temporal CLI behind `temporalAddress`; empty where TEST_TEMPORAL_ADDRESS names a server. */
    temporalCli: string
    /** A file with the workflow code, bundled once for all. */
    workflowBundle: string
  }
}

// Temporal looks every half minute at what it has done, and forgets a deleted run only then.
const FORGET_SOON = ['transfer', 'visibility'].flatMap((queue) => [
  '--dynamic-config-value',
  `history.${queue}ProcessorUpdateAckInterval="1s"`,
])

/** The downloaded Temporal CLI stays between runs where `npm start` keeps its own. */
export const CACHE = fileURLToPath(new URL('../.perdure/cache', import.meta.url))

/**
 * Starts PostgreSQL and Temporal once per run, in a temporary folder and without fsync, or takes those that
 * TEST_DATABASE_URL and TEST_TEMPORAL_ADDRESS name.
 */
export default async function setup(project: TestProject) {
  const folder = mkdtempSync(join(tmpdir(), 'perdure-test-'))
  // PostgreSQL, which runs as another user where the tests run as root, must be able to pass.
  chmodSync(folder, 0o711)
  const children: Child[] = []
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
      // Bundling holds this thread for longer than a busy machine's connection may take.
      await bundle
      await checkServer(named, 'default')
      project.provide('temporalAddress', named)
      project.provide('temporalCli', '')
      return
    }
    const found = await describeTemporal({
      ...{ ...place, port: await findFree(), namespace: 'default', cache: CACHE },
      byHand: process.env.TEMPORAL_CLI,
    })
    await launch({ ...found.program, args: [...found.program.args, ...FORGET_SOON] })
    project.provide('temporalAddress', found.address)
    project.provide('temporalCli', found.program.command)
  }
}
