import * as v from 'valibot'
import { boundedString, documentAs } from '../../http/fields.ts'

const MAX_URL = 2_048

/** The fields of a request that asks to be told of the end of the execution that it starts. */
export const callbackFields = {
  callbackUrl: v.optional(
    v.pipe(
      boundedString(MAX_URL),
      documentAs<string>({
        type: 'string',
        format: 'uri',
        maxLength: MAX_URL,
        pattern: '^https?://[^\\u0000]+$',
      }),
      v.check(
        (text) => ['http:', 'https:'].includes(URL.parse(text)?.protocol ?? ''),
        'must be a URL that begins with http:// or https://',
      ),
      v.description('A URL that gets a signed POST when the execution has ended, however it ends'),
    ),
  ),
  callbackSecret: v.optional(
    v.pipe(
      boundedString(256, 16),
      v.description(
        'The key of the signature of that POST, required with `callbackUrl`: the header X-Perdure-Signature is ' +
          '`t=<Unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`. It is never shown again',
      ),
    ),
  ),
}

type Given = { callbackUrl?: string | undefined; callbackSecret?: string | undefined }

/** Checks that the URL and the secret are given together. */
export function checkCallback<T extends Given>() {
  const isWhole = ({ callbackUrl, callbackSecret }: T) =>
    (callbackUrl === undefined) === (callbackSecret === undefined)
  return v.forward(v.check<T, string>(isWhole, 'callbackUrl and callbackSecret are given together'), [
    'callbackSecret',
  ] as never)
}
