import { useCallback, useState } from 'react'
import { tellError } from '../data/refusal.ts'
import { notify } from './notices.tsx'

type Tried<T> = { busy: boolean; result: T | null; error: unknown }

/**
 * Tries something out: `result` is its result, or `error` why it was refused. The result of the try before goes when
 * the next one begins; with `keep` it stays until that one ends.
 */
export function useTrial<T>({ keep = false } = {}) {
  const [tried, setTried] = useState<Tried<T>>({ busy: false, result: null, error: null })
  const run = useCallback(
    async (work: () => Promise<T>) => {
      setTried((before) => ({ busy: true, result: keep ? before.result : null, error: null }))
      try {
        const result = await work()
        setTried({ busy: false, result, error: null })
      } catch (error) {
        setTried({ busy: false, result: null, error })
      }
    },
    [keep],
  )
  return { ...tried, run: (work: () => Promise<T>) => void run(work) }
}

type Tested = { status: 'SUCCESS' | 'FAILED'; message: string }

/** What the buttons of a row do, such as a test: one at a time, and what goes wrong is told with the row's name. */
export function useRowWork(name: string) {
  const [busy, setBusy] = useState(false)
  const run = async (work: () => Promise<void>) => {
    setBusy(true)
    try {
      await work()
    } catch (error) {
      notify(`${name}: ${tellError(error)}`, 'bad')
    } finally {
      setBusy(false)
    }
  }
  return {
    busy,
    run: (work: () => Promise<void>) => void run(work),
    /** Tells how a test ended. */
    test: (work: () => Promise<Tested>) =>
      void run(async () => {
        const { status, message } = await work()
        notify(`${name}: ${message}`, status === 'SUCCESS' ? 'good' : 'bad')
      }),
  }
}
