import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { type WrittenOutput, writeOutputAside } from '../../db/executions/records/written.ts'
import type { BodyStart, Exchange } from '../../db/executions/requests/exchange.ts'
import { createExactMask, type ExactMask, type MaskedPieces } from '../../db/redaction/exact.ts'
import { redact, redactText } from '../../db/redaction/redact.ts'
import type { Files } from '../files/files.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { NodeResult } from '../nodes/kit/node.ts'
import type { Credentials } from './credentials.ts'

const unzip = promisify(gunzip)

const MAX_CAUSES = 8

/**
 * Masks what a call leaves behind, by the exact values of the secrets that it has opened so far. A call that has
 * opened none is left as it is.
 */
export type Masking = {
  /** What the node says. Its output is masked by values alone, so that a token in it stays of use. */
  result(result: NodeResult): Promise<NodeResult>
  /** An error, in which also is masked what looks like a secret. */
  error(error: unknown): unknown
  exchange(exchange: Exchange): Exchange
  /** A text of the result that is told in pieces, while it comes: joined they are what `result` makes of it. */
  pieces(): MaskedPieces
  /**
   * The files that the call stores: a text is masked as an output is. Other bytes stay as they are, since a mask would
   * only break them.
   */
  files(files: Files): Files
}

/** The types of media that are read as text. */
const TEXT =
  /^\s*(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|yaml|x-yaml|ndjson|javascript|x-www-form-urlencoded)\s*(?:;|$))/i

export function createMasking(credentials: Pick<Credentials, 'secrets'>): Masking {
  let known: ExactMask | undefined
  let count = 0

  function find(): { mask: ExactMask; secrets: string[] } | undefined {
    const secrets = credentials.secrets()
    if (secrets.length === 0) return undefined
    if (!known || secrets.length !== count) known = createExactMask(secrets)
    count = secrets.length
    return { mask: known, secrets }
  }

  return {
    async result(result) {
      const mask = find()?.mask
      if (!mask) return result
      const { output, branches, places, notes, written, ...rest } = result
      const said = mask.value({ output, branches, places, notes })
      const defined = Object.entries(said).filter(([, value]) => value !== undefined)
      return {
        ...rest,
        ...Object.fromEntries(defined),
        ...(written ? { written: await maskWritten(mask, written) } : {}),
      }
    },
    error(error) {
      const found = find()
      return found ? maskError(error, found.secrets, found.mask) : error
    },
    exchange(exchange) {
      const mask = find()?.mask
      return mask ? maskExchange(mask, exchange) : exchange
    },
    pieces() {
      let mask: ExactMask | undefined
      let told: MaskedPieces | undefined
      return {
        next(piece) {
          const found = find()?.mask
          const rest = found === mask ? '' : (told?.end() ?? '')
          if (found !== mask) told = found?.pieces()
          mask = found
          return told ? told.next(rest + piece) : piece
        },
        end: () => told?.end() ?? '',
      }
    },
    files: (files) => ({
      open: files.open,
      async store(what, bytes) {
        const mask = find()?.mask
        if (!mask) return files.store(what, bytes)
        const pieces = bytes instanceof Uint8Array ? [bytes] : bytes
        return files.store(mask.value(what), TEXT.test(what.mimeType) ? mask.bytes(pieces) : bytes)
      },
    }),
  }
}

async function maskWritten(mask: ExactMask, written: WrittenOutput): Promise<WrittenOutput> {
  const text = (await unzip(written.zipped)).toString()
  const clean = await mask.json(text)
  if (clean === text) return written
  try {
    return await writeOutputAside(clean)
  } catch (error) {
    // Masks may be longer than what they hide.
    if (error instanceof RangeError) throw new NodeFailure(error.message, { type: 'OutputTooLarge' })
    throw error
  }
}

/** Masks an error in its place, with its causes: it keeps what it is for those who judge it. */
function maskError(error: unknown, secrets: string[], mask: ExactMask, depth = 0): unknown {
  if (!(error instanceof Error) || depth > MAX_CAUSES) return redact(error, { secrets })
  const { message, stack, cause } = error
  const said: Record<string, unknown> = { message: redactText(mask.excerpt(message), { secrets }) }
  if (stack !== undefined) said.stack = redactText(mask.excerpt(stack), { secrets })
  if (cause !== undefined) said.cause = maskError(cause, secrets, mask, depth + 1)
  if (error instanceof NodeFailure && error.notes) said.notes = mask.value(error.notes)
  for (const [name, value] of Object.entries(error))
    if (typeof value === 'string') said[name] = mask.excerpt(value)
  // Defined, since some errors of the platform have a message that cannot be assigned.
  for (const [name, value] of Object.entries(said))
    Object.defineProperty(error, name, {
      value,
      writable: true,
      configurable: true,
      enumerable: isShown(error, name),
    })
  return error
}

const isShown = (error: Error, name: string) =>
  Object.getOwnPropertyDescriptor(error, name)?.enumerable ?? false

function maskExchange(mask: ExactMask, exchange: Exchange): Exchange {
  const { url, headers, body, redirects, response, error } = exchange
  return {
    ...exchange,
    ...mask.value({ url, headers, redirects }),
    body: maskStart(mask, body),
    response: response && {
      ...response,
      ...mask.value({ statusText: response.statusText, headers: response.headers }),
      body: maskStart(mask, response.body),
    },
    error: error === null ? null : mask.excerpt(error),
  }
}

function maskStart(mask: ExactMask, body: BodyStart): BodyStart {
  if (body.text === null) return body
  return { ...body, text: body.isCut ? mask.start(body.text) : mask.text(body.text) }
}
