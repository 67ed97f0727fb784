import { type FormEvent, useState } from 'react'

/** Sends a form, one time at once. `error` is why the last try was refused; `clear` forgets it. */
export function useSend(work: () => Promise<unknown>) {
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const send = async () => {
    if (busy) return
    setBusy(true)
    setError(null)
    try {
      await work()
    } catch (refused) {
      setError(refused)
    } finally {
      setBusy(false)
    }
  }
  return {
    error,
    busy,
    clear: () => setError(null),
    onSubmit(event: FormEvent) {
      event.preventDefault()
      // Portals pass events on to what is around them in React: a form around this one must not be sent too.
      event.stopPropagation()
      void send()
    },
  }
}
