import { createHash, createHmac } from 'node:crypto'
import type { SignatureV4 } from '@smithy/signature-v4'
import { decodeUriPart } from '../../workflows/texts.ts'
import type { Authorize, AuthorizedHop } from '../http/authority.ts'
import { isStreamed } from '../http/streams.ts'
import type { Credentials } from './credentials.ts'

/** S3 and what is like it take the path as it is: others encode it once more. */
const AS_IT_IS = new Set(['s3', 's3-object-lambda', 's3-outposts', 's3express'])

/** Signs each request by AWS's signature version 4, when it is sent. */
export function signForAws(data: Record<string, string>, credentials: Pick<Credentials, 'tell'>): Authorize {
  const { accessKeyId = '', secretAccessKey = '', sessionToken, region = '' } = data
  return async (hop) => {
    const { SignatureV4, clearCredentialCache } = await import('@smithy/signature-v4')
    const service = data.service ?? readService(hop.url.hostname)
    const asItIs = AS_IT_IS.has(service)
    const signer = new SignatureV4({
      ...{ service, region, sha256: Sha256, uriEscapePath: !asItIs },
      credentials: { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) },
    })
    try {
      const { headers } = await signer.sign(describeRequest(hop, asItIs))
      const { host: _, ...signed } = headers
      for (const [, signature] of signed.authorization?.matchAll(/Signature=([0-9a-f]+)/g) ?? [])
        credentials.tell(signature as string)
      return {
        headers: Object.fromEntries(
          Object.entries(signed).filter(([name]) => GENERATED.has(name) || !Object.hasOwn(hop.headers, name)),
        ),
      }
    } finally {
      // It would keep the session's token and keys that are made of the secret.
      clearCredentialCache()
    }
  }
}

/** The headers that are signed: those that say what is asked for, since others may be changed on the way. */
function describeRequest({ method, url, headers, body }: AuthorizedHop, asItIs: boolean) {
  const query: Record<string, string[]> = {}
  for (const [name, value] of url.searchParams) {
    const values = Object.hasOwn(query, name) ? query[name] : undefined
    if (values) values.push(value)
    else Object.defineProperty(query, name, { value: [value], enumerable: true })
  }
  return {
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    path: asItIs ? encodePath(url.pathname) : url.pathname,
    query,
    headers: {
      host: url.host,
      ...Object.fromEntries(Object.entries(headers).filter(isSigned)),
      // A body that is sent as it is read is not signed: that needs TLS, and S3 takes it.
      ...(isStreamed(body) ? { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } : {}),
    },
    ...(isStreamed(body) ? {} : body ? { body } : {}),
  }
}

/** Headers that the signer makes itself: those that a node sets give way. */
const GENERATED = new Set(['authorization', 'x-amz-date', 'x-amz-security-token'])

function isSigned([name]: [string, string]): boolean {
  const isAsked = name === 'content-type' || name === 'content-md5' || name.startsWith('x-amz-')
  return isAsked && !GENERATED.has(name)
}

function encodePath(path: string): string {
  return path
    .split('/')
    .map((part) => encodeURIComponent(decodeUriPart(part)).replace(/[!'()*]/g, encodeByte))
    .join('/')
}

const encodeByte = (c: string) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`

/** The service that a host is of: `sqs.eu-west-1.amazonaws.com`, `bucket.s3.amazonaws.com`; others by their first word. */
function readService(host: string): string {
  const [, named] = /([^.]+)(?:\.[a-z]{2}(?:-[a-z]+)+-\d)?\.amazonaws\.com(?:\.cn)?$/.exec(host) ?? []
  const word = named ?? host.split('.')[0] ?? ''
  return word.startsWith('s3-') && !AS_IT_IS.has(word) ? 's3' : word
}

type HashConstructor = ConstructorParameters<typeof SignatureV4>[0]['sha256']

/** SHA-256 and its HMAC, in the form that the library asks for: it calls this with `new`. */
const Sha256 = function makeHash(secret?: Uint8Array | string) {
  const hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret)
  return {
    update: (data: Uint8Array) => void hash.update(data),
    digest: async () => new Uint8Array(hash.digest()),
  }
} as unknown as HashConstructor
