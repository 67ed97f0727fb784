import type { Dispatcher } from 'undici'

/**
 * Names are in lower case; repeated headers are joined by ', '. `cookies` are the Set-Cookie headers where there are
 * several: they have commas of their own, so that joined ones cannot be told apart.
 */
export type ResponseHeaders = { headers: Record<string, string>; cookies?: string[] | undefined }

/** Headers as users see them: several Set-Cookie headers are a list. */
export type ShownHeaders = Record<string, string | string[]>

export function readHeaders(given: Dispatcher.ResponseData['headers']): ResponseHeaders {
  const joined = Object.entries(given).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ])
  const headers: Record<string, string> = Object.fromEntries(joined)
  const cookies = given['set-cookie']
  return Array.isArray(cookies) && cookies.length > 1 ? { headers, cookies } : { headers }
}

export function showHeaders({ headers, cookies }: ResponseHeaders): ShownHeaders {
  return cookies ? { ...headers, 'set-cookie': cookies } : headers
}
