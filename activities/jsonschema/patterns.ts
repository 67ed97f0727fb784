import * as Browser from '@hyperjump/browser'
import { addKeyword, getKeywordName, Validation } from '@hyperjump/json-schema/experimental'
import * as Instance from '@hyperjump/json-schema/instance/experimental'
import { RE2JS } from 're2js'
import { translatePattern } from '../patterns.ts'
import { cutShort } from './words.ts'

/**
 * The three keywords that hold texts against patterns, on an engine whose time is linear in the length of the text: the
 * library's own would take any time for some patterns. Only for an evaluator process.
 */

// biome-ignore lint/suspicious/noExplicitAny: the library's types leave out what its own keywords use
type Any = any
const { step, value, typeOf, entries } = Browser as Any
const kit = Validation as Any
const ID = 'https://json-schema.org/keyword/'

/** What ECMA counts as white space, and what ends its lines. */
const SPACES =
  '\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}'
const LINE_ENDS = '\\n\\r\\x{2028}\\x{2029}'
/** What RE2 would read otherwise than ECMA does, outside of a class of characters and within one. */
const OUTSIDE: Record<string, string> = {
  '\\s': `[${SPACES}]`,
  '\\S': `[^${SPACES}]`,
  '.': `[^${LINE_ENDS}]`,
}
const INSIDE: Record<string, string> = { '\\s': SPACES, '[': '\\[' }
const TOKEN = /\\[\s\S]|[\s\S]/g

/** A pattern as ECMA means it, in signs that mean the same to RE2. */
function spellOut(source: string): string {
  let isClass = false
  return source.replace(TOKEN, (token) => {
    const written = (isClass ? INSIDE : OUTSIDE)[token] ?? token
    if (token === '[') isClass = true
    else if (token === ']') isClass = false
    return written
  })
}

/** Throws for a pattern that RE2 does not know, such as one that looks ahead or refers back. */
function compilePattern(source: string): (text: string) => boolean {
  try {
    const pattern = RE2JS.compile(translatePattern(spellOut(source)))
    return (text) => pattern.matcher(text).find()
  } catch {
    throw new Error(
      `the pattern ${JSON.stringify(cutShort(source))} cannot be used: patterns are those of RE2, without look-around and back-references, and of bounded size`,
    )
  }
}

/** Sets the keywords in place of the library's, for all drafts. */
export function useLinearPatterns(): void {
  addKeyword({
    id: `${ID}pattern`,
    compile: async (schema: Any) => compilePattern(value(schema)),
    interpret: (fits: Any, instance: Any) =>
      Instance.typeOf(instance) !== 'string' || fits(Instance.value(instance)),
  } as Any)
  addKeyword({
    id: `${ID}patternProperties`,
    async compile(schema: Any, ast: Any) {
      const compiled = []
      for await (const [pattern, inner] of entries(schema))
        compiled.push([compilePattern(pattern), await kit.compile(inner, ast)])
      return compiled
    },
    interpret(patterns: Any, instance: Any, context: Any) {
      if (Instance.typeOf(instance) !== 'object') return true
      let valid = true
      for (const [fits, url] of patterns) {
        for (const [name, property] of Instance.entries(instance) as Any) {
          const key: string = Instance.value(name)
          if (!fits(key)) continue
          if (!kit.interpret(url, property, context)) valid = false
          context.evaluatedProperties?.add(key)
        }
      }
      return valid
    },
    simpleApplicator: true,
  } as Any)
  addKeyword({
    id: `${ID}additionalProperties`,
    async compile(schema: Any, ast: Any, parent: Any) {
      const dialect = schema.document.dialectId
      const known = async (keyword: string): Promise<string[]> => {
        const found = await step(getKeywordName(dialect, `${ID}${keyword}`), parent)
        return typeOf(found) === 'object' ? Object.keys(value(found)) : []
      }
      const names = new Set(await known('properties'))
      const patterns = (await known('patternProperties')).map(compilePattern)
      const isKnown = (key: string) => names.has(key) || patterns.some((fits) => fits(key))
      return [isKnown, await kit.compile(schema, ast)]
    },
    interpret([isKnown, url]: Any, instance: Any, context: Any) {
      if (Instance.typeOf(instance) !== 'object') return true
      let valid = true
      for (const [name, property] of Instance.entries(instance) as Any) {
        const key: string = Instance.value(name)
        if (isKnown(key)) continue
        if (!kit.interpret(url, property, context)) valid = false
        context.evaluatedProperties?.add(key)
      }
      return valid
    },
    simpleApplicator: true,
  } as Any)
}
