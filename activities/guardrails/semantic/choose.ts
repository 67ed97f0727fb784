import { listViews, type TextView } from '../../../db/detection/views.ts'
import type { LinearModel } from '../linear.ts'
import { cutSentences, type MeaningWindow } from './windows.ts'
import { collectWords, scoreWords, shareWords } from './words.ts'

/** How many characters of windows are compared of a text: about two seconds of a processor. */
const BUDGET = 12_000
/** Which share of that goes to windows at even distances, whatever they say. */
const EVEN_SHARE = 0.4

/** All windows of a text's readings, each only once; their places are in the text itself. */
export function listMeaningWindows(text: string): MeaningWindow[] {
  const seen = new Set<string>()
  const windows: MeaningWindow[] = []
  // What the plain reading says, the folded one says too.
  for (const view of listViews(text).filter(({ kind }) => kind !== 'plain'))
    for (const window of readWindows(view)) {
      if (seen.has(window.text)) continue
      seen.add(window.text)
      windows.push(window)
    }
  return windows
}

function readWindows(view: TextView): MeaningWindow[] {
  return cutSentences(view.text).map((window) => ({ ...view.origin(window), text: window.text }))
}

/**
 * The windows that are compared, in their order. If there are too many: some at even distances from the beginning to the
 * end, and of all others those whose words are most like the words of attacks and of the team's own exemplars.
 */
export function chooseWindows(
  windows: MeaningWindow[],
  words: LinearModel,
  exemplars: readonly string[],
): MeaningWindow[] {
  let left = BUDGET
  if (measure(windows) <= left) return windows
  const chosen = new Set<MeaningWindow>()
  const take = (wanted: readonly MeaningWindow[], upTo: number) => {
    for (const window of wanted) {
      if (chosen.has(window)) continue
      if (left - window.text.length < upTo) return
      left -= window.text.length
      chosen.add(window)
    }
  }
  const even = Math.floor((BUDGET * EVEN_SHARE) / (measure(windows) / windows.length))
  take(spread(windows, even), BUDGET * (1 - EVEN_SHARE))
  const own = collectWords(exemplars)
  if (own.size > 0)
    take(
      rank(windows, (text) => shareWords(text, own)),
      left / 2,
    )
  take(
    rank(windows, (text) => scoreWords(text, words)),
    0,
  )
  return windows.filter((window) => chosen.has(window))
}

const measure = (windows: readonly MeaningWindow[]) => windows.reduce((sum, { text }) => sum + text.length, 0)

function spread(windows: readonly MeaningWindow[], count: number): MeaningWindow[] {
  return Array.from({ length: count }, (_, at) => windows[Math.floor(((at + 0.5) * windows.length) / count)]!)
}

/** The windows with the highest score first, those with the same in their order. */
function rank(windows: readonly MeaningWindow[], score: (text: string) => number): MeaningWindow[] {
  const scored = windows.map((window) => ({ window, score: score(window.text) }))
  return scored.sort((a, b) => b.score - a.score).map(({ window }) => window)
}
