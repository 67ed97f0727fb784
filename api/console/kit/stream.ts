import { useEffect, useRef } from 'react'
import { addressOf } from '../data/client.ts'

type StreamOptions = {
  /** The events that are listened to. */
  events: readonly string[]
  /** Called for each event, in bursts of at most one in `burstMs` where only `onNews` is given. */
  onEvent?: (name: string, data: string) => void
  /** Called when there is something new to read, and each `pollMs` while there is no stream. */
  onNews?: () => void
  /** The event that ends the stream. */
  end?: string
  burstMs?: number
  pollMs?: number
}

const BURST_MS = 150
const POLL_MS = 5_000

/**
 * Listens to the server's events at `path` (null: to none) with the session's cookie. The browser connects again by
 * itself; while there is no stream, `onNews` is called from time to time, so that readers poll. A hidden page has no
 * stream: a browser has but few connections to a service.
 */
export function useStream(path: string | null, options: StreamOptions): void {
  const latest = useRef(options)
  useEffect(() => {
    latest.current = options
  })
  const names = options.events.join(' ')
  useEffect(() => {
    if (path === null) return
    const { end, burstMs = BURST_MS, pollMs = POLL_MS } = latest.current
    let source: EventSource | undefined
    let over = false
    let waiting: ReturnType<typeof setTimeout> | undefined
    const tell = () => {
      waiting ??= setTimeout(() => {
        waiting = undefined
        latest.current.onNews?.()
      }, burstMs)
    }
    const open = () => {
      const opened = new EventSource(addressOf(path))
      for (const name of names.split(' ')) {
        opened.addEventListener(name, (event) => {
          latest.current.onEvent?.(name, String((event as MessageEvent).data))
          tell()
          if (name !== end) return
          over = true
          opened.close()
        })
      }
      opened.addEventListener('error', tell)
      return opened
    }
    const follow = () => {
      if (over) return
      if (document.hidden) {
        source?.close()
        source = undefined
      } else if (!source || source.readyState === EventSource.CLOSED) {
        source = open()
        tell()
      }
    }
    const poll = setInterval(() => {
      if (over || document.hidden || source?.readyState === EventSource.OPEN) return
      latest.current.onNews?.()
      // A stream that was refused is not opened again by the browser.
      follow()
    }, pollMs)
    document.addEventListener('visibilitychange', follow)
    follow()
    return () => {
      source?.close()
      clearInterval(poll)
      clearTimeout(waiting)
      document.removeEventListener('visibilitychange', follow)
    }
  }, [path, names])
}
