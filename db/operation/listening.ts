import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/** One connection that listens, until it is lost. */
export type Connection = {
  /**
   * Sends a query after the one before has ended: pg will no longer let them wait inside a client. A function is asked for
   * the values when the query is sent.
   */
  ask<Row extends pg.QueryResultRow>(
    text: string,
    values?: unknown[] | (() => unknown[]),
  ): Promise<pg.QueryResult<Row>>
}

type Options = {
  name: string
  channels: string[]
  hear: (channel: string, payload: string | undefined) => void
  /** Called with each new connection. If it rejects, the connection is given up. */
  begin: (connection: Connection) => Promise<void>
  /** Called every `refreshMs`. If it rejects, the connection is given up. */
  refresh: (connection: Connection) => Promise<void>
  refreshMs: number
  onLost: ((error: unknown) => void) | undefined
}

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 5_000
const QUERY_TIMEOUT_MS = 10_000
const STOP_MS = 1_000

/** How old the proof that the connection hears may become, where it is used, before there is another one. */
const PROOF_MS = 250

/** If the clock has gained so much on performance.now(), the machine was asleep. */
const ASLEEP_MS = 500

/** What the functions below share. */
type State = {
  url: string
  options: Options
  stopping: AbortController
  /** The connection that listens, and what gives it up; undefined while it is lost. */
  current: { connection: Connection; client: pg.Client; giveUp: (error: unknown) => void } | undefined
  /** When the latest query was sent to which there was a response: what was told before has been heard. */
  heardUntil: number
  /** How far the clock was ahead of performance.now() then, which stands still while the machine sleeps. */
  ahead: number
  /** The connection that is being asked whether it still hears. */
  proving: Connection | undefined
}

/** Listens to channels of PostgreSQL over a connection of its own, for as long as it is not stopped. */
export type Hearing = {
  /** The connection of now; undefined while it is lost. */
  current(): Connection | undefined
  /** Gives a connection up that does not work, so that the next one is made. */
  giveUp(connection: Connection, error: unknown): void
  /**
   * Until when all that was told has been heard, in performance.now(): -Infinity while there is no connection, and after the
   * machine has slept. If that is a while ago, PostgreSQL is asked in the background.
   */
  heardUntil(): number
  /** Aborted when it begins to stop. */
  stopping: AbortSignal
  /** Ends it; `leave` is called with the connection if there is one. */
  stop(leave: (connection: Connection) => Promise<unknown>): Promise<void>
}

/**
 * Connects in the background, and reconnects for as long as it takes whenever the connection is lost; `onLost` gets the
 * error each time. It needs a session of its own, so no transaction pooler in between.
 */
export function openListening(url: string, options: Options): Hearing {
  const state: State = {
    url,
    options,
    stopping: new AbortController(),
    current: undefined,
    heardUntil: Number.NEGATIVE_INFINITY,
    ahead: 0,
    proving: undefined,
  }
  const connected = stayConnected(state)
  return {
    stopping: state.stopping.signal,
    current: () => state.current?.connection,
    giveUp(connection, error) {
      if (state.current?.connection === connection) state.current.giveUp(error)
    },
    heardUntil() {
      const now = performance.now()
      const hasSlept = Date.now() - now > state.ahead + ASLEEP_MS
      if (hasSlept || now - state.heardUntil > PROOF_MS) void prove(state)
      return hasSlept ? Number.NEGATIVE_INFINITY : state.heardUntil
    },
    async stop(leave) {
      state.stopping.abort()
      // A connect that the server never responds to must not hold up the stop.
      await Promise.race([connected, sleep(STOP_MS, undefined, { ref: false })])
      const { current } = state
      lose(state)
      if (!current) return
      await leave(current.connection).catch(() => {})
      await current.client.end().catch(() => {})
    },
  }
}

/** Keeps a connection until it is stopped: whenever it is lost, the next one follows after a growing pause. */
async function stayConnected(state: State): Promise<void> {
  const { options, stopping } = state
  let pause = FIRST_PAUSE_MS
  while (!stopping.signal.aborted) {
    const lost = new AbortController()
    const giveUp = (error: unknown) => lost.abort(error)
    let client: pg.Client | undefined
    try {
      client = await connect(state, giveUp)
      const connection = createConnection(state, client)
      state.current = { connection, client, giveUp }
      await options.begin(connection)
      pause = FIRST_PAUSE_MS
      const signal = AbortSignal.any([lost.signal, stopping.signal])
      for (;;) {
        await sleep(options.refreshMs, undefined, { signal })
        await options.refresh(connection)
      }
    } catch (error) {
      if (stopping.signal.aborted) return
      options.onLost?.(lost.signal.reason ?? error)
    }
    lose(state)
    void client?.end().catch(() => {})
    await sleep(pause * (0.5 + Math.random()), undefined, { signal: stopping.signal }).catch(() => {})
    pause = Math.min(MAX_PAUSE_MS, pause * 2)
  }
}

function lose(state: State): void {
  state.current = undefined
  state.heardUntil = Number.NEGATIVE_INFINITY
}

async function connect({ url, options }: State, onLost: (error: unknown) => void): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: `${options.name} bus`,
    connectionTimeoutMillis: 5_000,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
  })
  client.on('error', onLost)
  client.on('end', () => onLost(new Error('The connection ended')))
  client.on('notification', ({ channel, payload }) => options.hear(channel, payload))
  try {
    await client.connect()
    await client.query(options.channels.map((channel) => `listen ${channel}`).join('; '))
  } catch (error) {
    void client.end().catch(() => {})
    throw error
  }
  return client
}

function createConnection(state: State, client: pg.Client): Connection {
  let asked: Promise<unknown> = Promise.resolve()
  const connection: Connection = {
    ask<Row extends pg.QueryResultRow>(text: string, values: unknown[] | (() => unknown[]) = []) {
      const answer = asked.then(async () => {
        const sentAt = performance.now()
        const ahead = Date.now() - sentAt
        const result = await client.query<Row>(text, typeof values === 'function' ? values() : values)
        // PostgreSQL sends what was told before along with its response.
        if (state.current?.connection === connection) Object.assign(state, { heardUntil: sentAt, ahead })
        return result
      })
      asked = answer.catch(() => {})
      return answer
    },
  }
  return connection
}

async function prove(state: State): Promise<void> {
  const { current } = state
  if (!current || state.proving === current.connection) return
  state.proving = current.connection
  await current.connection.ask('select').catch(current.giveUp)
  if (state.proving === current.connection) state.proving = undefined
}
