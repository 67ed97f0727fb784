import { Hono } from 'hono'
import * as v from 'valibot'
import { openAuditExport } from '../../db/audit/export/export.ts'
import { demandTeam } from '../../db/scope.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { streamParts } from '../http/download.ts'
import { InTeam } from '../http/fields.ts'
import { queryInteger } from '../http/query.ts'

const PIECE_CHARS = 50_000
const MAX_SEQ = 999_999_999_999_999

const AuditExportQuery = v.pipe(
  v.object({
    from: v.pipe(
      v.optional(queryInteger(1, MAX_SEQ)),
      v.description('The number of the first entry. Without it, the first one that is not purged'),
    ),
    to: v.pipe(
      v.optional(queryInteger(1, MAX_SEQ)),
      v.description(
        'The number of the last entry that is wanted: the file goes on to the first signed checkpoint from there on, ' +
          'so that its end is proven. Without it, the last entry is the one that tells of this export',
      ),
    ),
  }),
  v.forward(
    v.check(({ from = 1, to = MAX_SEQ }) => from <= to, 'must not be greater than to'),
    ['from'],
  ),
)

/** The route that exports a team's audit chain, so that it can be verified without this service. */
export function createAuditExportRoutes() {
  return new Hono<AppEnv>().get(
    '/api/audit/team/:teamId/export',
    accept({
      id: 'exportAudit',
      tag: 'Audit',
      summary: "Export a team's audit chain",
      description:
        'The entries with the texts that are hashed, the signed checkpoints and the anchors of purges, one JSON object ' +
        'a line, oldest first. `npx perdure audit verify --file` checks it without this service, and so does the ' +
        'script in the guide. The export is an entry itself, and a checkpoint is signed behind it. The last line has ' +
        'the `type` `end`: a file without it is not complete. The connection is cut if the file cannot be completed, ' +
        'or if the client reads nothing for 30 s.',
      role: 'ADMIN',
      params: InTeam,
      query: AuditExportQuery,
      responses: {
        200: {
          description: 'The file',
          type: 'application/x-ndjson',
          headers: { 'Content-Disposition': 'Holds the name of the file' },
        },
      },
    }),
    async (c) => {
      const { teamId } = c.req.valid('param')
      const headers = {
        'Content-Type': 'application/x-ndjson',
        'Content-Disposition': `attachment; filename="audit-${teamId}-${new Date().toISOString().slice(0, 10)}.ndjson"`,
      }
      // HEAD sends no data, so there is no audit entry.
      if (c.req.method === 'HEAD') {
        await demandTeam(c.get('scope'), teamId, 'ADMIN')
        return c.body(null, 200, headers)
      }
      const { lines, close } = await openAuditExport(c.get('scope'), teamId, c.req.valid('query'))
      const next = async (put: (text: string) => void) => {
        let text = ''
        let more = true
        while (more && text.length < PIECE_CHARS) {
          const { done, value } = await lines.next()
          if (done) more = false
          else text += value
        }
        put(text)
        return more
      }
      return c.body(streamParts(c, next, close), 200, headers)
    },
  )
}
