import pg from 'pg'

type Sent = { application: string | undefined; text: string }

/** What is noted of the statements of this process; undefined while none are. */
let noted: Sent[] | undefined

// For all connections of this process that are made from now on: they keep the function that they find at their start.
const { query } = pg.Client.prototype as { query: (...args: unknown[]) => unknown }
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  const [first] = args
  const text = typeof first === 'string' ? first : (first as { text: string }).text
  const { connectionParameters } = this as unknown as Record<'connectionParameters', Record<string, string>>
  noted?.push({ application: connectionParameters.application_name, text: text.replace(/\s+/g, ' ').trim() })
  return query.apply(this, args)
} as typeof pg.Client.prototype.query

/**
 * The statements that the pool of this name sends while `work` is done. Only of connections that were made after this
 * file was imported.
 */
export async function listStatements(application: string, work: () => Promise<unknown>): Promise<string[]> {
  const list: Sent[] = []
  noted = list
  try {
    await work()
  } finally {
    noted = undefined
  }
  return list.filter((sent) => sent.application === application).map(({ text }) => text)
}
