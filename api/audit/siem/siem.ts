import { Hono } from 'hono'
import * as v from 'valibot'
import { writeCef } from '../../../activities/audit/siem/cef.ts'
import { nameSender } from '../../../activities/audit/siem/describe.ts'
import { toEcs } from '../../../activities/audit/siem/ecs.ts'
import { writeSyslog } from '../../../activities/audit/siem/syslog.ts'
import type { AuditEntryView } from '../../../db/audit/list.ts'
import {
  openSiemExport,
  peekSiemExport,
  SIEM_FORMATS,
  type SiemExport,
  type SiemFormat,
} from '../../../db/audit/siem/pull.ts'
import type { ApiDeps, AppEnv } from '../../env.ts'
import { accept } from '../../http/accept.ts'
import { streamParts, type WriteNext } from '../../http/download.ts'
import { InTeam } from '../../http/fields.ts'
import { checkTimeRange, queryInteger, timeRange } from '../../http/query.ts'
import { idSchema, timeSchema } from '../../http/responses.ts'

/** How a format is written: `open` and `close` stand around the entries, `between` between two of them. */
type Writing = {
  type: string
  open: string
  between: string
  close: string
  write: (entry: AuditEntryView, host: string) => string
}

const LINES = { type: 'text/plain; charset=utf-8', open: '', between: '', close: '' }

const WRITINGS: Record<SiemFormat, Writing> = {
  json: {
    type: 'application/json',
    open: '[',
    between: ',\n',
    close: ']\n',
    write: (entry, host) => JSON.stringify(toEcs(entry, host)),
  },
  syslog: { ...LINES, write: (entry, host) => `${writeSyslog(entry, host, 'space')}\n` },
  cef: { ...LINES, write: (entry, host) => `${writeCef(entry, host)}\n` },
}

const SiemParams = v.pipe(
  v.object({
    format: v.optional(v.picklist(SIEM_FORMATS, `must be one of ${SIEM_FORMATS.join(', ')}`), 'json'),
    ...timeRange,
    limit: v.pipe(
      v.optional(queryInteger(1, 100_000), '10000'),
      v.description('At most this many entries: the first ones with `from` or `after`, else the newest'),
    ),
    after: v.pipe(
      v.optional(queryInteger(0, Number.MAX_SAFE_INTEGER)),
      v.description('Only entries behind the one with this number: `X-Next-After` of the answer before'),
    ),
  }),
  checkTimeRange(),
)

const EcsSchema = v.pipe(
  v.looseObject({
    '@timestamp': timeSchema,
    event: v.looseObject({
      id: idSchema,
      sequence: v.pipe(v.number(), v.integer(), v.description('The number of the entry in its chain')),
      action: v.string(),
      category: v.array(v.string()),
      type: v.array(v.string()),
      outcome: v.picklist(['success', 'failure']),
    }),
    organization: v.object({ id: v.pipe(idSchema, v.description('The team')) }),
    perdure: v.looseObject({
      outcome: v.string(),
      details: v.unknown(),
      hash: v.string(),
      prev_hash: v.string(),
    }),
  }),
  v.title('AuditEvent'),
)

/** The route by which a SIEM fetches a team's audit entries. */
export function createSiemRoutes({ publicUrl }: Pick<ApiDeps, 'publicUrl'>) {
  const host = nameSender(publicUrl)
  return new Hono<AppEnv>().get(
    '/api/audit/team/:teamId/siem',
    accept({
      id: 'readAuditForSiem',
      tag: 'Audit',
      summary: "Read a team's audit entries for a SIEM",
      description:
        'Always oldest first. `json` is one array, with the field names of the Elastic Common Schema. `syslog` is one ' +
        'message of RFC 5424 a line, with the fields as structured data and the details as JSON behind it. `cef` is one ' +
        'event of CEF:0 a line. In lines of syslog and in headers of CEF a line break within a value is one space, in ' +
        'extensions of CEF it is `\\n`. Ask with `after` for what came since. The request is an entry itself, which the ' +
        'next answer has. The connection is cut if the answer cannot be completed, or if the client reads nothing for 30 s.',
      role: 'ADMIN',
      params: InTeam,
      query: SiemParams,
      responses: {
        200: {
          description: 'The entries',
          schema: v.array(EcsSchema),
          texts: ['text/plain'],
          headers: {
            'X-Next-After': 'The `after` for the next request: the number of the last entry of this answer',
          },
        },
      },
    }),
    async (c) => {
      const { teamId } = c.req.valid('param')
      const query = c.req.valid('query')
      const writing = WRITINGS[query.format]
      const headers = (next: number) => ({ 'Content-Type': writing.type, 'X-Next-After': String(next) })
      // HEAD sends no data, so there is no audit entry.
      if (c.req.method === 'HEAD')
        return c.body(null, 200, headers(await peekSiemExport(c.get('scope'), teamId, query)))
      const found = await openSiemExport(c.get('scope'), teamId, query)
      const body = streamParts(c, writeEntries(found, writing, host), () => found.pieces.return(undefined))
      return c.body(body, 200, headers(found.next))
    },
  )
}

/** How many entries are written at once: an entry may have 32 KB of details. */
const AT_ONCE = 50

function writeEntries({ pieces }: SiemExport, writing: Writing, host: string): WriteNext {
  let before = writing.open
  let rest: AuditEntryView[] = []
  return async (put) => {
    if (rest.length === 0) {
      const piece = await pieces.next()
      if (piece.done) {
        put((before === writing.open ? writing.open : '') + writing.close)
        return false
      }
      rest = piece.value
    }
    for (const entry of rest.splice(0, AT_ONCE)) {
      put(before + writing.write(entry, host))
      before = writing.between
    }
    return true
  }
}
