import { isObject } from '../../../workflows/json.ts'
import { isJsonType } from '../../http/body.ts'
import type { Doc } from './refs.ts'

/** How a person wants the document to be read. */
export type OpenApiOptions = {
  /** The actions that may be done twice, besides those that only read. */
  repeatable?: string[]
  paging?: 'link'
}

/** The part of an input that a piece of a request becomes. */
export type InputPart = { properties: Record<string, unknown>; required: string[] }

/** A server's address with the defaults of its variables; undefined for one that is relative. */
export function fillServer({ url, variables }: Doc): string | undefined {
  if (typeof url !== 'string') return undefined
  const filled = url.replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const given = isObject(variables) ? variables[name] : undefined
    return isObject(given) ? String(given.default ?? '') : ''
  })
  const parsed = URL.parse(filled)
  return parsed && /^https?:$/.test(parsed.protocol) ? filled.replace(/\/+$/, '') : undefined
}

/** Whether JSON can be sent, or is answered, as this type of a document. */
export function isJsonMedia(type: string): boolean {
  return isJsonType(type) || type === '*/*'
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}...` : text
}
