import pino from 'pino'
import { createOutsides } from '../../../../activities/egress/outside.ts'
import { openDatabase } from '../../../../db/connection.ts'
import { startForwarding } from '../../../../worker/service/audit/forwarding.ts'

/** A process that does nothing but send, until it is killed: `node sender.ts <database URL> <master key in hex>`. */
const [url = '', key = ''] = process.argv.slice(2)
const { db } = openDatabase(url, { max: 3, name: 'sender' })
const store = { db, keys: { current: 'k1', byId: new Map([['k1', Buffer.from(key, 'hex')]]) } }
const outside = createOutsides({ allowLoopback: true, allow: [] })
const log = pino({ level: 'silent' })
startForwarding({ store, outside, host: 'sender', log }, { everyMs: 50, leaseMs: 2_000 })
