import { pino } from 'pino'
import { makeNextReport } from '../../../activities/audit/reports/make.ts'
import { openDatabase } from '../../../db/connection.ts'

/** A process that begins with a report and never finishes it, until somebody kills it. */
const { db } = openDatabase(process.env.DATABASE_URL!, { max: 4, name: 'test stuck' })
const keys = { current: 'k1', byId: new Map([['k1', Buffer.from(process.env.KEY!, 'hex')]]) }
const verify = () => {
  console.log('verifying')
  return new Promise<never>(() => {})
}
await makeNextReport(
  { store: { db, keys }, log: pino(), verify, leaseMs: 2_000 },
  new AbortController().signal,
)
