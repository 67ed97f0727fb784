import { createHash } from 'node:crypto'
import { change } from '../../change.ts'
import type { Db } from '../../connection.ts'
import { Fault } from '../../fault.ts'
import { demandTeam, type Scope } from '../../scope.ts'
import { findReport, type ReportFormat } from './reports.ts'

/** A file of a report, to be read once, from its beginning. */
export type ReportDownload = {
  createdAt: Date
  type: string
  bytes: number
  sha256: string
  parts: AsyncGenerator<Uint8Array, void>
}

/**
 * Looks whether a report's file can be downloaded, without an entry of the audit (ADMIN). Throws CONFLICT until it is
 * COMPLETED, FORBIDDEN and NOT_FOUND.
 */
export async function findDownload(
  scope: Scope,
  teamId: string,
  id: string,
  format: ReportFormat,
): Promise<Omit<ReportDownload, 'parts'> & { name: string }> {
  await demandTeam(scope, teamId, 'ADMIN')
  return findFile(scope.store.db, teamId, id, format)
}

/**
 * Opens a report's file (ADMIN): that is an entry of the audit, with the hash of what is read. Throws CONFLICT until it
 * is COMPLETED, NOT_FOUND, and as `change`; reading throws if the report is removed meanwhile.
 */
export async function openDownload(
  scope: Scope,
  teamId: string,
  id: string,
  format: ReportFormat,
): Promise<ReportDownload> {
  const { name, ...file } = await change(scope, 'AUDIT_REPORT_DOWNLOADED', teamId, async (tx) => {
    const result = await findFile(tx, teamId, id, format)
    const { name, type, sha256, bytes } = result
    return { result, resourceId: id, details: { name, type, format, bytes, sha256 } }
  })
  return { ...file, parts: readParts(scope.store.db, id, format, file) }
}

async function findFile(db: Db, teamId: string, id: string, format: ReportFormat) {
  const { status, files, name, type, createdAt, error } = await findReport(db, teamId, id)
  const why = status === 'FAILED' ? `It could not be made: ${error}` : `It is ${status}: try again later`
  if (!files) throw new Fault('CONFLICT', `There is nothing to download. ${why}`)
  return { name, type, createdAt, ...files[format] }
}

/** The file in parts. The last one comes only if all of them are what was made: the entry says so with the hash. */
async function* readParts(
  db: Db,
  id: string,
  format: ReportFormat,
  { bytes, sha256 }: Pick<ReportDownload, 'bytes' | 'sha256'>,
): AsyncGenerator<Uint8Array, void> {
  const hash = createHash('sha256')
  let left = bytes
  for (let part = 0; left > 0; part++) {
    const row = await db
      .selectFrom('auditReportParts')
      .select('bytes')
      .where('reportId', '=', id)
      .where('format', '=', format)
      .where('part', '=', part)
      .executeTakeFirst()
    if (!row) throw new Error(`part ${part} of report ${id} is missing: it was removed while it was read`)
    hash.update(row.bytes)
    left -= row.bytes.length
    if (left <= 0 && hash.digest('hex') !== sha256)
      throw new Error(`report ${id} is not the one that was made: its parts have been altered`)
    yield row.bytes
  }
}
