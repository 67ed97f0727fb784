import { pino } from 'pino'
import { createOutsides } from '../../../activities/egress/outside.ts'
import { createMailer } from '../../../activities/mail/smtp.ts'
import { openDatabase } from '../../../db/connection.ts'
import { startScheduledReports } from '../../../worker/service/monitoring/reports.ts'
import { LOCAL } from '../servers/loopback.ts'

// A process that sends scheduled reports until it is killed: its arguments are a database and a port of SMTP.
const [url = '', port] = process.argv.slice(2)
const { db } = openDatabase(url, { max: 2, name: 'sender' })
const keys = { current: 'one', byId: new Map([['one', Buffer.alloc(32)]]) }
const store = { db, keys, mailDomains: 'any' as const }
const login = {
  host: '127.0.0.1',
  port: Number(port),
  tls: 'never',
  auth: undefined,
  from: 'p@example.com',
} as const
const log = pino({ level: process.env.TEST_LOG ?? 'silent' })
const deps = {
  store,
  outside: createOutsides(LOCAL),
  mailer: createMailer(login),
  publicUrl: 'http://x.example.com',
  log,
}
startScheduledReports(deps)
