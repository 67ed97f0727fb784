import { createHash, createHmac, type Hash, type Hmac, randomBytes } from 'node:crypto'
import { v4 as uuid } from 'uuid'
import { withoutFiles } from '../../workflows/itemfiles.ts'
import { wholeNumber } from '../../workflows/nodes/fields.ts'
import type { Credentials } from '../credentials/credentials.ts'
import { renderKey, renderText } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import { openGiven } from './kit/files.ts'
import { putInto } from './kit/into.ts'
import type { NodeContext, NodeRunner } from './kit/node.ts'

type Encoding = 'hex' | 'base64' | 'base64url'

const size = wholeNumber(1, 65_536)

/**
 * CRYPTO: outputs {value}. Strings are read as UTF-8, other values as their JSON. The encoding is hex by
 * default, and base64 for the operations encode and decode. With `into` the value goes into a field of its item. The
 * secret of an HMAC may be a credential.
 */
export const runCrypto: NodeRunner = async (context) => {
  const value = await compute(context)
  if (context.config.into === undefined) return { output: { value } }
  const output = putInto(context, value)
  // As in n8n, an item whose file was hashed goes on without its files.
  return { output: context.config.file === undefined ? output : withoutFiles(output) }
}

async function compute(context: NodeContext): Promise<string> {
  const { operation, algorithm = 'sha256' } = context.config
  const encoding = context.config.encoding as Encoding | undefined
  switch (operation) {
    case 'hash':
      return digest(context, createHash(String(algorithm)), encoding)
    case 'hmac':
      return digest(context, createHmac(String(algorithm), await readSecret(context)), encoding)
    case 'uuid':
      return uuid()
    case 'randomBytes': {
      const bytes = context.config.size === undefined ? 32 : await renderKey(context, 'size', size)
      if (context.config.chars === undefined) return randomBytes(bytes).toString(encoding ?? 'hex')
      const chars = await renderKey(context, 'chars', size)
      const text = randomBytes(chars).toString(encoding ?? 'hex')
      return (encoding === 'base64' ? text.replace(/\W/g, '') : text).slice(0, chars)
    }
    case 'encode':
      return Buffer.from(await renderText(context, 'value')).toString(encoding ?? 'base64')
    case 'decode':
      return decode(await renderText(context, 'value'), encoding ?? 'base64')
    default:
      throw invalidConfig('operation', 'is unknown')
  }
}

/** The hash of a text, or of the bytes of a file as they are read. */
async function digest(context: NodeContext, hash: Hash | Hmac, encoding: Encoding = 'hex'): Promise<string> {
  if (context.config.file === undefined)
    return hash.update(await renderText(context, 'value')).digest(encoding)
  const { stream } = await openGiven(context, 'file')
  for await (const piece of stream()) hash.update(piece)
  return hash.digest(encoding)
}

const opened = new WeakMap<Credentials, Promise<string>>()

/** The secret of an HMAC. A call opens its credential once, however many items it works on. */
async function readSecret(context: NodeContext): Promise<string> {
  const { config, credentials } = context
  if (config.secret !== undefined || !credentials) return renderText(context, 'secret')
  const secret =
    opened.get(credentials) ??
    credentials.open(config.credentialId, 'SIGNATURE').then(({ data }) => String(data.secret))
  opened.set(credentials, secret)
  return secret
}

function decode(text: string, encoding: Encoding): string {
  const bare = text.replace(/\s/g, '')
  const isValid = encoding === 'hex' ? /^(?:[0-9a-f]{2})*$/i.test(bare) : /^[\w+/-]*={0,2}$/.test(bare)
  if (!isValid) throw invalidConfig('value', `must be valid ${encoding}`)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(bare, encoding))
  } catch {
    throw invalidConfig('value', 'must decode to UTF-8 text')
  }
}
