import { type RawBuilder, sql } from 'kysely'
import type { Tx } from './connection.ts'

// All keys of advisory locks but those that only functions of the database take: the gates and rights (functions.sql).
// Processes of the release before take the same ones, so a key never changes.

/** Held by the process that migrates, for its session. */
export const MIGRATING = 7_226_001

const FIRST_ADMIN = 7_226_002

/** First of two keys; the second is `hashtext` of the team. Functions of the database take two of them, too. */
export const FOLDS = { modelCalls: 7_226_061, openings: 7_226_065, executions: 7_226_077 } as const

/** A prefix of the subject, and the seed of the hash of both. */
const KEYS = {
  files: ['', 3],
  addresses: ['', 7_226_021],
  askedMailboxes: ['', 7_226_091],
  forwarders: ['', 7_226_066],
  guardrailSettings: ['', 7_226_074],
  monitoringConfigs: ['', 7_226_076],
  channels: ['', 7_226_079],
  playbooks: ['', 7_226_080],
  scheduledReports: ['', 7_226_082],
  evalConfigs: ['', 7_226_084],
  widgets: ['', 7_226_087],
  examples: ['', 7_226_092],
  dataTables: ['', 7_226_116],
  staticData: ['', 7_226_123],
  auditChains: ['audit ', 0],
  auditCheckpoints: ['audit checkpoint ', 0],
  auditReports: ['audit reports ', 0],
  newBatches: ['new batch ', 0],
  batchClaims: ['batches of ', 0],
} as const
export type Lock = keyof typeof KEYS

/** Transactions that take the same lock for the same subject, mostly a team, come one after the other. */
export async function lockFor(tx: Tx, lock: Lock, subject: string | RawBuilder<string>): Promise<void> {
  const [prefix, seed] = KEYS[lock]
  await sql`select pg_advisory_xact_lock(hashtextextended(${prefix}::text || ${subject}::text, ${seed}))`.execute(
    tx,
  )
}

/** Those that fold the same rows of a team come one after the other. */
export async function lockFold(tx: Tx, fold: keyof typeof FOLDS, teamId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(${FOLDS[fold]}, hashtext(${teamId}))`.execute(tx)
}

/** If two processes start for the first time at once, the second waits for the commit of the first. */
export async function lockFirstAdmin(tx: Tx): Promise<void> {
  await sql`select pg_advisory_xact_lock(${FIRST_ADMIN})`.execute(tx)
}
