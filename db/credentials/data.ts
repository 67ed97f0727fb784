import * as v from 'valibot'
import { describeIssues, type Problem } from '../../workflows/problem.ts'
import { findSimilar } from '../../workflows/suggest.ts'
import { invalid } from '../fault.ts'
import type { CredentialData } from './seal.ts'
import { type CredentialKind, type CredentialType, credentialKind } from './types.ts'

/** A credential's data from outside, once it is read, and what is wrong with it. */
export type ReadData = { data: CredentialData; problems: Problem[] }

/**
 * Reads the data of a credential of a type, and names all that is wrong with it. A key that is null counts as
 * missing. A key that the type does not know is left out, unless it looks like a misspelt one: that is a problem.
 */
export function readCredentialData(type: CredentialType, given: Record<string, unknown>): ReadData {
  const { data: schema, conditional } = credentialKind(type)
  const known = Object.keys(schema.entries)
  const there = Object.entries(given).filter(([, value]) => value !== null)
  const problems: Problem[] = []
  for (const [key] of there.filter(([key]) => !known.includes(key))) {
    const similar = findSimilar(key, known)
    if (similar !== undefined)
      problems.push({
        path: `data.${similar}`,
        message: `is not what "${key}" sets; did you mean "${similar}"?`,
      })
  }
  const wanted = new Map(there)
  const parsed = v.safeParse(schema, Object.fromEntries(there.filter(([key]) => known.includes(key))))
  if (!parsed.success) problems.unshift(...describeIssues(parsed.issues, 'data'))
  if (conditional) problems.push(...findMissing(conditional, wanted))
  return { data: (parsed.success ? parsed.output : {}) as CredentialData, problems }
}

function findMissing(
  { keys, unless, is }: NonNullable<CredentialKind['conditional']>,
  given: ReadonlyMap<string, unknown>,
): Problem[] {
  if (unless.every((key) => (is === undefined ? given.has(key) : given.get(key) === is))) return []
  const stated = unless.length === 1 ? 'is given' : 'are given'
  const message = `is required unless ${unless.join(' and ')} ${is === undefined ? stated : `is ${is}`}`
  return keys.filter((key) => !given.has(key)).map((key) => ({ path: `data.${key}`, message }))
}

/** The keys of data from outside that its type does not know, and that were left out. */
export function listUnknownKeys(type: CredentialType, given: Record<string, unknown>): string[] {
  const known = Object.keys(credentialKind(type).data.entries)
  return Object.keys(given).filter((key) => !known.includes(key))
}

/** Stored data with a patch, and the keys of it that now send the secrets elsewhere. */
export type MergedData = {
  data: CredentialData
  redirected: string[]
  /** Tokens were left out, and the request gave no others. */
  disconnected: boolean
}

/**
 * The data that a patch makes of stored data: key by key, null removes one. Secrets do not follow when it is changed
 * where they are sent: the patch must then have all of them again, and tokens that it does not have are left out.
 * Throws INVALID with the secrets that are missing, and with all that is wrong with the data as a whole.
 */
export function mergeCredentialData(
  type: CredentialType,
  stored: CredentialData,
  patch: Record<string, unknown>,
): MergedData {
  const redirected = findRedirected(type, stored, patch)
  const isMoved = redirected.length > 0
  const kept = Object.entries(stored).filter(([key]) => !(isMoved && type === 'OAUTH2' && isToken(key)))
  const { data, problems } = readCredentialData(type, { ...Object.fromEntries(kept), ...patch })
  const missing = isMoved
    ? credentialKind(type).secrets.filter(
        (key) => kept.some(([known]) => known === key) && !Object.hasOwn(patch, key),
      )
    : []
  const why = `is needed again in this request, because ${redirected.join(' and ')} decides where it is sent`
  for (const key of missing) problems.push({ path: `data.${key}`, message: why })
  if (problems.length > 0) throw invalid(problems)
  const disconnected = kept.length < Object.keys(stored).length && !hasTokens(data)
  return { data, redirected, disconnected }
}

/** Whether the data of an OAUTH2 credential has a token. */
export function hasTokens(data: CredentialData): boolean {
  return Object.keys(data).some(isToken)
}

const isToken = (key: string) => key === 'accessToken' || key === 'refreshToken'

/** The keys of a patch that decide where secrets are sent, and that it really changes. Invalid ones are left out. */
function findRedirected(
  type: CredentialType,
  stored: CredentialData,
  patch: Record<string, unknown>,
): string[] {
  const { data, directs } = credentialKind(type)
  const entries: Record<string, v.GenericSchema> = data.entries
  return directs.filter((key) => {
    if (!Object.hasOwn(patch, key)) return false
    const usual = v.getDefault(entries[key]!)
    const next = v.safeParse(entries[key]!, patch[key] ?? undefined)
    const after = patch[key] === null ? usual : next.success ? next.output : stored[key]
    const before = stored[key] ?? usual
    if (key === 'allowedHosts' && isNarrower(type, before, after)) return false
    return JSON.stringify(before) !== JSON.stringify(after)
  })
}

/** Whether a list of hosts only lost some. Without a list, a type goes anywhere or, if it has hosts, to these. */
function isNarrower(type: CredentialType, before: unknown, after: unknown): boolean {
  if (!Array.isArray(after)) return before === undefined && after === undefined
  if (before === undefined) return credentialKind(type).hosts === undefined
  return Array.isArray(before) && after.every((host) => before.includes(host))
}
