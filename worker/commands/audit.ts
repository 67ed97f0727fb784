import { hostname, userInfo } from 'node:os'
import { pipeline } from 'node:stream/promises'
import { eraseDetails } from '../../db/audit/erasure/erase.ts'
import { openOperatorExport } from '../../db/audit/export/export.ts'
import { reopenChain } from '../../db/audit/reopen.ts'
import { INSTANCE_CHAIN } from '../../db/audit/signing.ts'
import { type AuditVerification, listChains, verifyAudit } from '../../db/audit/verify/verify.ts'
import type { AuditBreak } from '../../db/audit/verify/walk.ts'
import type { Config } from '../config.ts'
import { type CommandArguments, readCheckpoint, readOption, readUuid, UsageError } from './arguments.ts'
import { asOperator, createOperatorScope } from './operator.ts'

const MAX_RANGES = 5

/**
 * `audit verify`: prints a line per team's chain and below it what is wrong with it, and each break after which
 * it was reopened; the exit code is 1 if anything is wrong since then. Each line ends with the last entry in
 * the form that a later `--checkpoint` takes.
 */
export async function runAuditVerify(config: Config, args: CommandArguments): Promise<void> {
  const teamId = args.words[0] === undefined ? undefined : readUuid(args.words[0])
  const checkpoint = readCheckpoint(args)
  if (checkpoint && !teamId)
    throw new UsageError('--checkpoint needs a teamId, because each team has its own')
  await asOperator(config, async (store) => {
    for (const id of teamId ? [teamId] : await listChains(store)) {
      const verification = await verifyAudit(store, id, checkpoint)
      print(verification)
      if (verification.findings.length > 0) process.exitCode = 1
    }
  })
}

/** `audit reopen`: begins a new segment of a chain that was tampered with, after which acts are recorded again. */
export async function runAuditReopen(config: Config, args: CommandArguments): Promise<void> {
  const teamId = readUuid(args.words[0]!)
  const checkpoint = readCheckpoint(args)
  const note = args.options.note === undefined ? null : String(args.options.note)
  const by = `${userInfo().username}@${hostname()}`
  await asOperator(config, async (store) => {
    const { seq, details } = await reopenChain(createOperatorScope(store, teamId), teamId, {
      by,
      note,
      checkpoint,
    })
    const good = details.lastGood ? `the last good entry is ${details.lastGood.seq}` : 'no entry is good'
    console.log(`${teamId}  reopened with entry ${seq}: ${good}, of ${details.entries} that are there`)
    for (const { verdict, message } of details.findings) console.log(`  ${verdict}  ${message}`)
  })
}

/** `audit export`: writes a chain to stdout, as the API exports it; without a teamId that of the instance. */
export async function runAuditExport(config: Config, args: CommandArguments): Promise<void> {
  const chain = args.words[0] === undefined ? INSTANCE_CHAIN : readUuid(args.words[0])
  await asOperator(config, async (store) => {
    const { lines } = await openOperatorExport(createOperatorScope(store, chain), chain)
    await pipeline(lines, process.stdout, { end: false }).catch((error) => {
      // The reader of the pipe has closed it.
      if (error.code !== 'EPIPE') throw error
      process.exitCode = 1
    })
  })
}

/** `audit erase`: erases what is personal about a person's entries of a chain, and says what had to stay. */
export async function runAuditErase(config: Config, args: CommandArguments): Promise<void> {
  const teamId = readUuid(args.words[0]!)
  const userId = readUuid(readOption(args, 'user'))
  await asOperator(config, async (store) => {
    const scope = createOperatorScope(store, teamId)
    const { erased, entries, kept } = await eraseDetails(scope, teamId, userId)
    const named = entries.length > 0 ? `, as its entries ${entries.join(', ')} say` : ''
    console.log(`${teamId}  erased the details of ${erased} entries of ${userId}${named}`)
    const reasons = [
      [kept.version1, 'were written by an older release, whose hashes cover them'],
      [kept.beforeBreak, 'are before the entry that has reopened the chain, which has signed them'],
      [kept.purges, 'are about purges, and prove where the chain begins'],
    ] as const
    for (const [count, why] of reasons) if (count > 0) console.log(`  kept  ${count} that ${why}`)
  })
}

function print(found: AuditVerification): void {
  const {
    teamId,
    entries,
    erased,
    last,
    closed,
    breaks,
    purgedBreaks,
    intactFrom,
    noted,
    unsigned,
    findings,
  } = found
  const since = Math.max(breaks.at(-1)?.seq ?? 0, intactFrom)
  const intact = since > 1 ? `intact since entry ${since}` : 'intact'
  const state = findings.length > 0 ? 'BROKEN' : closed ? `${intact}, closed` : intact
  const at = last ? `  last ${last.seq}:${last.hash}` : ''
  const blank = erased > 0 ? `, ${erased} without details` : ''
  console.log(`${teamId}  ${state}  ${entries} entries${blank}${at}`)
  if (intactFrom > 1)
    console.log(`  PURGED  The entries up to ${intactFrom - 1} were purged, as the chain tells`)
  if (noted === 'purged')
    console.log('  PURGED  The entry of the checkpoint was purged: nothing shows whether it was there')
  for (const { seq, at } of purgedBreaks)
    console.log(`  BREAK  Entry ${seq} reopened the chain at ${at}; it was purged since`)
  for (const found of breaks) printBreak(found)
  if (unsigned.length > 0)
    console.log(`  older release  No signature of their own have entries ${list(unsigned)}`)
  for (const { verdict, message } of findings) console.log(`  ${verdict}  ${message}`)
}

function list(ranges: AuditVerification['unsigned']): string {
  const shown = ranges.slice(0, MAX_RANGES).map(({ fromSeq, toSeq }) => `${fromSeq} to ${toSeq}`)
  const more = ranges.length - shown.length
  return `${shown.join(', ')}${more > 0 ? `, and ${more} ranges more` : ''}`
}

function printBreak({ seq, at, details, findings }: AuditBreak): void {
  const { lastGood, by, note } = details
  const good = lastGood ? `the last good entry was ${lastGood.seq}:${lastGood.hash}` : 'no entry was good'
  const why = note === null ? '' : ` (${JSON.stringify(note)})`
  console.log(`  BREAK  Entry ${seq} reopened the chain at ${at}, by ${by}${why}: ${good}`)
  // As it was found then: what can be found now is the same, or less.
  for (const { verdict, message } of details.findings) console.log(`    ${verdict}  ${message}`)
  if (details.findings.length < findings.length) console.log(`    ... ${findings.length} findings in all`)
}
