import { splitTemplate } from '../expressions/expressions.ts'
import { isScriptText, splitScript } from '../javascript/template.ts'

/** The parts of a URL in a config: texts, and the sources of the expressions between them. */
export type WrittenUrl = { isScript: boolean; parts: (string | { source: string })[] }

/** Splits a URL at its expressions. Throws an Error if that cannot be done. */
export function splitUrl(url: string): WrittenUrl {
  return isScriptText(url)
    ? { isScript: true, parts: splitScript(url).parts }
    : { isScript: false, parts: splitTemplate(url) }
}

/** Whether a URL has come to its path, query or fragment, so that nothing that follows changes its host. */
export function isPastHost(start: string): boolean {
  return /^\s*https?:\/\/[^/?#\\\s]+[/?#\\]/i.test(start)
}

/** Whether it is known only when a node is executed to which host its URL leads. */
export function isHostOpen(url: unknown): boolean {
  if (typeof url !== 'string') return true
  const { parts } = splitUrl(url)
  const [first, ...more] = parts
  return typeof first !== 'string' || (more.length > 0 && !isPastHost(first))
}

/** The fault of such a URL beside a credential that may go anywhere; it follows `url`. */
export const OPEN_HOST =
  'must have its host written in it: an expression before the path could send the credential to anybody, unless it has allowedHosts'
