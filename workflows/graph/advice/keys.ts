import type * as v from 'valibot'
import { joinPath, type Problem, quoteShort } from '../../problem.ts'
import { findSimilar } from '../../suggest.ts'

/** A schema of Valibot, and what it has if it is one of objects, lists, options, or a choice. */
export type KeyedSchema = v.GenericSchema & {
  entries?: Record<string, KeyedSchema>
  wrapped?: KeyedSchema
  options?: KeyedSchema[]
  item?: KeyedSchema
  value?: KeyedSchema
  /** For a choice by the value of one key, that key. */
  key?: string
  /** For a schema of one value, that value. */
  literal?: unknown
}

/** For a choice by the value of one key, the schema that a value has chosen; else the schema itself. */
export function chooseOption(schema: KeyedSchema | undefined, value: object): KeyedSchema | undefined {
  if (schema?.wrapped) return chooseOption(schema.wrapped, value)
  const { key, options = [] } = schema ?? {}
  if (key === undefined) return schema
  const chosen = (value as Record<string, unknown>)[key]
  return options.find(({ entries }) => entries?.[key]?.literal === chosen) ?? schema
}

/** The keys of the objects that a schema takes. */
export function listKeys(schema: KeyedSchema | undefined): string[] {
  if (!schema) return []
  if (schema.entries) return Object.keys(schema.entries)
  if (schema.wrapped) return listKeys(schema.wrapped)
  return schema.options ? [...new Set(schema.options.flatMap(listKeys))] : []
}

/** The schema of the value at a key, or of the elements of a list. */
export function stepInto(schema: KeyedSchema | undefined, key: string): KeyedSchema | undefined {
  if (!schema) return undefined
  if (schema.entries) return Object.hasOwn(schema.entries, key) ? schema.entries[key] : undefined
  if (schema.wrapped) return stepInto(schema.wrapped, key)
  if (schema.item) return schema.item
  for (const option of schema.options ?? []) {
    const found = stepInto(option, key)
    if (found) return found
  }
  return schema.value
}

/**
 * Adds to what is wrong with a config, at `path`, which unknown key was probably meant for one that is missing.
 */
export function explainMissing(
  problems: Problem[],
  raw: Record<string, unknown>,
  path: string,
  schema: v.GenericSchema,
): Problem[] {
  const known = listKeys(schema)
  const unknown = Object.keys(raw).filter((key) => !known.includes(key))
  return problems.map((problem) => {
    const key = known.find((one) => problem.path === joinPath(path, one))
    if (key === undefined || problem.message !== 'is required') return problem
    const similar = findSimilar(key, unknown)
    return similar
      ? { ...problem, message: `is required; did you mean it by ${quoteShort(similar)}?` }
      : problem
  })
}
