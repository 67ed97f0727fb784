import { type FormEvent, type KeyboardEvent, useCallback, useEffect, useRef, useState } from 'react'
import { useParams } from 'wouter'
import { isRefused, Refusal } from '../data/refusal.ts'
import { ExecutionLink } from '../executions/list.tsx'
import { go } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { TextArea } from '../kit/controls/input.tsx'
import { PageHeader } from '../kit/header.tsx'
import { notifyError } from '../kit/notices.tsx'
import { useConfirm } from '../kit/overlays/confirm.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { Age } from '../kit/time.tsx'
import {
  type Chat,
  deleteChat,
  followReply,
  type Message,
  postMessage,
  refreshChats,
  type Sent,
  stopReply,
  useChat,
  writeMessage,
} from './data.ts'
import './chat.css'
import { Steps } from './steps.tsx'

/** One chat: its messages, the reply as it comes, and the next message. */
export function ChatPage() {
  const { id = '' } = useParams<{ id: string }>()
  const found = useChat(id)
  return <Loaded query={found}>{(chat) => <Conversation key={id} chat={chat} />}</Loaded>
}

function Conversation({ chat }: { chat: Chat }) {
  const { id, messages } = chat
  const confirm = useConfirm()
  const [text, setText] = useState('')
  const [sent, setSent] = useState<string | null>(null)
  /** What has come of the reply; null while none is being written. */
  const [reply, setReply] = useState<string | null>(null)
  const tried = useRef<Sent | null>(null)
  const end = useRef<HTMLDivElement>(null)
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

  // biome-ignore lint/correctness/useExhaustiveDependencies: what is new is shown
  useEffect(() => {
    end.current?.scrollIntoView({ block: 'nearest' })
  }, [messages.length, reply, sent])

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
        // What was not taken is not lost. Without an answer, it may have been.
        if (error instanceof Refusal) setText((next) => (next ? `${content}\n${next}` : content))
        if (!isRefused(error, 0)) tried.current = null
        throw error
      }
    })
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    send()
  }
  const key = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  const remove = () =>
    confirm({
      title: 'Delete this chat?',
      text: 'All of its messages, and the executions that replied, are deleted. This cannot be undone.',
      label: 'Delete the chat',
      danger: true,
      work: async () => {
        await deleteChat(id)
        go('/chat')
      },
    })

  const shown = messages.filter((message) => !(message.id === streaming && busy))
  return (
    <>
      <PageHeader title={chat.title || 'New chat'} crumbs={[['Chat', '/chat']]}>
        <Button look="danger" onClick={remove}>
          Delete
        </Button>
      </PageHeader>
      <div className="chat">
        <section className="messages" aria-label="Messages">
          {shown.length === 0 && !busy && (
            <Empty title="Say something" text="The workflow replies as its agent does." />
          )}
          {shown.map((message) => (
            <Said key={message.id} message={message} />
          ))}
          {sent !== null && (
            <article className="message user">
              <p className="said">{sent}</p>
            </article>
          )}
          {busy && (
            <article className="message assistant" aria-label="The reply, as it comes">
              <p className="said">{reply || <span className="quiet">Thinking…</span>}</p>
            </article>
          )}
          <div ref={end} />
        </section>
        <form className="next" onSubmit={submit}>
          <Field label="Message" help="Enter sends, Shift+Enter begins a new line.">
            <TextArea value={text} onChange={setText} rows={3} maxLength={100_000} onKeyDown={key} />
          </Field>
          <div className="row">
            {busy ? (
              <Button icon="stop" onClick={() => void stopReply(id).catch(notifyError)}>
                Stop the reply
              </Button>
            ) : (
              <Button type="submit" look="primary" disabled={text.trim() === ''}>
                Send
              </Button>
            )}
          </div>
        </form>
      </div>
    </>
  )
}

function Said({ message }: { message: Message }) {
  const { role, content, status, error, executionId, tokenUsage, createdAt } = message
  return (
    <article className={`message ${role}`}>
      {content && <p className="said">{content}</p>}
      {status === 'FAILED' && <p className="failure">{error ?? 'No reply came'}</p>}
      {status === 'STOPPED' && <p className="quiet">Stopped here</p>}
      {role === 'assistant' && (
        <footer className="quiet row">
          <Age at={createdAt} />
          {tokenUsage && (
            <span>
              {tokenUsage.input.toLocaleString()} + {tokenUsage.output.toLocaleString()} tokens
            </span>
          )}
          <ExecutionLink id={executionId} />
        </footer>
      )}
      {role === 'assistant' && status !== 'STREAMING' && <Steps executionId={executionId} />}
    </article>
  )
}
