import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'

/** Compiled regular expressions are kept, up to this many characters of their sources. */
const KEPT = { maxSize: 200_000, sizeCalculation: (_: unknown, text: string) => text.length }
const patterns = new LRUCache<string, RE2JS>(KEPT)

function compilePattern(native: RegExp): RE2JS {
  const name = String(native)
  const known = patterns.get(name)
  if (known) return known
  const flags = (native.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0) | (native.multiline ? RE2JS.MULTILINE : 0)
  const pattern = RE2JS.compile(RE2JS.translateRegExp(native.source), flags)
  patterns.set(name, pattern)
  return pattern
}

/** The part of RegExp that JSONata uses, on an engine whose time is linear in the length of the text. */
export function LinearRegex(native: RegExp) {
  const pattern = compilePattern(native)
  let text: string | undefined
  let matcher = pattern.matcher('')
  return {
    lastIndex: 0,
    exec(input: string) {
      if (input !== text) {
        text = input
        matcher = pattern.matcher(input)
      }
      if (this.lastIndex > input.length || !matcher.find(this.lastIndex)) {
        this.lastIndex = 0
        return null
      }
      this.lastIndex = matcher.end()
      const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, i) => matcher.group(i) ?? undefined)
      return Object.assign(groups, { index: matcher.start() })
    },
  }
}
