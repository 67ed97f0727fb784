import { type AuditVerification, type Checkpoint, listChains, verifyAudit } from '../../db/audit/verify.ts'
import type { Config } from '../config.ts'
import { type CommandArguments, readUuid, UsageError } from './arguments.ts'
import { asOperator } from './operator.ts'

/**
 * `audit verify`: prints a line per team's chain and below it what is wrong with it; the exit code is 1 if
 * anything is. Each line ends with the last entry in the form that a later `--checkpoint` takes.
 */
export async function runAuditVerify(config: Config, { words, options }: CommandArguments): Promise<void> {
  const teamId = words[0] === undefined ? undefined : readUuid(words[0])
  const checkpoint = options.checkpoint === undefined ? undefined : readCheckpoint(String(options.checkpoint))
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

function print({ teamId, entries, last, closed, findings }: AuditVerification): void {
  const state = findings.length > 0 ? 'BROKEN' : closed ? 'intact, closed' : 'intact'
  const at = last ? `  last ${last.seq}:${last.hash}` : ''
  console.log(`${teamId}  ${state}  ${entries} entries${at}`)
  for (const { verdict, message } of findings) console.log(`  ${verdict}  ${message}`)
}

function readCheckpoint(text: string): Checkpoint {
  const [, seq, hash] = /^([1-9]\d{0,14}):([\da-f]{64})$/i.exec(text) ?? []
  if (!seq || !hash)
    throw new UsageError('--checkpoint must be <seq>:<hash>, as audit verify prints it for the last entry')
  return { seq: Number(seq), hash }
}
