import { addressOf, api, askRaw, keepRows, read } from '../data/client.ts'
import { Refusal } from '../data/refusal.ts'
import { resource } from '../data/resource.ts'
import { makeKey } from '../executions/starts/data.ts'

const { refresh, useRead, write } = resource('chats')

const { sessions } = api.api['agent-chat']

async function listChats(teamId: string, search: string, page: number) {
  return read(sessions.$get({ query: { teamId, page: String(page), ...(search ? { search } : {}) } }))
}

export function useChats(teamId: string, search: string, page: number) {
  return useRead([teamId, search, page], () => listChats(teamId, search, page), keepRows)
}

async function readChat(id: string) {
  return read(sessions[':id'].$get({ param: { id } }))
}

export type Chat = Awaited<ReturnType<typeof readChat>>
export type Message = Chat['messages'][number]

export function useChat(id: string) {
  return useRead(['one', id], () => readChat(id), { enabled: id !== '' })
}

export async function createChat(teamId: string, workflowId: string) {
  return write(read(sessions.$post({ json: { teamId, workflowId } })))
}

export async function deleteChat(id: string) {
  return write(read(sessions[':id'].$delete({ param: { id } })))
}

export async function stopReply(id: string) {
  return read(sessions[':id'].stop.$post({ param: { id } }))
}

/** Reads the chat anew, and the list in which its title and time may have changed. */
export async function refreshChats() {
  await refresh()
}

type Told =
  | { type: 'chunk'; content: string }
  | { type: 'reset' | 'done' }
  | { type: 'error'; message: string }

/** A message, and the key by which the service knows it again if it is sent once more. */
export type Sent = { content: string; key: string }

/** The message to send, under the key of `before` if that was the same: it may have arrived already. */
export function writeMessage(content: string, before: Sent | null): Sent {
  if (before?.content === content) return before
  return { content, key: makeKey() }
}

/**
 * Posts a message, and calls `onText` with all text of the reply so far, as it comes. Throws what ends it early: a
 * Refusal if the message was not taken.
 */
export async function postMessage(id: string, { content, key }: Sent, onText: (text: string) => void) {
  const path = `/api/agent-chat/sessions/${id}/messages?resets=1`
  await readReply(await askRaw('POST', path, { content }, { 'Idempotency-Key': key }), onText)
}

/** The same for a reply that is being written already. */
export async function followReply(
  id: string,
  messageId: string,
  onText: (text: string) => void,
  signal: AbortSignal,
) {
  const path = `/api/agent-chat/sessions/${id}/messages/${messageId}/stream?resets=1`
  const answer = await fetch(addressOf(path), { cache: 'no-store', signal })
  if (!answer.ok) throw new Refusal(answer.status, `The service responded with ${answer.status}`)
  await readReply(answer, onText)
}

async function readReply(answer: Response, onText: (text: string) => void): Promise<void> {
  let text = ''
  for await (const told of readEvents(answer)) {
    if (told.type === 'done') return
    if (told.type === 'error') throw new Error(told.message)
    text = told.type === 'chunk' ? text + told.content : ''
    onText(text)
  }
}

/** The events of a reply: each is some lines, of which `data:` has the JSON, and a blank line. */
async function* readEvents(answer: Response): AsyncGenerator<Told> {
  if (!answer.body) return
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const blocks = (rest + value).split(/\r?\n\r?\n/)
    rest = blocks.pop()!
    for (const block of blocks) {
      const data = block.split(/\r?\n/).find((line) => line.startsWith('data:'))
      if (data) yield JSON.parse(data.slice(5)) as Told
    }
  }
}
