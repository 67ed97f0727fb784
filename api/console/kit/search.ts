import { useState } from 'react'

const PAUSE_MS = 200

/**
 * The typed text, and a while after it the search itself: `value` is the search of the address. `isAhead` is true while
 * the typed text has not been searched for yet.
 */
export function useSearch(value: string, onSettle: (text: string) => void) {
  const [typed, setTyped] = useState<{ text: string; for: string } | null>(null)
  const [timer, setTimer] = useState<ReturnType<typeof setTimeout>>()
  const follow = (text: string) => {
    setTyped({ text, for: value })
    clearTimeout(timer)
    setTimer(setTimeout(() => onSettle(text), PAUSE_MS))
  }
  // What the address says counts again once it has changed by other means.
  const text = typed && (typed.for === value || typed.text === value) ? typed.text : value
  return { text, follow, isAhead: text !== value }
}
