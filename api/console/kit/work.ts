import { type FormEvent, useState } from 'react'
import { tellError } from '../data/refusal.ts'
import { notify } from './notices.tsx'

type Work<T> = { busy: boolean; result: T | null; error: unknown }

type Options = {
  /** Keeps the result of the work before until the next one ends. */
  keep?: boolean
  onError?: (error: unknown) => void
}

const IDLE = { busy: false, result: null, error: null }

/** Does something when asked: `busy` while it goes on, then `result` is what came of it, or `error` why it was refused. */
export function useWork<T = unknown>({ keep = false, onError }: Options = {}) {
  const [done, setDone] = useState<Work<T>>(IDLE)
  return {
    ...done,
    /** Forgets why the last work was refused. */
    clear: () => setDone((now) => ({ ...now, error: null })),
    async run(work: () => Promise<T>): Promise<void> {
      setDone({ ...IDLE, busy: true, result: keep ? done.result : null })
      try {
        const result = await work()
        setDone({ ...IDLE, result })
      } catch (error) {
        setDone({ ...IDLE, error })
        onError?.(error)
      }
    },
  }
}

/** The same for a form, which is sent one time at once. */
export function useSend(work: () => Promise<unknown>, options?: Options) {
  const { run, ...state } = useWork(options)
  return {
    ...state,
    onSubmit(event: FormEvent) {
      event.preventDefault()
      // Portals pass events on to what is around them in React: a form around this one must not be sent too.
      event.stopPropagation()
      if (!state.busy) void run(work)
    },
  }
}

type Tested = { status: 'SUCCESS' | 'FAILED'; message: string }

/** The same for the buttons of a row: what goes wrong is told in a notice, with the row's name. */
export function useRowWork(name: string) {
  const tell = (text: string, fine: boolean) => notify(`${name}: ${text}`, fine ? 'good' : 'bad')
  const { busy, run } = useWork<void>({ onError: (error) => tell(tellError(error), false) })
  return {
    busy,
    run,
    /** Tells how a test ended. */
    test: (work: () => Promise<Tested>) =>
      run(async () => {
        const { status, message } = await work()
        tell(message, status === 'SUCCESS')
      }),
  }
}
