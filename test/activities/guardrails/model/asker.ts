import { pino } from 'pino'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { createAskModel } from '../../../../activities/guardrails/model/ask.ts'
import { openDatabase } from '../../../../db/connection.ts'

/** A process that asks a team's model once: to be killed while it waits. */
const [url, key, team] = process.argv.slice(2) as [string, string, string]
const { db } = openDatabase(url, { max: 2, name: 'asker' })
const keys = { current: 'k1', byId: new Map([['k1', Buffer.from(key, 'hex')]]) }
const outside = createOutsides({ allowLoopback: true, allow: [] })
const askModel = createAskModel({ store: { db, keys }, outside, log: pino({ level: 'silent' }) })
await askModel({ team, purpose: 'rule', instruction: 'bad', text: 'bad' })
