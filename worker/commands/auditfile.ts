import { createReadStream, readFileSync } from 'node:fs'
import { verifyExport } from '../../db/audit/export/offline.ts'
import { readPemKeys } from '../../db/audit/export/trust.ts'
import type { ExportVerification } from '../../db/audit/export/verifying.ts'
import { type CommandArguments, readCheckpoint, readOption, readUuid, UsageError } from './arguments.ts'

const MAX_SHOWN = 20
const MAX_KEY_FILE = 1_000_000

/**
 * `audit verify --file`: verifies an export, and needs neither the database nor a key of the installation. The exit
 * code is 1 if anything is wrong with it.
 */
export async function runAuditVerifyFile(args: CommandArguments): Promise<void> {
  const teamId = args.words[0] === undefined ? undefined : readUuid(args.words[0])
  const path = readOption(args, 'file')
  const noted = readCheckpoint(args)
  const keys = args.options.key === undefined ? undefined : readKeyFile(readOption(args, 'key'))
  const found = await verifyExport(readBytes(path), { keys, noted })
  print(found, { ownKeys: keys !== undefined })
  const foreign = teamId !== undefined && found.teamId !== teamId
  if (foreign) console.log(`  file_mismatch  The export is not one of the team ${teamId}`)
  if (found.count > 0 || foreign) process.exitCode = 1
}

async function* readBytes(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* path === '-' ? process.stdin : createReadStream(path, { highWaterMark: 256 * 1024 })
  } catch (error) {
    if ('code' in Object(error)) throw new UsageError(`${path} cannot be read: ${(error as Error).message}`)
    throw error
  }
}

function readKeyFile(path: string) {
  try {
    const text = readFileSync(path, 'utf8')
    if (text.length > MAX_KEY_FILE) throw new Error('it is too long')
    return readPemKeys(text)
  } catch (error) {
    throw new UsageError(`--key ${path}: ${(error as Error).message}`)
  }
}

function print(found: ExportVerification, { ownKeys }: { ownKeys: boolean }): void {
  const { teamId, entries, first, last, breaks, findings, count, signed, erased, unnamed, purgedUpTo } = found
  if (teamId === null) console.log('The file is not an export of an audit chain.')
  else {
    const intact = breaks.length > 0 ? `intact since entry ${breaks.at(-1)!.seq}` : 'intact'
    const range = last ? `, ${first} to ${last.seq}  last ${last.seq}:${last.hash}` : ''
    console.log(`${teamId}  ${count > 0 ? 'BROKEN' : intact}  ${entries} entries${range}`)
  }
  const keyId = signed ? quote(signed.keyId) : ''
  if (signed) console.log(`  signed  Up to entry ${signed.seq}, at ${signed.at}, with the key ${keyId}`)
  if (signed && last && signed.seq < last.seq)
    console.log(`  not signed  Entries ${signed.seq + 1} to ${last.seq}: they are linked, and no more`)
  if (purgedUpTo > 0) console.log(`  purged  Entries up to ${purgedUpTo}, as a signed anchor says`)
  if (erased > 0) console.log(`  erased  The details of ${erased} entries`)
  if (unnamed > 0)
    console.log(
      `  part  That the details of ${unnamed} were erased may be said behind this part of the chain`,
    )
  if (found.partial.before) console.log(`  part  Nothing is known of the entries before ${first}`)
  if (found.partial.behind && last) console.log(`  part  Nothing is known of the entries behind ${last.seq}`)
  if (found.others > 0) console.log(`  other keys  ${found.others} checkpoints: their keys are not in --key`)
  if (found.noted === 'outside') console.log('  --checkpoint  That entry is not in the export')
  for (const key of ownKeys ? [] : found.keys)
    console.log(
      `  key  ${quote(key.keyId)} is one that the export brings: compare it, SHA-256 ${key.fingerprint}`,
    )
  for (const { seq, at, findings: before } of breaks) {
    console.log(`  BREAK  Entry ${seq} reopened the chain at ${at}`)
    for (const { verdict, message } of before.slice(0, MAX_SHOWN)) console.log(`    ${verdict}  ${message}`)
  }
  for (const { verdict, message } of findings.slice(0, MAX_SHOWN)) console.log(`  ${verdict}  ${message}`)
  if (count > MAX_SHOWN) console.log(`  ... ${count} findings in all`)
}

/** A text from a file must not reach the terminal unquoted. */
function quote(text: string): string {
  return JSON.stringify(text.slice(0, 40)).replace(/[^\x20-\x7e]/g, '?')
}
