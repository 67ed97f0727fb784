import { Hono } from 'hono'
import * as v from 'valibot'
import { writeDisposition } from '../../activities/files/disposition.ts'
import { listFiles, readFile } from '../../db/files/files.ts'
import type { AppEnv } from '../env.ts'
import { accept } from '../http/accept.ts'
import { ById, uuidField } from '../http/fields.ts'
import { paging } from '../http/query.ts'
import { countSchema, idSchema, pageSchema, timeSchema } from '../http/responses.ts'
import { sendFile } from './send.ts'

/** The types that a browser may show instead of saving: pictures, which can hold no script. */
const SHOWN = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

const FileSchema = v.pipe(
  v.object({
    id: idSchema,
    name: v.pipe(v.string(), v.examples(['invoice.pdf'])),
    mimeType: v.pipe(v.string(), v.examples(['application/pdf'])),
    bytes: countSchema,
    createdAt: timeSchema,
  }),
  v.title('File'),
)

/** The routes of the files that executions have. */
export function createFileRoutes() {
  return new Hono<AppEnv>()
    .get(
      '/api/executions/:id/files',
      accept({
        id: 'listFiles',
        tag: 'Executions',
        summary: "List an execution's files",
        description: 'In the order in which they came. They are deleted with the execution.',
        role: 'member',
        of: 'executions',
        params: ById,
        query: v.object(paging),
        responses: { 200: { description: 'One page', schema: pageSchema('FilePage', FileSchema) } },
      }),
      async (c) => c.json(await listFiles(c.get('scope'), c.req.valid('param').id, c.req.valid('query'))),
    )
    .get(
      '/api/executions/:id/files/:fileId',
      accept({
        id: 'downloadFile',
        tag: 'Executions',
        summary: 'Download a file of an execution',
        description:
          'As an attachment. With `inline=true` PNG, JPEG, GIF and WebP are sent to be shown. A header `Range` ' +
          'with one range of bytes is followed. The connection is cut if the file cannot be sent whole, or if ' +
          'the client reads nothing for 30 s.',
        role: 'member',
        of: 'executions',
        params: v.object({ id: uuidField, fileId: uuidField }),
        query: v.object({
          inline: v.optional(v.picklist(['true', 'false'], 'must be true or false'), 'false'),
        }),
        responses: {
          200: {
            description: 'The bytes of the file',
            type: '*/*',
            headers: { 'Content-Disposition': 'Holds the name of the file' },
          },
          206: {
            description: 'The bytes of the range',
            type: '*/*',
            headers: { 'Content-Range': 'Which bytes these are, and how many the file has' },
          },
        },
      }),
      async (c) => {
        const { id, fileId } = c.req.valid('param')
        const scope = c.get('scope')
        const file = await readFile(scope, id, fileId)
        const type = file.mimeType.split(';')[0]!
        const isShown = c.req.valid('query').inline === 'true' && SHOWN.has(type)
        return sendFile(c, scope.store, file, {
          'Content-Security-Policy': "sandbox; default-src 'none'",
          'Content-Disposition': writeDisposition(isShown ? 'inline' : 'attachment', file.name),
        })
      },
    )
}
