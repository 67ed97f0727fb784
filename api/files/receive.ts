import { removeStored, type StoredFile, storeFile } from '../../db/files/store.ts'
import type { Store } from '../../db/scope.ts'
import { type FilePart, readMultipart, whole } from '../bodies/multipart.ts'

export type UploadLimits = { maxBytes: number; maxCount: number }

/** The received form: `body` has the files as values, `files` are all of them. They belong to no execution yet. */
export type Received = { body: unknown; files: StoredFile[] }

/**
 * Stores a body that is one file for the team, as its bytes come. Throws TOO_LARGE over a limit, and INVALID if it
 * does not come whole.
 */
export async function receiveFile(
  store: Store,
  teamId: string,
  body: AsyncIterable<Uint8Array>,
  {
    name,
    mimeType,
    length,
    maxBytes: most,
  }: { name: string; mimeType: string; length: number | undefined } & Pick<UploadLimits, 'maxBytes'>,
): Promise<Received> {
  const file = await storeFile(store, { teamId }, { name, mimeType, length, most }, whole(body))
  return { body: { file }, files: [file] }
}

/**
 * Reads a form of the type `multipart/form-data` as its bytes come, as readMultipart does. Its files are stored for the
 * team; an empty one without a name, which browsers send if no file was chosen, is null. If it throws, nothing of the
 * form is kept.
 */
export async function receiveForm(
  store: Store,
  teamId: string,
  body: AsyncIterable<Uint8Array>,
  { type, maxBytes, maxCount }: { type: string } & UploadLimits,
): Promise<Received> {
  const files: StoredFile[] = []
  const unnamed: StoredFile[] = []
  const takeFile = async ({ filename, type: mimeType }: FilePart, bytes: AsyncIterable<Uint8Array>) => {
    const what = { name: filename, mimeType: mimeType || 'text/plain', most: maxBytes }
    const file = await storeFile(store, { teamId }, what, bytes)
    const isNone = file.bytes === 0 && !filename
    ;(isNone ? unnamed : files).push(file)
    return isNone ? null : { file }
  }
  try {
    const fields = await readMultipart(body, type, { takeFile, maxCount })
    await removeStored(store, unnamed)
    return { body: fields, files }
  } catch (error) {
    await removeStored(store, [...files, ...unnamed]).catch(() => {})
    throw error
  }
}
