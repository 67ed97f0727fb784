import { useCallback, useEffect, useRef, useState } from 'react'
import { isRefused, Refusal } from '../data/refusal.ts'
import { notifyError } from '../kit/notices.tsx'
import { type Chat, followReply, postMessage, refreshChats, type Sent, writeMessage } from './data.ts'

/**
 * The next message of a chat and the reply to it as it comes: `sent` is what was sent last, and `reply` what has come
 * so far, each null while no reply is being written.
 */
export function useTalk({ id, messages }: Chat) {
  const [text, setText] = useState('')
  const [sent, setSent] = useState<string | null>(null)
  /** The text of the reply so far; null while none is being written. */
  const [reply, setReply] = useState<string | null>(null)
  const tried = useRef<Sent | null>(null)
  const streaming = messages.at(-1)?.status === 'STREAMING' ? messages.at(-1)!.id : null

  const watch = useCallback(async (work: () => Promise<void>) => {
    setReply('')
    try {
      await work()
    } catch (error) {
      notifyError(error)
    }
    await refreshChats()
    setReply(null)
    setSent(null)
  }, [])

  // A reply that was being written when the page was opened.
  const busy = reply !== null
  useEffect(() => {
    if (streaming === null || sent !== null) return
    const left = new AbortController()
    void watch(() =>
      followReply(id, streaming, setReply, left.signal).catch((error) => {
        if (!left.signal.aborted) throw error
      }),
    )
    return () => left.abort()
  }, [id, streaming, sent, watch])

  const send = () => {
    const content = text.trim()
    if (content === '' || busy) return
    setText('')
    setSent(content)
    const message = writeMessage(content, tried.current)
    tried.current = message
    void watch(async () => {
      try {
        await postMessage(id, message, setReply)
        tried.current = null
      } catch (error) {
        // A message that was refused goes back into the field. Without an answer, it may have arrived.
        if (error instanceof Refusal) setText((next) => (next ? `${content}\n${next}` : content))
        if (!isRefused(error, 0)) tried.current = null
        throw error
      }
    })
  }
  // The reply that is being written comes as `reply`.
  const shown = messages.filter((message) => !(message.id === streaming && busy))
  return { text, setText, sent, reply, busy, shown, send }
}
