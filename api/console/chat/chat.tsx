import './chat.css'
import { type FormEvent, type KeyboardEvent, useEffect, useRef } from 'react'
import { useParams } from 'wouter'
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
import { type Chat, deleteChat, type Message, stopReply, useChat } from './data.ts'
import { ChatSteps } from './steps.tsx'
import { useTalk } from './talk.ts'

/** One chat: its messages, the reply as it comes, and the next message. */
export function ChatPage() {
  const { id = '' } = useParams<{ id: string }>()
  const found = useChat(id)
  return <Loaded query={found}>{(chat) => <Conversation key={id} chat={chat} />}</Loaded>
}

function Conversation({ chat }: { chat: Chat }) {
  const { id, messages } = chat
  const talk = useTalk(chat)
  const { sent, reply, busy, shown } = talk
  const remove = useRemoval(id)
  const end = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is new is shown
  useEffect(() => {
    end.current?.scrollIntoView({ block: 'nearest' })
  }, [messages.length, reply, sent])

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
        <Next id={id} talk={talk} />
      </div>
    </>
  )
}

/** Where the next message is written, or the reply stopped. */
function Next({ id, talk }: { id: string; talk: ReturnType<typeof useTalk> }) {
  const { text, setText, busy, send } = talk
  const submit = (event: FormEvent) => {
    event.preventDefault()
    send()
  }
  const key = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
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
  )
}

function useRemoval(id: string): () => void {
  const confirm = useConfirm()
  return () =>
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
      {role === 'assistant' && status !== 'STREAMING' && <ChatSteps executionId={executionId} />}
    </article>
  )
}
