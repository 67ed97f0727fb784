import type { Context } from 'hono'
import { readDispositionName } from '../../../activities/files/disposition.ts'
import { describeLarge } from '../../../activities/reading/json.ts'
import type { Delivery } from '../../../db/executions/starts/signature.ts'
import type { beginWebhookSignature, Webhook } from '../../../db/executions/starts/webhooks.ts'
import { removeStored, type StoredFile, storeFile } from '../../../db/files/store.ts'
import { MAX_FILE_BYTES } from '../../../workflows/nodes/files.ts'
import type { BodyReader } from '../../bodies/away.ts'
import { copyStream } from '../../bodies/copy.ts'
import { decompressWhole, piecesOf, readEncodings, undoEncodings } from '../../bodies/encodings.ts'
import { essenceOf } from '../../bodies/plain.ts'
import { readBodyValue } from '../../bodies/value.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { type Received, receiveFile, receiveForm } from '../../files/receive.ts'
import { MAX_BODY_BYTES, readBytes, readChunks } from '../../http/body.ts'
import { createSeats } from '../seats.ts'

/** How many uploads one process takes in at once, and from one team: each holds up to half a megabyte. */
const UPLOADS = { ofTeam: 8, ofPerson: 8, ofAll: 400 }

/** How many files a request may bring if its trigger does not say. */
const MAX_COUNT = 20

/** The name of the file that has a body as it was sent. */
const RAW_NAME = 'rawBody'

export type HookBody = {
  body: unknown
  /** The file of the body as it was sent, if the trigger wants it. */
  rawBody?: { file: StoredFile }
  /** All files, with that one. */
  files: StoredFile[]
  delivery: Delivery | undefined
  /** The warning about numbers that are too large. */
  warning?: string | undefined
}

/**
 * Reads the body of a request to a webhook, decompressed, and checks what it was `signed` with, which is of the bytes
 * as they were sent. Where the trigger takes files, those of a form and a body that is neither JSON, a form nor plain
 * text are stored as they come; they belong to no execution yet. Throws TOO_LARGE over a limit, INVALID for a body that
 * is not what it says, UNSUPPORTED_TYPE for an unknown compression, UNAUTHENTICATED for a wrong signature, and
 * THROTTLED if the team has too many uploads under way. Then nothing of it is kept.
 */
export function createReceiver({ store }: Pick<ApiDeps, 'store'>, readAway: BodyReader) {
  const seats = createSeats('uploads', UPLOADS)

  async function inSeat<T>({ workflow }: Webhook, work: () => Promise<T>): Promise<T> {
    const leave = seats.take(workflow.id, workflow.teamId)
    try {
      return await work()
    } finally {
      leave()
    }
  }

  async function receiveWhole(c: Context<AppEnv>, hook: Webhook, signed: SignedBody): Promise<HookBody> {
    const type = c.req.header('content-type') ?? ''
    const steps = readEncodings(c.req.header('content-encoding'))
    const bytes = await readBytes(c)
    signed?.update(bytes)
    const delivery = signed?.check()
    const { largeNumbers, workflow } = hook
    const asker = { team: workflow.teamId, workflow: workflow.id }
    const plain = steps.length === 0 ? bytes : await decompressWhole(bytes, steps, MAX_BODY_BYTES)
    const reading = await readBodyValue(plain, type, { readAway, asker, largeNumbers })
    const received = { body: reading.value, delivery, warning: describeLarge(reading, largeNumbers) }
    if (!hook.rawBody) return { ...received, files: [] }
    const what = { ...describeRaw(type, steps), length: bytes.length }
    const file = await inSeat(hook, () =>
      storeFile(store, { teamId: workflow.teamId }, what, piecesOf(bytes)),
    )
    return { ...received, rawBody: { file }, files: [file] }
  }

  async function receiveStream(c: Context<AppEnv>, hook: Webhook, signed: SignedBody): Promise<HookBody> {
    const type = c.req.header('content-type') ?? ''
    const steps = readEncodings(c.req.header('content-encoding'))
    const { teamId } = hook.workflow
    const { maxBytes = MAX_FILE_BYTES, maxCount = MAX_COUNT } = hook.files!
    let delivery: Delivery | undefined
    async function* watch() {
      for await (const chunk of readChunks(c)) {
        signed?.update(chunk)
        yield chunk
      }
      // Before the last piece is stored: an unsigned body is not kept.
      delivery = signed?.check()
    }
    const isWholeForm = isForm(type)
    // A body that is one file is its own raw body, unless it is compressed.
    const isCopied = hook.rawBody && (isWholeForm || steps.length > 0)
    const copy = isCopied
      ? copyStream(watch(), (bytes) => storeFile(store, { teamId }, describeRaw(type, steps), bytes))
      : undefined
    const sent = copy ? copy.passed : watch()
    const plain = undoEncodings(sent, steps, isWholeForm ? MAX_FILE_BYTES : maxBytes)
    const receive = async (): Promise<Received> => {
      if (isWholeForm) return receiveForm(store, teamId, plain, { type, maxBytes, maxCount })
      const given = c.req.header('content-length')
      const length = given === undefined || steps.length > 0 ? undefined : Number(given)
      const name = readDispositionName(c.req.header('content-disposition')) ?? ''
      return receiveFile(store, teamId, plain, { name, mimeType: type, length, maxBytes })
    }
    const received = await receive().catch(async (error) => {
      const file = await copy?.end()
      if (file) await removeStored(store, [file]).catch(() => {})
      throw error
    })
    const { body, files } = received
    if (!hook.rawBody) return { body, files, delivery }
    const raw = copy && (await copy.end())
    if (raw) return { body, rawBody: { file: raw }, files: [...files, raw], delivery }
    return { body, rawBody: { file: files[0]! }, files, delivery }
  }

  return async (c: Context<AppEnv>, hook: Webhook, signed: SignedBody): Promise<HookBody> => {
    const isStream = hook.files && bringsFile(c.req.header('content-type'))
    return isStream ? inSeat(hook, () => receiveStream(c, hook, signed)) : receiveWhole(c, hook, signed)
  }
}

export type SignedBody = Awaited<ReturnType<typeof beginWebhookSignature>>

/** A compressed body is no longer of the type that the body names. */
function describeRaw(type: string, steps: string[]) {
  return { name: RAW_NAME, mimeType: steps.length === 0 ? type : undefined }
}

function isForm(type: string): boolean {
  return essenceOf(type) === 'multipart/form-data'
}

/** Whether a body of this type is a file, or has some. */
function bringsFile(type: string | undefined): boolean {
  if (type === undefined) return false
  return !/^([a-z]+\/([a-z0-9.+-]+\+)?json|application\/x-www-form-urlencoded|text\/plain|)$/.test(
    essenceOf(type),
  )
}
