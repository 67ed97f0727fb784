import type { KeyObject } from 'node:crypto'
import type { Checkpoint } from '../verify/walk.ts'
import { endVerification } from './completeness.ts'
import { takeEntry } from './entries.ts'
import { type FileLine, readFileLines } from './filelines.ts'
import { type ExportEnd, type ExportHeader, readExportLine } from './lines.ts'
import { takeAnchor, takeCheckpoint } from './signatures.ts'
import { type ExportTrust, makeTrust } from './trust.ts'
import { createVerifying, type ExportVerification, findInFile, type Verifying } from './verifying.ts'

/**
 * Verifies an export without the service: hashes, links, numbers, signatures and its completeness. `keys` are the
 * public keys that the caller has noted: without them those of the export are taken, so that a file that was written
 * anew as a whole is not found out. `noted` is an entry that the caller has noted. Reads line by line, and takes what
 * the file says for an attempt to deceive. Throws only what reading the bytes throws.
 */
export async function verifyExport(
  bytes: AsyncIterable<Uint8Array>,
  options: { keys?: KeyObject[] | undefined; noted?: Checkpoint | undefined } = {},
): Promise<ExportVerification> {
  const verifying = createVerifying(options)
  for await (const line of readFileLines(bytes)) if (!takeLine(verifying, line)) break
  return endVerification(verifying)
}

/** Takes the next line. Returns false if there is no point in reading on. */
function takeLine(verifying: Verifying, { number, text, fault }: FileLine): boolean {
  verifying.line = number
  const line = text === undefined ? undefined : readExportLine(text)
  const { header, trust } = verifying
  if (!line) {
    findInFile(verifying, 'line_invalid', `Line ${number} ${fault ?? 'is not written as exports are'}`)
    return header !== undefined
  }
  if (header && trust) takeNext(verifying, header, trust, line)
  else if (line.type === 'header') {
    verifying.header = line
    verifying.trust = makeTrust(line, verifying.keys)
  } else {
    findInFile(verifying, 'file_mismatch', 'The file does not begin with the first line of an export')
    return false
  }
  return true
}

function takeNext(
  verifying: Verifying,
  header: ExportHeader,
  trust: ExportTrust,
  line: NonNullable<ReturnType<typeof readExportLine>>,
): void {
  const find = (message: string) =>
    findInFile(verifying, 'file_mismatch', `Line ${verifying.line} ${message}`)
  if (verifying.ended) find('is behind the last line of the export')
  else if (line.type === 'header') find('begins another export')
  else if (line.type === 'end') takeEnd(verifying, line)
  else if (line.type === 'entry') takeEntry(verifying, header, line)
  else if (line.teamId !== header.teamId) find('is about another team')
  else if (line.type === 'anchor') takeAnchor(verifying, trust, line)
  else takeCheckpoint(verifying, header, trust, line)
}

function takeEnd(verifying: Verifying, line: ExportEnd): void {
  verifying.ended = line
  const { entries, last } = verifying
  if (line.entries === entries && line.last?.seq === last?.seq && line.last?.hash === last?.hash) return
  const message = `The last line counts ${line.entries} entries, but there are ${entries}`
  findInFile(verifying, 'file_mismatch', message)
}
