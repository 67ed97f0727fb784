import { sql } from 'kysely'
import type { Tx } from '../connection.ts'

/** The title of a session until it is cut from its first message. */
export const NO_TITLE = 'New chat'

const TITLE_LENGTH = 60

/**
 * Cuts the titles of sessions anew from the first messages that they still have. A title that a user has given stays. A
 * title repeats a message, so it goes with the message.
 */
export async function cutTitlesAnew(tx: Tx, sessionIds: string[]): Promise<void> {
  const { rows } = await sql<{ id: string; content: string | null }>`
    select s.id, (select m.content from agent_chat_messages m where m.session_id = s.id and m.role = 'user'
      order by m.seq limit 1) as content
    from agent_chat_sessions s where s.id = any(${sessionIds}::uuid[]) and s.untitled`.execute(tx)
  for (const { id, content } of rows)
    await tx
      .updateTable('agentChatSessions')
      .set({ title: content === null ? NO_TITLE : cutTitle(content) })
      .where('id', '=', id)
      .execute()
}

/** The first line of a message that says something, cut at the end of a word. */
export function cutTitle(content: string): string {
  const line = content
    .split('\n')
    .map((text) => text.replace(/\s+/gu, ' ').trim())
    .find((text) => text !== '')
  if (line === undefined) return NO_TITLE
  const characters = [...line]
  if (characters.length <= TITLE_LENGTH) return line
  const cut = characters.slice(0, TITLE_LENGTH - 1).join('')
  const space = cut.lastIndexOf(' ')
  return `${(space > TITLE_LENGTH / 2 ? cut.slice(0, space) : cut).trimEnd()}…`
}
