import type { Logger } from 'pino'
import type { Bus } from '../../db/bus.ts'
import { readCut } from '../../db/chat/chunks.ts'
import type { Store } from '../../db/scope.ts'
import type { AttemptInput } from '../../workflows/run/messages.ts'
import { createReplyFeeds } from './readers.ts'
import type { ReplySpot } from './storing.ts'
import { createReplyWriters } from './writers.ts'

/**
 * The texts of replies on their way from the nodes that write them to those who read along: at once within this process,
 * and through PostgreSQL to others. One for each process, for its API and its worker. The way from a message to its
 * reply is on the page api/docs/guide/how-chats-work.md.
 */
export function createReplies({ store, bus, log }: { store: Store; bus: Bus; log: Logger }) {
  const writers = createReplyWriters({
    store,
    log,
    watcher: bus.id,
    hear: (executionId, piece) => feeds.hear(executionId, piece),
  })
  const feeds = createReplyFeeds({ store, bus, listWaiting: writers.listWaiting })
  bus.onTold((text) => {
    const cut = text === null ? undefined : readCut(text)
    if (cut !== undefined) writers.cut(cut)
  })
  const { open, flush, stop } = writers
  return { open, flush, stop, join: feeds.join, tellEnds: feeds.tellEnds }
}

export type Replies = ReturnType<typeof createReplies>

/** Where the text of an attempt belongs in the reply of its chat; undefined if it is no part of one. */
export function findReplySpot(
  { context, node, agent }: AttemptInput,
  attempt: number,
): ReplySpot | undefined {
  if (context.trigger !== 'CHAT' || !node.reply || agent?.kind === 'task') return undefined
  const { step = 1, settled = [] } = agent ?? {}
  // Between two turns are the tasks of the first one.
  const after = step === 1 ? 0 : step - 1 - settled.length
  return { executionId: context.id, step, attempt, after }
}
