import type { Tx } from '../connection.ts'
import { Fault } from '../fault.ts'
import { cleanFileName, cleanMediaType } from './names.ts'
import { addFiles, type StoredFile } from './store.ts'

/**
 * Gives an execution the files that values name and that were stored for its team before. Throws CONFLICT if one is not
 * there with these bytes, since it was not claimed in time, or belongs to an execution already.
 */
export async function claimFiles(
  tx: Tx,
  { executionId, teamId }: { executionId: string; teamId: string },
  named: StoredFile[],
): Promise<void> {
  if (named.length === 0) return
  const rows = await tx
    .selectFrom('storedFiles')
    .select(['id', 'bytes'])
    .where(
      'id',
      'in',
      named.map(({ id }) => id),
    )
    .where('teamId', '=', teamId)
    .where('copies', '=', 0)
    .where('removed', '=', false)
    .where('pieces', 'is not', null)
    .forUpdate()
    .execute()
  const bytesOf = new Map(rows.map(({ id, bytes }) => [id, bytes]))
  const files = named.map(({ id, name, mimeType, bytes }) => {
    if (bytesOf.get(id) !== bytes)
      throw new Fault('CONFLICT', `The file ${name.slice(0, 100)} is no longer there: send it again`)
    return { id, name: cleanFileName(name), mimeType: cleanMediaType(mimeType), bytes }
  })
  await addFiles(tx, executionId, teamId, files)
}
