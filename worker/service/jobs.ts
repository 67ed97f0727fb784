import { nameSender } from '../../activities/audit/siem/describe.ts'
import type { Outsides } from '../../activities/egress/outside.ts'
import type { SemanticPool } from '../../activities/guardrails/semantic/similar.ts'
import { createMailer } from '../../activities/mail/smtp.ts'
import { createPrefixChecker } from '../../db/audit/verify/prefixes.ts'
import { createChainVerifier } from '../../db/audit/verify/verifier.ts'
import { openDatabase } from '../../db/connection.ts'
import { startForwarding } from './audit/forwarding.ts'
import { startReporting } from './audit/reporting.ts'
import { startHousekeeping } from './housekeeping.ts'
import { startMailing } from './mailing.ts'
import { startMonitoring } from './monitoring/monitoring.ts'
import type { Base } from './opening.ts'

/** Starts what a process does by itself, beside its API and its engine. Returns the function that ends all of it. */
export function startJobs(base: Base, outside: Outsides, semantic: SemanticPool): () => Promise<void> {
  const { kind, config, store, bus, log } = base
  const { publicUrl, smtp } = config
  const mailer = smtp && createMailer(smtp)
  const checkPrefix = createPrefixChecker({ url: config.databaseUrl! })
  const ends = [
    startHousekeeping(store, log, { checkPrefix }),
    startForwarding({ store, outside, host: nameSender(publicUrl), log }),
    ...(mailer ? [startMailing({ store, mailer, publicUrl, log }, bus)] : []),
  ]
  if (kind !== 'api') {
    ends.push(makeReports(base), startMonitoring({ store, bus, outside, mailer, publicUrl, log, semantic }))
  }
  return async () => {
    await Promise.all(ends.map((end) => end()))
  }
}

/** Makes audit reports, on a connection of its own: their statements take long, and nothing else should wait for them. */
function makeReports({ config, store, log }: Base): () => Promise<void> {
  const { db: reader, close } = openDatabase(config.databaseUrl!, { max: 1, name: 'perdure reports' })
  const verify = createChainVerifier({ url: config.databaseUrl!, threads: 1 })
  const end = startReporting({ store, log, reader, verify })
  return async () => {
    await end()
    await close()
  }
}
