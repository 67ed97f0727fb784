import { readdirSync, readFileSync } from 'node:fs'
import {
  CONTENT_CATEGORIES,
  type ContentCategory,
} from '../../../../../activities/guardrails/content/categories.ts'

/** Which categories a text has (1), has not (0), or may have (left out of fitting and measuring). */
export type Labels = Partial<Record<ContentCategory, 0 | 1>>

/** A labelled text. `source` is where it comes from, `family` its kind within it; `weight` is how much it counts. */
export type Labelled = { text: string; labels: Labels; source: string; family: string; weight: number }

/**
 * Our own sentences in a folder of text files: `## family: labels` begins a family, each line after it is a text.
 * Labels are categories, `?category` for those that the texts may have, or `none`. Of each `{one|another}` in a line,
 * every text takes one: a line gives as many texts as its longest list, `most` at most.
 */
export function readSentences(folder: 'seeds' | 'dev' | 'held', most = 3): Labelled[] {
  const root = new URL(`./${folder}/`, import.meta.url)
  const files = readdirSync(root).sort()
  return files.flatMap((file) => parseSentences(readFileSync(new URL(file, root), 'utf8'), folder, most))
}

function parseSentences(content: string, source: string, most: number): Labelled[] {
  let family = ''
  let labels: Labels = {}
  return content.split('\n').flatMap((line) => {
    if (line.trim() === '') return []
    if (line.startsWith('## ')) {
      const [name = '', named = ''] = line.slice(3).split(':')
      family = name
      labels = readLabels(named)
      return []
    }
    const texts = expand(line, most)
    return texts.map((text) => ({ text, labels, source, family, weight: 1 / Math.sqrt(texts.length) }))
  })
}

function readLabels(named: string): Labels {
  const words = named.trim().split(' ')
  const unknown = words.filter((word) => word !== 'none' && !isCategory(word.replace('?', '')))
  if (unknown.length > 0) throw new Error(`There are no categories ${unknown.join(', ')}`)
  const known = CONTENT_CATEGORIES.filter((category) => !words.includes(`?${category}`))
  return Object.fromEntries(known.map((category) => [category, words.includes(category) ? 1 : 0]))
}

const isCategory = (word: string): word is ContentCategory =>
  CONTENT_CATEGORIES.some((category) => category === word)

function expand(line: string, most: number): string[] {
  const lists = [...line.matchAll(/\{([^{}]*\|[^{}]*)\}/g)].map(([, list]) => list!.split('|'))
  const count = Math.min(most, Math.max(1, ...lists.map(({ length }) => length)))
  return Array.from({ length: count }, (_, turn) => {
    let place = 0
    return line.replaceAll(/\{([^{}]*\|[^{}]*)\}/g, () => {
      const list = lists[place]!
      return list[(turn + place++) % list.length]!
    })
  })
}
