import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A request to a vendor of models, as it came. */
export type VendorCall = {
  path: string
  headers: IncomingHttpHeaders
  body: Record<string, unknown>
  /** Of the client: the same for all calls of one connection. */
  port: number | undefined
  /** Epoch milliseconds. */
  at: number
  /** Resolves to whether the whole answer was sent, once the connection is done with it. */
  ended: Promise<boolean>
}

/** What a vendor's model says. */
export type VendorSpeech = {
  /** In one piece, or in the pieces in which it is streamed. */
  text?: string | string[]
  reasoning?: string
  tools?: { id?: string; name: string; args: Record<string, unknown> | string }[]
  finish?: string
  /** As the vendor's protocol has it; null for none. */
  usage?: Record<string, unknown> | null
  /** The milliseconds before each event. */
  paceMs?: number
  /** Resolves before the event of this number (from 0) is sent. */
  before?: (event: number) => Promise<unknown> | unknown
  /** Sends the bytes in pieces of this size: 1 cuts every character of several bytes. */
  pieceBytes?: number
  /** Breaks the connection off after so many events. */
  cutAfter?: number
  /** Ends the answer as if it were whole after so many events. */
  endAfter?: number
  /** Sends nothing more after so many events, and leaves the connection open. */
  hangAfter?: number
  /** In the place of the event of this number. */
  replace?: { event: number; raw: string }
  /** Changes each event before it is sent. */
  spoil?: (raw: string, event: number) => string
}

/** An answer without a stream: an error of the vendor. */
export type VendorRefusal = { status: number; headers?: Record<string, string>; json?: unknown; raw?: string }

export type VendorAnswer = VendorSpeech | VendorRefusal

/**
 * What the vendor answers: one after the other, the last one for all that follow; or a function of the call and its
 * number, from 0.
 */
export type VendorScript =
  | VendorAnswer
  | VendorAnswer[]
  | ((call: VendorCall, number: number) => VendorAnswer | Promise<VendorAnswer>)

export type VendorServer = Awaited<ReturnType<typeof startVendor>>

/** Starts a loopback server of a vendor. `write` makes the events of an answer, as bytes on the wire without framing. */
export async function startVendor(
  script: VendorScript,
  write: (call: VendorCall, speech: VendorSpeech) => string[],
  describeError: (refusal: VendorRefusal) => unknown,
) {
  const calls: VendorCall[] = []
  const state = { script }
  const waiters: (() => void)[] = []

  async function choose(call: VendorCall, number: number): Promise<VendorAnswer> {
    const { script } = state
    if (typeof script === 'function') return script(call, number)
    return Array.isArray(script) ? (script[Math.min(number, script.length - 1)] ?? {}) : script
  }

  const server = createServer(async (request, response) => {
    response.on('error', () => {})
    const sent = await text(request).catch(() => '')
    const ended = new Promise<boolean>((resolve) =>
      response.once('close', () => resolve(response.writableFinished)),
    )
    const body = readBody(sent)
    const { headers, socket } = request
    const call = { path: request.url ?? '/', headers, body, port: socket.remotePort, at: Date.now(), ended }
    const number = calls.push(call) - 1
    for (const wake of waiters.splice(0)) wake()
    const answer = await choose(call, number)
    if ('status' in answer) return refuse(response, answer, describeError)
    await speak(response, answer, write(call, answer))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    calls,
    /** From now on it answers so; numbers go on. */
    say(next: VendorScript) {
      state.script = next
    },
    /** Resolves once so many requests have come. */
    async until(count: number): Promise<void> {
      while (calls.length < count) await new Promise<void>((resolve) => waiters.push(resolve))
    },
    async stop(): Promise<void> {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function readBody(sent: string): Record<string, unknown> {
  try {
    return JSON.parse(sent)
  } catch {
    return {}
  }
}

function refuse(
  response: ServerResponse,
  refusal: VendorRefusal,
  describeError: (refusal: VendorRefusal) => unknown,
) {
  const { status, headers = {}, json, raw } = refusal
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(raw ?? JSON.stringify(json ?? describeError(refusal)))
}

async function speak(response: ServerResponse, speech: VendorSpeech, events: string[]): Promise<void> {
  const { paceMs = 0, before, pieceBytes, cutAfter, endAfter, hangAfter, replace, spoil } = speech
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  response.flushHeaders()
  for (const [n, event] of events.entries()) {
    if (n === hangAfter || response.destroyed) return
    if (n === cutAfter) {
      // What was written has to leave first.
      await new Promise((resolve) => setTimeout(resolve, 20))
      response.destroy()
      return
    }
    if (n === endAfter) break
    if (before) await before(n)
    if (paceMs > 0) await new Promise((resolve) => setTimeout(resolve, paceMs))
    const raw = replace?.event === n ? replace.raw : event
    await send(response, Buffer.from(spoil ? spoil(raw, n) : raw), pieceBytes)
  }
  if (hangAfter !== undefined && hangAfter >= events.length) return
  response.end()
}

async function send(response: ServerResponse, bytes: Buffer, pieceBytes = bytes.length): Promise<void> {
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const fits = response.write(bytes.subarray(at, at + pieceBytes))
    if (pieceBytes < bytes.length) await new Promise((resolve) => setImmediate(resolve))
    if (!fits && !response.destroyed)
      await new Promise<void>((resolve) => {
        const go = () => {
          response.off('drain', go).off('close', go)
          resolve()
        }
        response.on('drain', go).on('close', go)
      })
  }
}

/** The pieces in which a text is streamed: its words, with the spaces before them. */
export function splitSpeech(text: VendorSpeech['text']): string[] {
  if (text === undefined) return []
  return Array.isArray(text) ? text : (text.match(/\s*\S+|\s+$/gu) ?? [text])
}

/** The pieces in which the arguments of a tool's call are streamed. */
export function splitArguments(args: Record<string, unknown> | string): string[] {
  const text = typeof args === 'string' ? args : JSON.stringify(args)
  const pieces: string[] = []
  for (let at = 0; at < text.length; at += 7) pieces.push(text.slice(at, at + 7))
  return pieces
}
