import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

/** Runs one SQL statement on a connection of its own. */
export async function onServer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/**
 * Clones the migrated template for one test file. `drop`
 * removes the clone and ends its remaining connections.
 */
export async function cloneDatabase(): Promise<{ url: string; drop: () => Promise<void> }> {
  const template = new URL(inject('databaseUrl'))
  const name = `perdure_test_${randomBytes(6).toString('hex')}`
  const server = new URL(template)
  server.pathname = '/postgres'
  await onServer(server.href, `create database ${name} template ${template.pathname.slice(1)}`)
  const url = new URL(template)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => onServer(server.href, `drop database if exists ${name} with (force)`) }
}

/**
 * Ends all connections of an application to a database while this thread stands still, so that nobody in this
 * process has noticed when this returns.
 */
export function endUnnoticed(url: string, application: string): void {
  const script = `import pg from 'pg'
    const client = new pg.Client({ connectionString: process.argv[1] })
    await client.connect()
    const text = 'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = $1'
    const { rowCount } = await client.query(text, [process.argv[2]])
    const left = 'select from pg_stat_activity where datname = current_database() and application_name = $1'
    while ((await client.query(left, [process.argv[2]])).rowCount > 0);
    await client.end()
    if (rowCount === 0) throw new Error('there was no connection')`
  execFileSync(process.execPath, ['--input-type=module', '-e', script, url, application])
}
