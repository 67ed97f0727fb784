import type pg from 'pg'

/** The setting that makes triggers say to a connection what it changes (migration 0102). */
export const HEAR_CHANGES = 'set perdure.hears = on'

const CHANGED = 'perdure changed'

/**
 * Calls `hear` with what the connection has changed of that which processes keep in memory: right after its commit, before
 * the one who committed goes on.
 */
export function watchOwnChanges(client: pg.PoolClient, hear: (text: string) => void): void {
  const changes = new Set<string>()
  let undone = false
  const tell = () => {
    const told = [...changes]
    changes.clear()
    if (!undone) for (const text of told) hear(text)
  }
  const { connection } = client as unknown as { connection: NodeJS.EventEmitter }
  client.on('notice', ({ message, detail }) => {
    if (message === CHANGED && detail) changes.add(detail)
  })
  connection.on('commandComplete', ({ text }: { text: string }) => {
    undone = text === 'ROLLBACK'
  })
  // Before pg itself hears of it, and lets the caller go on. Within a transaction the status is another one.
  connection.prependListener('readyForQuery', ({ status }: { status: string }) => {
    if (status === 'I') tell()
  })
  client.on('end', () => {
    // Whether a commit that was under way succeeded is not known.
    undone = false
    tell()
  })
}
