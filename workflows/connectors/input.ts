import { isObject } from '../json.ts'
import { nameType, type Path } from '../problem.ts'
import { askForSimilar } from '../suggest.ts'
import type { ActionSchema } from './connector.ts'

type InputProblem = { path: Path; message: string }

/**
 * The faults of an input whatever its expressions give: keys that the action does not have, required ones that are
 * missing (unless it is only `partial`), and values of another type or none of the choices. The rest is checked when it is
 * computed, against the whole schema.
 */
export function findInputProblems(
  schema: ActionSchema,
  input: unknown,
  { partial = false } = {},
): InputProblem[] {
  if (typeof input === 'string') return []
  const given = isObject(input) ? input : {}
  const properties = isObject(schema.properties) ? schema.properties : {}
  const required = Array.isArray(schema.required) ? schema.required : []
  const problems: InputProblem[] = []
  for (const [key, value] of Object.entries(given)) {
    const own = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (own === undefined && schema.additionalProperties === false) {
      const message = `is nothing that the action takes${askForSimilar(key, Object.keys(properties))}`
      problems.push({ path: [key], message })
    } else if (isObject(own)) {
      const message = findFault(own, value)
      if (message) problems.push({ path: [key], message })
    }
  }
  if (!partial)
    for (const key of required)
      if (typeof key === 'string' && (given[key] === undefined || given[key] === ''))
        problems.push({ path: [key], message: 'is required' })
  return problems
}

function findFault({ type, enum: choices }: ActionSchema, value: unknown): string | undefined {
  if (value === null || value === undefined || hasExpression(value)) return undefined
  const types = typeof type === 'string' ? [type] : Array.isArray(type) ? type : []
  if (types.length > 0 && !types.some((one) => fits(one, value)))
    return `must be ${types.join(' or ')}, not ${nameType(value)}`
  if (Array.isArray(choices) && typeof value !== 'object' && !choices.includes(value))
    return `must be one of ${choices.slice(0, 50).join(', ')}`
  return undefined
}

function hasExpression(value: unknown): boolean {
  return typeof value === 'string' && (value.includes('{{') || value.startsWith('='))
}

function fits(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'string':
      return typeof value === 'string'
    case 'boolean':
      return typeof value === 'boolean' || value === 'true' || value === 'false'
    case 'number':
    case 'integer':
      return isNumeric(value)
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'null':
      return value === null
    default:
      return true
  }
}

/** A number, or the text of one: the host reads it. */
function isNumeric(value: unknown): boolean {
  return (
    typeof value === 'number' ||
    (typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value)))
  )
}
