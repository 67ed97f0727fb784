import type { Context } from 'hono'
import type { StatusCode } from 'hono/utils/http-status'
import { readPieces } from '../../db/files/files.ts'
import type { StoredFile } from '../../db/files/store.ts'
import type { Store } from '../../db/scope.ts'
import type { AppEnv } from '../env.ts'
import { streamParts, writeEach } from '../http/download.ts'

/**
 * Responds with a file, or with the one range of it that the request asks for, piece by piece. `close` is called when
 * nothing more of it is needed.
 */
export function sendFile(
  c: Context<AppEnv>,
  store: Store,
  { id, bytes, mimeType }: Omit<StoredFile, 'name'>,
  headers: Record<string, string>,
  { status = 200, close = async () => {} }: { status?: number; close?: () => Promise<unknown> } = {},
): Response {
  const range = status === 200 ? readRange(c, bytes) : undefined
  const { first, last } = range ?? { first: 0, last: bytes - 1 }
  const length = last - first + 1
  c.header('Content-Type', mimeType)
  c.header('Content-Length', String(length))
  if (status === 200) c.header('Accept-Ranges', 'bytes')
  if (range) c.header('Content-Range', `bytes ${first}-${last}/${bytes}`)
  for (const [name, value] of Object.entries(headers)) c.header(name, value)
  c.status((range ? 206 : status) as StatusCode)
  if (c.req.method === 'HEAD' || length === 0) {
    void close()
    return c.body(null)
  }
  const pieces = cut(readPieces(store, id, { from: first }), length)
  return c.body(streamParts(c, writeEach(pieces), () => Promise.all([pieces.return(), close()])))
}

async function* cut(
  pieces: AsyncIterable<Uint8Array>,
  length: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let left = length
  for await (const piece of pieces) {
    yield piece.subarray(0, left)
    left -= piece.length
    if (left <= 0) return
  }
  throw new Error('the file has fewer bytes than its row says')
}

/** The one range that the request asks for; undefined without one that can be given: then all of it is sent. */
function readRange(c: Context, bytes: number): { first: number; last: number } | undefined {
  if (c.req.method !== 'GET' || c.req.header('if-range') !== undefined) return undefined
  const [, from = '', to = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(c.req.header('range') ?? '') ?? []
  if (from === '' && to === '') return undefined
  const first = from === '' ? Math.max(0, bytes - Number(to)) : Number(from)
  const last = from === '' || to === '' ? bytes - 1 : Math.min(Number(to), bytes - 1)
  return first <= last ? { first, last } : undefined
}
