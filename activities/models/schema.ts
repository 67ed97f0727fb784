import { isObject } from '../../workflows/json.ts'

const MAX_DEPTH = 20

/**
 * Whether a vendor that keeps strictly to JSON Schemas takes this one: each of its objects requires all of its
 * properties and allows no others. Others are kept to as well as the model can.
 */
export function isStrictSchema(schema: unknown, depth = 0): boolean {
  if (!isObject(schema) || depth > MAX_DEPTH) return false
  const { type, properties, required, additionalProperties, items, anyOf, enum: values, const: only } = schema
  if (Array.isArray(anyOf)) return depth > 0 && anyOf.every((one) => isStrictSchema(one, depth + 1))
  if (type === 'object') {
    if (!isObject(properties) || additionalProperties !== false || !Array.isArray(required)) return false
    return Object.entries(properties).every(
      ([name, one]) => required.includes(name) && isStrictSchema(one, depth + 1),
    )
  }
  if (depth === 0) return false
  if (type === 'array') return isStrictSchema(items, depth + 1)
  return typeof type === 'string' || Array.isArray(values) || only !== undefined
}
