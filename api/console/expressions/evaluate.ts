import { useEffect, useState } from 'react'
import { tellError } from '../data/refusal.ts'
import type { GraphNode } from '../nodeform/contract.ts'
import { dataOf, type Evaluation, evaluate, type ReadPlace } from '../nodeform/run.ts'

/** Where in the text an error is. */
type Mark = { from: number; to: number }
export type Reading = Evaluation & { note?: string; mark?: Mark | undefined }
type Asked = {
  expression: string
  as: 'value' | 'condition'
  place: ReadPlace | undefined
  node: GraphNode
  enabled: boolean
}

/** How long typing must have paused before it is asked. */
const PAUSE_MS = 350

/** The value of an expression in the last run. An earlier question is given up. */
export function useEvaluation({ expression, as, place, node, enabled }: Asked): Reading | null {
  const [reading, setReading] = useState<Reading | null>(null)
  const items = itemsOf(node)
  useEffect(() => {
    if (!enabled || !place) return
    const aborted = new AbortController()
    const ask = async () => {
      const { text, note } = bindItem(expression, items)
      try {
        const asked = { expression: text, as: note ? 'value' : as, ...dataOf(place) }
        const { value, error, warnings } = await evaluate(place, asked, aborted.signal)
        const own = (said: string) => (note ? said.replaceAll('$first__', '$item') : said)
        setReading({
          value,
          error: error && { message: own(shorten(error.message, text)) },
          mark: error ? findMark(own(error.message), expression) : undefined,
          warnings: warnings.map(own),
          ...(note ? { note } : {}),
        })
      } catch (refused) {
        if (aborted.signal.aborted) return
        setReading({ value: null, error: { message: tellError(refused) }, warnings: [] })
      }
    }
    const timer = setTimeout(() => void ask(), PAUSE_MS)
    return () => {
      clearTimeout(timer)
      aborted.abort()
    }
  }, [expression, as, place, enabled, items])
  return reading
}

/** The error's own words, without the expression, which is shown above it. */
function shorten(message: string, text: string): string {
  const start = `expression ${text}: `
  const short = message.startsWith(start)
    ? message.slice(start.length)
    : message.replace(/^expression \{\{.*?\}\}: /s, '')
  return short.replace(/ \(character (\d+) of .*\)$/s, ' (character $1)')
}

/** The place in the text that an error names, by its words: they count within the braces of its expression. */
function findMark(message: string, text: string): Mark | undefined {
  const [, count, inner = ''] = /\(character (\d+) of \{\{ (.*) \}\}\)$/s.exec(message) ?? []
  // If there are several expressions, the one with exactly these words.
  const exact = [...text.matchAll(/\{\{\s*(.*?)\s*\}\}/gs)].find((one) => one[1] === inner)
  const start = exact ? exact.index + exact[0].indexOf(inner) : text.indexOf(inner)
  if (count && start >= 0) {
    const from = Math.min(start + Number(count) - 1, text.length - 1)
    return { from, to: from + 1 }
  }
  const name = /unknown variable (\$\w+)/.exec(message)?.[1]
  const at = name === undefined ? -1 : text.indexOf(name)
  if (at >= 0) return { from: at, to: at + name!.length }
  const open = /the \{\{ at character (\d+)/.exec(message)?.[1]
  return open ? { from: Number(open) - 1, to: Math.min(Number(open) + 1, text.length) } : undefined
}

/** What a node that goes through a list says is its list: an expression, or undefined where it has none. */
export function itemsOf({ config, type }: GraphNode): string | undefined {
  if (!['FILTER', 'MAP', 'SORT', 'DEDUPLICATE', 'AGGREGATE'].includes(type)) return undefined
  const { items } = config
  if (typeof items !== 'string') return items === undefined ? '$input' : JSON.stringify(items)
  return /^\s*\{\{(.*)\}\}\s*$/s.exec(items)?.[1]?.trim() || '$input'
}

/** Reads `$item` as the first item of the list, which the service knows only while the node is executed. */
function bindItem(expression: string, items: string | undefined): { text: string; note?: string } {
  if (items === undefined || !/\$(item|index)\b/.test(expression) || expression.startsWith('=')) {
    return { text: expression }
  }
  const rename = (text: string) => text.replaceAll(/\$item\b/g, '$first__').replaceAll(/\$index\b/g, '0')
  const bind = (text: string) => `( $first__ := $append([], ${items})[0]; ${rename(text)} )`
  const text = expression.includes('{{')
    ? expression.replaceAll(/\{\{(.*?)\}\}/gs, (_, inner: string) => `{{ ${bind(inner)} }}`)
    : bind(expression)
  return { text, note: 'for the first item' }
}
