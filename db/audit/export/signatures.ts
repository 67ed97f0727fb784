import { checkpointText } from '../checkpoints.ts'
import { anchorText } from '../retention/anchors.ts'
import type { ExportAnchor, ExportCheckpoint, ExportHeader } from './lines.ts'
import type { ExportTrust } from './trust.ts'
import { findInFile, startEntries, type Verifying } from './verifying.ts'

const MAX_ANCHORS = 20_000

/** Takes the signed line that tells where the chain begins after a purge. */
export function takeAnchor(verifying: Verifying, { judge }: ExportTrust, line: ExportAnchor): void {
  const { place, anchors, anchorOf } = verifying
  if (place) {
    findInFile(verifying, 'file_mismatch', `Line ${verifying.line} must be before the entries`)
    return
  }
  const { type: _type, signature, keyId, ...row } = line
  const signer = judge(keyId, anchorText({ ...row, baseHash: Buffer.from(row.baseHash, 'hex') }), signature)
  if (signer === 'nobody' || anchors.length >= MAX_ANCHORS) {
    const message = `The anchor of the purge up to entry ${row.baseSeq} is not signed`
    findInFile(verifying, 'anchor_invalid', message)
    return
  }
  const anchor = { ...line, signer, told: false }
  anchors.push(anchor)
  anchorOf.set(line.purgeSeq, anchor)
}

/** Takes the signed line that vouches for the entry before it, and with it for all earlier ones. */
export function takeCheckpoint(
  verifying: Verifying,
  asked: ExportHeader,
  { judge }: ExportTrust,
  line: ExportCheckpoint,
): void {
  const { seq, hash, at, keyId, signature } = line
  const before = startEntries(verifying, asked)
  const { begin, first } = verifying
  const signer = judge(keyId, checkpointText({ ...line, hash: Buffer.from(hash, 'hex') }), signature)
  if (signer === 'nobody') {
    findInFile(verifying, 'checkpoint_invalid', `The checkpoint of entry ${seq} is not signed`)
    return
  }
  // What a checkpoint has signed is where a partial export begins.
  if (begin!.partial && first === null && seq === before.seq) before.hash ??= hash
  if (first === null && seq < before.seq) return
  if (seq !== before.seq || hash !== before.hash) {
    const message = `There is no entry ${seq} here with the hash that a checkpoint has signed`
    findInFile(verifying, 'checkpoint_mismatch', message)
  } else if (signer === 'other') verifying.others++
  else if (first !== null) {
    verifying.signed = { seq, at, keyId }
    for (const found of verifying.breaks) found.signed = true
  }
}
