import type { ComponentType } from 'react'
import type { Schema } from '../schema.ts'

/** The change of a value; undefined takes it out. */
export type Edit = (now: unknown) => unknown

/**
 * A field of a form. It says how the value changes, not what it becomes: by then the value may be newer than the one
 * that was drawn last.
 */
export type ValueProps = {
  schema: Schema
  /** From the node: `config.headers.accept`. */
  path: string
  label: string
  value: unknown
  edit: (edit: Edit) => void
  required?: boolean
  hideLabel?: boolean
}

/** A field with fields in it, which are drawn by `Value`. */
export type NestedProps = ValueProps & { Value: ComponentType<ValueProps> }

/** The object with another value of a key; undefined takes the key out. */
export function editKey<T extends object>(held: T, key: string, edit: Edit): T {
  const { [key]: before, ...rest } = held as Record<string, unknown>
  const next = edit(before)
  return (next === undefined ? rest : { ...held, [key]: next }) as T
}
