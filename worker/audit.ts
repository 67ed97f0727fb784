import { type Checkpoint, listChains, type Verification, verifyAudit } from '../db/verify.ts'
import type { Config } from './config.ts'
import { asOperator, type Given, readId, UsageError } from './operator.ts'

/**
 * `audit verify`: a line a chain, then what is wrong with it; exit code 1 where anything is. The last entry of each
 * is printed as what a later `--checkpoint` takes.
 */
export async function verifyChains(config: Config, { words, options }: Given): Promise<void> {
  const teamId = words[0] === undefined ? undefined : readId(words[0])
  const checkpoint = options.checkpoint === undefined ? undefined : readCheckpoint(String(options.checkpoint))
  if (checkpoint && !teamId) throw new UsageError('--checkpoint is one of a team: name it')
  await asOperator(config, async (store) => {
    for (const id of teamId ? [teamId] : await listChains(store)) {
      const verification = await verifyAudit(store, id, checkpoint)
      print(verification)
      if (verification.findings.length > 0) process.exitCode = 1
    }
  })
}

function print({ teamId, entries, last, closed, findings }: Verification): void {
  const state = findings.length > 0 ? 'BROKEN' : closed ? 'intact, closed' : 'intact'
  const at = last ? `  last ${last.seq}:${last.hash}` : ''
  console.log(`${teamId}  ${state}  ${entries} entries${at}`)
  for (const { verdict, message } of findings) console.log(`  ${verdict}  ${message}`)
}

function readCheckpoint(text: string): Checkpoint {
  const [, seq, hash] = /^([1-9]\d{0,14}):([\da-f]{64})$/i.exec(text) ?? []
  if (!seq || !hash)
    throw new UsageError('--checkpoint must be <seq>:<hash>, as audit verify prints the last entry')
  return { seq: Number(seq), hash }
}
