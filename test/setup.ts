import type { TestProject } from 'vitest/node'
import { openDatabase } from '../db/connection.ts'
import { migrate } from '../db/migrate.ts'
import { onServer } from './database.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A PostgreSQL server's address; its database is the template that every test file clones. */
    databaseUrl: string
    temporalAddress: string
  }
}

/** Starts PostgreSQL and Temporal once per run, or takes the ones that TEST_DATABASE_URL and TEST_TEMPORAL_ADDRESS name. */
export default async function setup(project: TestProject) {
  const server = process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5455/postgres'
  const temporalAddress = process.env.TEST_TEMPORAL_ADDRESS ?? '127.0.0.1:7244'
  const url = new URL(server)
  const template = `perdure_template_${process.pid}`
  await onServer(server, `create database ${template}`)
  url.pathname = `/${template}`
  const { db, close } = openDatabase(url.href, { max: 2, name: 'migrate' })
  await migrate(db)
  await close()
  project.provide('databaseUrl', url.href)
  project.provide('temporalAddress', temporalAddress)
  return async () => {
    await onServer(server, `drop database ${template} with (force)`)
  }
}
