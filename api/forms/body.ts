import type { Context } from 'hono'
import { type FileValue, isFileValue } from '../../activities/files/files.ts'
import { Fault } from '../../db/fault.ts'
import { removeStored, type StoredFile, storeFile } from '../../db/files/store.ts'
import type { Store } from '../../db/scope.ts'
import { type Form, listFields } from '../../workflows/graph/form.ts'
import { readFilled, type Texts } from '../../workflows/graph/formtexts.ts'
import { getOwn } from '../../workflows/json.ts'
import { MAX_FILE_BYTES, MAX_RUN_FILES } from '../../workflows/nodes/files.ts'
import { SUBMISSION_FIELD } from '../../workflows/nodes/forms.ts'
import { parseForm } from '../bodies/form.ts'
import { readMultipart } from '../bodies/multipart.ts'
import { essenceOf } from '../bodies/plain.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { createSeats } from '../executions/seats.ts'
import { readBytes, readChunks } from '../http/body.ts'

/** How many forms with files one process takes in at once, and from one team. */
const UPLOADS = { ofTeam: 8, ofPerson: 8, ofAll: 400 }

/** The longest text by which a page is known to be sent twice. */
const MAX_SUBMISSION = 100

export type Answers = {
  texts: Texts
  values: Record<string, unknown>
  faults: Map<string, string[]>
  /** The files that were stored; they belong to no execution yet. Empty if there are faults. */
  files: StoredFile[]
  submission: string | undefined
}

/** Whose form it is, for the limits of a process. */
type Asker = { form: Form; teamId: string; workflowId: string; timezone: string | null }

/**
 * Reads what a browser sends of a page. Each fault is found at its field; then no file is kept. Throws UNSUPPORTED_TYPE
 * for what is no form, TOO_LARGE and INVALID for one that is not whole or too large, and THROTTLED.
 */
export function createAnswerReader({ store }: Pick<ApiDeps, 'store'>) {
  const seats = createSeats('uploads', UPLOADS)
  return async (c: Context<AppEnv>, asker: Asker): Promise<Answers> => {
    const type = c.req.header('content-type') ?? ''
    const essence = essenceOf(type)
    if (
      c.req.header('content-encoding') ||
      !/^(application\/x-www-form-urlencoded|multipart\/form-data)$/.test(essence)
    )
      throw new Fault('UNSUPPORTED_TYPE', 'The answers must be sent as a form, as browsers do')
    const { form, timezone } = asker
    const received =
      essence === 'multipart/form-data'
        ? await inSeat(asker, () => receiveParts(store, c, { ...asker, type }))
        : { body: parseForm(await readBytes(c)), large: [] }
    const texts = readBodyTexts(form, received.body)
    const named = readBodyFiles(form, received.body)
    const stored = [...named.values()].flat().map(({ file }) => file)
    const { values, faults } = readFilled(form, texts, named, timezone ?? 'UTC')
    for (const [name, most] of received.large)
      faults.set(name, [...(faults.get(name) ?? []), `a file must have at most ${most} bytes`])
    if (faults.size > 0) await removeStored(store, stored)
    const submission = getOwn(received.body, SUBMISSION_FIELD)
    const isKnown = typeof submission === 'string' && submission !== '' && submission.length <= MAX_SUBMISSION
    return {
      texts,
      values,
      faults,
      files: faults.size > 0 ? [] : stored,
      submission: isKnown ? submission : undefined,
    }
  }

  async function inSeat<T>({ workflowId, teamId }: Asker, work: () => Promise<T>): Promise<T> {
    const leave = seats.take(workflowId, teamId)
    try {
      return await work()
    } finally {
      leave()
    }
  }
}

type Received = {
  body: Record<string, unknown>
  /** The fields with a file that is too large, and the most bytes that it may have. */
  large: [name: string, most: number][]
}

/** Stores the files of a form's fields as they come; others are not kept. If it throws, none is. */
async function receiveParts(
  store: Store,
  c: Context<AppEnv>,
  { form, teamId, type }: Asker & { type: string },
): Promise<Received> {
  const fields = new Map(listFields(form).filter(([, field]) => field.type === 'file'))
  const all: StoredFile[] = []
  const large: Received['large'] = []
  let total = 0
  const takeFile = async (
    { name, filename, type: mimeType }: { name: string; filename: string; type: string },
    bytes: AsyncIterable<Uint8Array>,
  ) => {
    const field = fields.get(name)
    const most = field ? Math.min(field.maxBytes ?? MAX_FILE_BYTES, MAX_FILE_BYTES) : 0
    let size = 0
    // The bytes beyond the limit are read too, so that the fault can be shown at its field.
    async function* cut() {
      for await (const chunk of bytes) {
        total += chunk.length
        if (total > 2 * MAX_FILE_BYTES)
          throw new Fault('TOO_LARGE', `The files of a form may have ${2 * MAX_FILE_BYTES} bytes together`)
        size += chunk.length
        if (size <= most) yield chunk
      }
    }
    const what = { name: filename, mimeType: mimeType || 'text/plain', most: Math.max(most, 1) }
    if (!field) {
      for await (const _ of cut());
      return null
    }
    const file = await storeFile(store, { teamId }, what, cut())
    all.push(file)
    // Browsers send an empty file without a name for a field that was left empty.
    if (size > most) large.push([name, most])
    if (size <= most && (size > 0 || filename)) return { file }
    await removeStored(store, [file])
    return null
  }
  try {
    const body = await readMultipart(readChunks(c), type, { takeFile, maxCount: MAX_RUN_FILES })
    return { body, large }
  } catch (error) {
    await removeStored(store, all).catch(() => {})
    throw error
  }
}

/** The files of the form's own fields, in the order in which they were chosen. */
function readBodyFiles(form: Form, body: Record<string, unknown>): Map<string, FileValue[]> {
  const fields = listFields(form).filter(([, { type }]) => type === 'file')
  const named = fields.map(([name]) => [name, [getOwn(body, name)].flat().filter(isFileValue)] as const)
  return new Map(named.filter(([, files]) => files.length > 0))
}

/** The texts of the form's own fields. */
function readBodyTexts(form: Form, body: Record<string, unknown>): Texts {
  const entries = listFields(form).flatMap(([name, { type }]): [string, string[]][] => {
    const given = type === 'file' ? undefined : getOwn(body, name)
    const texts = [given].flat().filter((one) => typeof one === 'string')
    return texts.length > 0 ? [[name, texts]] : []
  })
  return Object.fromEntries(entries)
}
