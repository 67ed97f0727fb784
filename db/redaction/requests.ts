import { isObject } from '../../workflows/json.ts'
import {
  isSecretName,
  LEAST_SECRET,
  MAYBE_SECRET,
  normalizeKey,
} from '../../workflows/secrets/secretnames.ts'
import { decodeUriPart } from '../../workflows/texts.ts'
import { REDACTED } from '../detection/secrets/structures.ts'
import type { RedactionRules } from './redact.ts'

/** The path after the host of a web hook whose address is a secret. */
const HOOK =
  /(?<=\/\/(?:hooks\.slack\.com\/services|api\.telegram\.org\/bot|discord(?:app)?\.com\/api\/webhooks))[^\s?#]{8,}/g

/** More that is a secret in a request: names of keys, and addresses that are one. In a body such names are usual. */
export const IN_REQUESTS: RedactionRules = {
  kinds: new Set(),
  mask: () => REDACTED,
  names: MAYBE_SECRET,
  maskOwn: (text) => text.replace(HOOK, REDACTED),
}

/**
 * The secret part of a URL that is a web hook's address. Masked as an exact value, it leaves the host readable, which a
 * detector of keys would mask with it.
 */
export const listHookSecrets = (url: string): string[] => url.match(HOOK) ?? []

/** The most secrets of one request that are looked for elsewhere, their length, and the values that are read for them. */
const MAX_SECRETS = 40
const MAX_CHARS = 4_096
const MAX_VALUES = 5_000
const MAX_BODY = 65_536

/** A request as it is sent. The user and the password were removed from the URL, or it is still as it was written. */
type Sent = { url: string; headers: Record<string, string>; body?: string | null | undefined }

/**
 * The exact values of a request that are secret, by their names or as the address of a web hook: servers like to echo
 * them. In headers, in the URL, and in a body that is JSON or a form and has at most 64 KB.
 */
export function listRequestSecrets({ url, headers, body }: Sent): string[] {
  const secrets = new Set<string>()
  const add = (value: string, least = 1) => {
    if (value.length >= least && value.length <= MAX_CHARS && secrets.size < MAX_SECRETS) secrets.add(value)
  }
  for (const [name, value] of Object.entries(headers)) {
    if (!isSecretName(name)) continue
    add(value)
    for (const part of value.split(/[\s;=,]+/)) add(part, 6)
    const [, basic] = /^basic\s+([\w+/=-]+)$/i.exec(value.trim()) ?? []
    if (basic)
      add(
        Buffer.from(basic, 'base64')
          .toString()
          .replace(/^[^:]*:/, ''),
      )
  }
  for (const secret of listHookSecrets(url)) add(secret)
  const { searchParams, password } = URL.parse(url) ?? {}
  for (const [name, value] of searchParams ?? []) {
    if (isSecretName(name)) add(value)
    else if (IN_REQUESTS.names.has(normalizeKey(name))) add(value, LEAST_SECRET)
  }
  if (password) for (const form of [password, decodeUriPart(password)]) add(form)
  if (body && body.length <= MAX_BODY)
    for (const [name, value] of listNamed(body)) if (isSecretName(name)) add(value)
  return [...secrets]
}

/** The names and texts in a body that is a JSON object or list, or a form. */
function listNamed(body: string): [string, string][] {
  if (!/^\s*[{[]/.test(body)) return body.includes('=') ? [...new URLSearchParams(body)] : []
  const found: [string, string][] = []
  const open: unknown[] = []
  try {
    open.push(JSON.parse(body))
  } catch {
    return []
  }
  for (let seen = 0; open.length > 0 && seen < MAX_VALUES; seen++) {
    const value = open.pop()
    if (Array.isArray(value)) open.push(...value)
    else if (isObject(value)) {
      for (const [name, item] of Object.entries(value)) {
        if (typeof item === 'string') found.push([name, item])
        else open.push(item)
      }
    }
  }
  return found
}
