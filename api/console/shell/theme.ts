import { useState } from 'react'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEPT = 'perdure.theme'

/** The theme, kept in the browser; index.html sets it before the first paint. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(() => (document.documentElement.dataset.theme ?? 'system') as Theme)
  return [
    theme,
    (next) => {
      document.documentElement.dataset.theme = next
      keep(KEPT, next)
      setTheme(next)
    },
  ]
}

/** Browsers may refuse to keep anything; then it lasts as long as the page. */
export function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value)
  } catch {}
}

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}
