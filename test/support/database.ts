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
