import { useSyncExternalStore } from 'react'
import { tellError } from '../data/refusal.ts'
import './states.css'

type Notice = { id: number; text: string; bad: boolean }

let notices: readonly Notice[] = []
let made = 0
const readers = new Set<() => void>()

/** A short message that goes away by itself; read out by screen readers. */
export function notify(text: string, kind: 'good' | 'bad' = 'good'): void {
  // A notice that a polling page repeats is shown once.
  if (notices.at(-1)?.text === text) return
  made += 1
  const notice = { id: made, text, bad: kind === 'bad' }
  show([...notices, notice])
  setTimeout(() => show(notices.filter((one) => one !== notice)), notice.bad ? 8_000 : 4_000)
}

export function notifyError(error: unknown): void {
  notify(tellError(error), 'bad')
}

function show(next: readonly Notice[]): void {
  notices = next
  for (const tell of readers) tell()
}

/** Where notices stand; the shell has it once. */
export function Notices() {
  const shown = useSyncExternalStore(
    (tell) => {
      readers.add(tell)
      return () => readers.delete(tell)
    },
    () => notices,
  )
  return (
    <div id="notices" role="status" aria-live="polite">
      {shown.map(({ id, text, bad }) => (
        <div key={id} className={bad ? 'notice bad' : 'notice'}>
          {text}
        </div>
      ))}
    </div>
  )
}
