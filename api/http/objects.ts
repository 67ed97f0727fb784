import { joinPath, type Problem } from '../../workflows/problem.ts'

/** What of a Valibot schema says where objects are expected. */
type Shape = {
  type: string
  entries?: Record<string, Shape>
  wrapped?: Shape
  item?: Shape
}

const OBJECTS = ['object', 'loose_object', 'strict_object', 'variant', 'record']

/** Finds arrays where a schema expects objects: Valibot takes an array for an object without keys. */
export function findMisplacedArrays(schema: Shape, value: unknown, path = ''): Problem[] {
  if (typeof value !== 'object' || value === null) return []
  if (schema.wrapped) return findMisplacedArrays(schema.wrapped, value, path)
  if (Array.isArray(value)) {
    if (OBJECTS.includes(schema.type)) return [{ path, message: 'must be an object' }]
    const { item } = schema
    return item ? value.flatMap((one, at) => findMisplacedArrays(item, one, joinPath(path, at))) : []
  }
  return Object.entries(schema.entries ?? {}).flatMap(([key, shape]) =>
    Object.hasOwn(value, key)
      ? findMisplacedArrays(shape, (value as Record<string, unknown>)[key], joinPath(path, key))
      : [],
  )
}
