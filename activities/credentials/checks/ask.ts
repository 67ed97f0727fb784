import type { OpenedCredential } from '../../../db/credentials/open.ts'
import { HttpError } from '../../http/httperror.ts'
import { decodeText } from '../../reading/charset.ts'
import { authorizeWith } from '../authorize.ts'
import type { CheckTools } from './check.ts'

/** The largest answer that a check reads. */
const MAX_BYTES = 4 * 1024 * 1024
const EXCERPT = 200

type Question = {
  url: string
  method?: 'GET' | 'POST'
  headers?: Record<string, string>
  body?: string
  /** Where the credential goes in its own way; else it is sent as HTTP_REQUEST sends it. */
  allowedHosts?: readonly string[] | undefined
}

/**
 * Sends a request with a credential, and gives the JSON of the answer; undefined if the answer is not a JSON object.
 * Throws an Error with the server's words if it refuses, and with the reason if there is no answer.
 */
export async function askWith(
  credential: OpenedCredential,
  { http, signal, credentials }: CheckTools,
  { url, method = 'GET', headers = {}, body, allowedHosts }: Question,
): Promise<Record<string, unknown> | undefined> {
  const pass = allowedHosts ? { allowedHosts } : await authorizeWith(credential, credentials)
  const request = { method, url, headers: { accept: 'application/json', ...headers }, signal, ...pass }
  const { host } = new URL(url)
  try {
    const answer = await http.request({
      ...request,
      ...(body === undefined ? {} : { body }),
      maxBytes: MAX_BYTES,
    })
    const text = decodeText(answer.body, answer.headers['content-type'])
    if (answer.status >= 400) throw new Error(describeRefusal(host, answer.status, text))
    return readObject(text)
  } catch (error) {
    if (error instanceof HttpError && error.kind === 'aborted' && signal.aborted) throw signal.reason
    throw error
  }
}

function describeRefusal(host: string, status: number, text: string): string {
  const said = text.replace(/[\p{Cc}\p{Cs}\s]+/gu, ' ').trim()
  const excerpt = said.length > EXCERPT ? `${said.slice(0, EXCERPT)}...` : said
  const what = status === 401 || status === 403 ? 'refuses the credential with' : 'responded with'
  return `${host} ${what} ${status}${excerpt ? `: ${excerpt}` : ''}`
}

function readObject(text: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** The address of a vendor's API, without a slash at its end: that of the credential, or the vendor's own. */
export function findBase({ data }: OpenedCredential, usual: string, key = 'baseUrl'): string {
  const own = data[key]
  return (typeof own === 'string' ? own : usual).replace(/\/+$/, '')
}
