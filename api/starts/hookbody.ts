import type { Context } from 'hono'
import { readDispositionName } from '../../activities/files/disposition.ts'
import type { StoredFile } from '../../db/files/store.ts'
import { beginSignature, type Delivery } from '../../db/starts/signature.ts'
import type { Webhook } from '../../db/starts/webhooks.ts'
import { MAX_FILE_BYTES } from '../../workflows/nodes/files.ts'
import type { ApiDeps, AppEnv } from '../env.ts'
import { createSeats } from '../executions/seats.ts'
import { receiveFile, receiveForm } from '../files/receive.ts'
import { parseBody, readBytes, readChunks } from '../http/body.ts'

/** How many uploads one process takes in at once, and from one team: each holds up to half a megabyte. */
const UPLOADS = { ofTeam: 8, ofPerson: 8, ofAll: 400 }

/** How many files a request may bring if its trigger does not say. */
const MAX_COUNT = 20

type HookBody = { body: unknown; files: StoredFile[]; delivery: Delivery | undefined }

/**
 * Reads the body of a request to a webhook, and checks its signature. Where the trigger takes files, those of a form and
 * a body that is neither JSON, a form nor plain text are stored as they come; they belong to no execution yet. Throws
 * TOO_LARGE over a limit, INVALID for a body that is not what it says, UNAUTHENTICATED for a wrong signature, and
 * THROTTLED if the team has too many uploads under way. Then nothing of it is kept.
 */
export function createReceiver({ store }: Pick<ApiDeps, 'store'>) {
  const seats = createSeats('uploads', UPLOADS)

  async function receiveStream(c: Context<AppEnv>, hook: Webhook, body: AsyncIterable<Uint8Array>) {
    const { id: workflowId, teamId } = hook.workflow
    const { maxBytes = MAX_FILE_BYTES, maxCount = MAX_COUNT } = hook.files!
    const type = c.req.header('content-type') ?? ''
    const leave = seats.take(workflowId, teamId)
    try {
      if (isForm(type)) return await receiveForm(store, teamId, body, { type, maxBytes, maxCount })
      const given = c.req.header('content-length')
      const length = given === undefined ? undefined : Number(given)
      const name = readDispositionName(c.req.header('content-disposition')) ?? ''
      return await receiveFile(store, teamId, body, { name, mimeType: type, length, maxBytes })
    } finally {
      leave()
    }
  }

  return async (c: Context<AppEnv>, hook: Webhook): Promise<HookBody> => {
    const signed = hook.signature && beginSignature(hook.signature, (name) => c.req.header(name))
    const type = c.req.header('content-type')
    if (!hook.files || !bringsFile(type)) {
      const bytes = await readBytes(c)
      signed?.update(bytes)
      const delivery = signed?.check()
      return { body: await parseBody(bytes, type), files: [], delivery }
    }
    let delivery: Delivery | undefined
    async function* watched() {
      for await (const chunk of readChunks(c)) {
        signed?.update(chunk)
        yield chunk
      }
      // Before the last piece is stored: what nobody has signed is not kept.
      delivery = signed?.check()
    }
    const { body, files } = await receiveStream(c, hook, watched())
    return { body, files, delivery }
  }
}

function isForm(type: string): boolean {
  return /^\s*multipart\/form-data\s*(;|$)/i.test(type)
}

/** Whether a body of this type is a file, or has some. */
function bringsFile(type: string | undefined): boolean {
  if (type === undefined) return false
  const essence = type.split(';')[0]!.trim().toLowerCase()
  return !/^([a-z]+\/([a-z0-9.+-]+\+)?json|application\/x-www-form-urlencoded|text\/plain|)$/.test(essence)
}
