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
  const message = `is required unless ${unless.join(' and ')} ${is === undefined ? 'are given' : `is ${is}`}`
  return keys.filter((key) => !given.has(key)).map((key) => ({ path: `data.${key}`, message }))
}

/** The keys of data from outside that its type does not know, and that were left out. */
export function listUnknownKeys(type: CredentialType, given: Record<string, unknown>): string[] {
  const known = Object.keys(credentialKind(type).data.entries)
  return Object.keys(given).filter((key) => !known.includes(key))
}

/** The data that a patch makes of stored data: key by key, null removes one. Throws INVALID if it is not valid as a whole. */
export function mergeCredentialData(
  type: CredentialType,
  stored: CredentialData,
  patch: Record<string, unknown>,
): CredentialData {
  const merged = new Map<string, unknown>([...Object.entries(stored), ...Object.entries(patch)])
  const { data, problems } = readCredentialData(type, Object.fromEntries(merged))
  if (problems.length > 0) throw invalid(problems)
  return data
}
