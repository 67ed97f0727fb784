import { createHash, createHmac, randomBytes } from 'node:crypto'
import { v4 as uuid } from 'uuid'
import { whole } from '../../workflows/nodes/fields.ts'
import { readKey, readText } from './config.ts'
import { invalidConfig } from './failure.ts'
import type { NodeContext, NodeRunner } from './node.ts'

type Encoding = 'hex' | 'base64' | 'base64url'

const size = whole(1, 65_536)

/** CRYPTO: outputs {value}. Texts count as UTF-8, other values as their JSON; the encoding is hex, of encode and decode base64. */
export const runCrypto: NodeRunner = async (context) => ({ output: { value: await compute(context) } })

async function compute(context: NodeContext): Promise<string> {
  const { operation, algorithm = 'sha256' } = context.config
  const encoding = context.config.encoding as Encoding | undefined
  switch (operation) {
    case 'hash':
      return createHash(String(algorithm))
        .update(await readText(context, 'value'))
        .digest(encoding ?? 'hex')
    case 'hmac':
      return createHmac(String(algorithm), await readText(context, 'secret'))
        .update(await readText(context, 'value'))
        .digest(encoding ?? 'hex')
    case 'uuid':
      return uuid()
    case 'randomBytes': {
      const bytes = context.config.size === undefined ? 32 : await readKey(context, 'size', size)
      return randomBytes(bytes).toString(encoding ?? 'hex')
    }
    case 'encode':
      return Buffer.from(await readText(context, 'value')).toString(encoding ?? 'base64')
    case 'decode':
      return decode(await readText(context, 'value'), encoding ?? 'base64')
    default:
      throw invalidConfig('operation', 'is unknown')
  }
}

function decode(text: string, encoding: Encoding): string {
  const bare = text.replace(/\s/g, '')
  const whole = encoding === 'hex' ? /^(?:[0-9a-f]{2})*$/i.test(bare) : /^[\w+/-]*={0,2}$/.test(bare)
  if (!whole) throw invalidConfig('value', `is no ${encoding}`)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(bare, encoding))
  } catch {
    throw invalidConfig('value', 'holds bytes that are no UTF-8 text')
  }
}
