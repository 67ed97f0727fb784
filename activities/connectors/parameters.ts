import type { Parameter } from '../../workflows/connectors/connector.ts'
import { isObject } from '../../workflows/json.ts'
import { demandName } from '../nodes/kit/address.ts'

/**
 * Parts of a request that the values of an input become, by the rules of OpenAPI 3.1 (after RFC 6570). `path` fills the
 * places `{name}` of a path and appends the query; nothing in its result is an expression.
 */
export function placeParameters(parameters: readonly Parameter[], input: Record<string, unknown>) {
  const given = parameters.flatMap((one) => {
    const value = input[one.property]
    return value === undefined || value === null ? [] : [{ ...one, value }]
  })
  const headers: Record<string, string> = {}
  for (const one of given)
    if (one.in === 'header') headers[one.name.toLowerCase()] = joinSimple(one.value, one.explode, String)
  const cookies = given.filter((one) => one.in === 'cookie').flatMap((one) => writePairs(one, encode))
  if (cookies.length > 0) headers.cookie = cookies.join('; ')
  const query = given.filter((one) => one.in === 'query').flatMap((one) => writePairs(one, encode))
  return {
    headers,
    path(template: string): string {
      const filled = template.replace(/\{([^{}]*)\}/g, (_, name: string) => {
        const one = given.find((other) => other.in === 'path' && other.name === name)
        return one ? writePath(one) : ''
      })
      if (query.length === 0) return filled
      return `${filled}${filled.includes('?') ? '&' : '?'}${query.join('&')}`
    },
  }
}

type Given = Parameter & { value: unknown }

/** Percent-encodes all but the unreserved characters of RFC 3986. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function textOf(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)
}

function joinSimple(value: unknown, explode: boolean, write: (text: string) => string): string {
  if (Array.isArray(value)) return value.map((one) => write(textOf(one))).join(',')
  if (!isObject(value)) return write(textOf(value))
  const sign = explode ? '=' : ','
  return Object.entries(value)
    .map(([key, one]) => `${write(key)}${sign}${write(textOf(one))}`)
    .join(',')
}

function writePath({ name, style, explode, json, value }: Given): string {
  if (json) return demanded(encode(JSON.stringify(value)))
  const simple = joinSimple(value, explode, encode)
  if (style === 'label') return `.${explode ? simple.replaceAll(',', '.') : simple}`
  if (style !== 'matrix') {
    for (const one of Array.isArray(value) ? value : isObject(value) ? [] : [value]) demandName(textOf(one))
    return demanded(simple)
  }
  if (Array.isArray(value) && explode)
    return value.map((one) => `;${encode(name)}=${encode(textOf(one))}`).join('')
  if (isObject(value) && explode)
    return Object.entries(value)
      .map(([key, one]) => `;${encode(key)}=${encode(textOf(one))}`)
      .join('')
  return `;${encode(name)}=${simple}`
}

/** A place of a path must not be empty: it would be the address of something else. */
function demanded(text: string): string {
  demandName(text)
  return text
}

const SIGNS = { spaceDelimited: '%20', pipeDelimited: '%7C' } as const

/** The pairs `name=value` of a query or a cookie. */
function writePairs({ name, style, explode, json, value }: Given, write: (text: string) => string): string[] {
  const key = write(name)
  if (json) return [`${key}=${write(JSON.stringify(value))}`]
  if (Array.isArray(value)) {
    const texts = value.map((one) => write(textOf(one)))
    if (explode && style === 'form') return texts.map((one) => `${key}=${one}`)
    const sign = style === 'spaceDelimited' || style === 'pipeDelimited' ? SIGNS[style] : ','
    return texts.length === 0 ? [] : [`${key}=${texts.join(sign)}`]
  }
  if (!isObject(value)) return [`${key}=${write(textOf(value))}`]
  const entries = Object.entries(value).filter(([, one]) => one !== undefined && one !== null)
  if (style === 'deepObject')
    return entries.flatMap(([inner, one]) =>
      (Array.isArray(one) ? one : [one]).map(
        (each) => `${write(`${name}[${inner}]`)}=${write(textOf(each))}`,
      ),
    )
  if (explode) return entries.map(([inner, one]) => `${write(inner)}=${write(textOf(one))}`)
  return entries.length === 0
    ? []
    : [`${key}=${entries.map(([inner, one]) => `${write(inner)},${write(textOf(one))}`).join(',')}`]
}
